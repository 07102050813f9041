package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"
	"golang.org/x/sync/errgroup"
)

// job is the work of the bare program: statements for DuckDB by the driver
// that rbt uses, and nothing else but the fsyncs and renames that make a file
// durable. Data generators and checks are jobs too.
type job struct {
	Database    string   `json:"database,omitempty"` // file; "" in memory
	Settings    []string `json:"settings,omitempty"`
	Connections int      `json:"connections,omitempty"` // steps of one level run at once on so many; 0 is 1
	Steps       []step   `json:"steps"`
	Answers     string   `json:"answers,omitempty"` // file that gets what the Ask steps returned
	// Texts is a folder whose files are read and written anew below To, on all
	// cores and without DuckDB; then there is nothing else to do.
	Texts string `json:"texts,omitempty"`
	To    string `json:"to,omitempty"`
}

// step is one of: a statement, a COPY of a query to a Parquet file, a question.
type step struct {
	Exec    string `json:"exec,omitempty"`
	Query   string `json:"query,omitempty"`
	To      string `json:"to,omitempty"`
	Receipt string `json:"receipt,omitempty"` // a small file published after the Parquet file, as durably
	Ask     string `json:"ask,omitempty"`     // the answer's rows, as text
	Times   int    `json:"times,omitempty"`   // ask so often; the fastest is reported
	Level   int    `json:"level,omitempty"`   // a level starts when the one before is done
}

// answer is what an Ask step returned: its rows, every value as text, and the
// fastest time in seconds.
type answer struct {
	Rows    [][]string `json:"rows"`
	Seconds float64    `json:"seconds"`
}

// plainSettings are what rbt sets too and what makes COPY cheapest, so that
// both sides run the engine alike.
func plainSettings(work string, more ...string) []string {
	return append([]string{
		"SET preserve_insertion_order = false",
		"SET parquet_metadata_cache = true",
		"SET enable_external_file_cache = false",
		"SET TimeZone = 'UTC'",
		"SET temp_directory = " + quote(filepath.Join(work, "spill")),
		"SET autoinstall_known_extensions = false",
		"SET autoload_known_extensions = false",
	}, more...)
}

// quote writes an SQL text literal.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// runJob runs a job in a child process.
func (b *bench) runJob(dir, name string, j job) (usage, error) {
	path := filepath.Join(dir, name+".job.json")
	if err := writeJSON(path, j); err != nil {
		return usage{}, err
	}
	return b.child(b.jobCommand(dir, path))
}

func (b *bench) jobCommand(dir, path string) *exec.Cmd {
	return b.command(dir, b.self, childFlag, path)
}

// ask runs a job and returns its answers.
func (b *bench) ask(dir, name string, j job) ([]answer, usage, error) {
	j.Answers = filepath.Join(dir, name+".answers.json")
	u, err := b.runJob(dir, name, j)
	if err != nil {
		return nil, u, err
	}
	var answers []answer
	text, err := os.ReadFile(j.Answers)
	if err == nil {
		err = json.Unmarshal(text, &answers)
	}
	if err != nil {
		return nil, u, fmt.Errorf("read the answers of %s: %w", name, err)
	}
	return answers, u, nil
}

func writeJSON(path string, v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// runJobFile is the child: it does what the job says.
func runJobFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	var j job
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("read the job %s: %w", path, err)
	}
	if j.Texts != "" {
		return copyTexts(j.Texts, j.To)
	}
	connector, err := duckdb.NewConnector(j.Database, nil)
	if err != nil {
		return fmt.Errorf("open DuckDB: %w", err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	ctx := context.Background()
	for _, s := range j.Settings {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	answers := make([]*answer, len(j.Steps))
	for from := 0; from < len(j.Steps); {
		to := from
		for to < len(j.Steps) && j.Steps[to].Level == j.Steps[from].Level {
			to++
		}
		if err := runLevel(ctx, db, max(1, j.Connections), j.Steps[from:to], answers[from:to]); err != nil {
			return err
		}
		from = to
	}
	if j.Answers == "" {
		return nil
	}
	said := []answer{}
	for _, a := range answers {
		if a != nil {
			said = append(said, *a)
		}
	}
	return writeJSON(j.Answers, said)
}

// copyTexts is what a tool that turns files into files cannot do without: each is
// read, and one as large is written into a folder that is new.
func copyTexts(from, to string) error {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		within, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, within)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		group.Go(func() error {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(target, text, 0o644)
		})
		return nil
	})
	return errors.Join(err, group.Wait())
}

// runLevel runs steps on n connections; on one, in their order.
func runLevel(ctx context.Context, db *sql.DB, n int, steps []step, answers []*answer) error {
	next := make(chan int)
	errs := make([]error, n)
	var workers sync.WaitGroup
	for w := range n {
		workers.Go(func() {
			conn, err := db.Conn(ctx)
			if err != nil {
				errs[w] = err
			} else {
				defer conn.Close()
			}
			for i := range next {
				if errs[w] == nil {
					answers[i], errs[w] = runStep(ctx, conn, steps[i])
				}
			}
		})
	}
	for i := range steps {
		next <- i
	}
	close(next)
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func runStep(ctx context.Context, conn *sql.Conn, s step) (*answer, error) {
	switch {
	case s.Exec != "":
		if _, err := conn.ExecContext(ctx, s.Exec); err != nil {
			return nil, fmt.Errorf("%s: %w", firstWords(s.Exec), err)
		}
		return nil, nil
	case s.Query != "":
		return nil, copyDurably(ctx, conn, s)
	}
	best := answer{}
	for i := range max(1, s.Times) {
		started := time.Now()
		rows, err := queryText(ctx, conn, s.Ask)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", firstWords(s.Ask), err)
		}
		if took := time.Since(started).Seconds(); i == 0 || took < best.Seconds {
			best = answer{Rows: rows, Seconds: took}
		}
	}
	return &best, nil
}

// firstWords shortens a statement for a message.
func firstWords(s string) string {
	const most = 200
	s = strings.Join(strings.Fields(s), " ")
	return s[:min(most, len(s))]
}

// copyDurably is the whole of what a careful Go program does to publish one
// model: COPY beside the target, fsync, rename, fsync of the folder; then the
// same for the receipt.
func copyDurably(ctx context.Context, conn *sql.Conn, s step) error {
	if err := os.MkdirAll(filepath.Dir(s.To), 0o755); err != nil {
		return err
	}
	staged := s.To + ".staged"
	stmt := fmt.Sprintf("COPY (%s) TO %s (FORMAT parquet, COMPRESSION zstd)", s.Query, quote(staged))
	if _, err := conn.ExecContext(ctx, stmt); err != nil {
		return fmt.Errorf("%s: %w", firstWords(stmt), err)
	}
	if err := publishFile(staged, s.To); err != nil {
		return err
	}
	if s.Receipt == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.Receipt), 0o755); err != nil {
		return err
	}
	temp := s.Receipt + ".tmp"
	if err := os.WriteFile(temp, []byte(strings.Repeat("receipt ", 150)), 0o644); err != nil {
		return err
	}
	return publishFile(temp, s.Receipt)
}

// publishFile makes a staged file durable under its name.
func publishFile(staged, path string) error {
	if err := syncPath(staged); err != nil {
		return err
	}
	if err := os.Rename(staged, path); err != nil {
		return err
	}
	return syncPath(filepath.Dir(path))
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// queryText runs a query and returns every value as text.
func queryText(ctx context.Context, conn *sql.Conn, query string) ([][]string, error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var out [][]string
	for rows.Next() {
		values := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		line := make([]string, len(columns))
		for i, v := range values {
			line[i] = fmt.Sprint(v)
		}
		out = append(out, line)
	}
	return out, rows.Err()
}
