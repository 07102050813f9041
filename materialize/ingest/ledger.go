package ingest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/materialize"
)

// ledgerFolder holds the files that were loaded, in the order of their loads. A
// later row of a path counts instead of an earlier one: it has the times of a
// file that was touched and found to hold what was loaded.
const ledgerFolder = lake.IngestLedger

func ledgerColumns() []lake.Column {
	return []lake.Column{
		col("ord", "BIGINT"), col("_load_id", "BIGINT"), col("path", "VARCHAR"), col("size", "BIGINT"), col("mtime", "BIGINT"),
		col("ctime", "BIGINT"), col("hash", "VARCHAR"), col("records", "BIGINT"), col("rejects", "BIGINT"),
	}
}

// fileStamp is what the ledger keeps of one file.
type fileStamp struct {
	size, mtime, ctime int64
	hash               string
	ord                int64
	records, rejects   int64
}

// looksLike reports whether a file cannot have changed since: no program can
// set the time of the last change of its properties back.
func (s fileStamp) looksLike(now fileStamp) bool {
	return s.size == now.size && s.mtime == now.mtime && s.ctime == now.ctime
}

// stampOf takes a file's size and times.
func (j *Job) stampOf(info os.FileInfo) fileStamp {
	s := fileStamp{size: info.Size(), mtime: info.ModTime().UnixNano()}
	if j.ChangeTime != nil {
		s.ctime = j.ChangeTime(info)
	}
	return s
}

func (j *Job) readLedger(ctx context.Context, s materialize.Session) (map[string]fileStamp, error) {
	known := map[string]fileStamp{}
	files := j.Previous.Files[ledgerFolder]
	if len(files) == 0 {
		return known, nil
	}
	// The first ledgers had no ctime: -1 is that of no file, so that their files
	// are compared by content.
	q := "SELECT path, size, mtime, coalesce(ctime, -1), hash, ord, records, rejects FROM " + readParts(files, ledgerColumns()) + " ORDER BY _load_id, ord"
	err := s.Query(ctx, q, func(v []any) error {
		known[v[0].(string)] = fileStamp{size: v[1].(int64), mtime: v[2].(int64), ctime: v[3].(int64), hash: v[4].(string), ord: v[5].(int64),
			records: v[6].(int64), rejects: v[7].(int64)}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read ledger of the ingest: %w", err)
	}
	return known, nil
}

// orderAsKnown keeps the order in which files were loaded, so that a full
// refresh gives the ids that the loads gave; new files follow.
func (j *Job) orderAsKnown(known map[string]fileStamp) {
	j.Files = slices.Clone(j.Files)
	slices.SortStableFunc(j.Files, func(a, b File) int {
		x, okA := known[a.Name]
		y, okB := known[b.Name]
		switch {
		case okA && okB:
			return cmp.Compare(x.ord, y.ord)
		case okA:
			return -1
		case okB:
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	j.stamps = make([]fileStamp, len(j.Files))
}

// pickNew leaves the files that the ledger does not know.
func (j *Job) pickNew(ctx context.Context, known map[string]fileStamp, st *state) error {
	var fresh []File
	var old []File
	for _, f := range j.Files {
		if _, ok := known[f.Name]; ok {
			old = append(old, f)
		} else {
			fresh = append(fresh, f)
		}
	}
	if err := j.renamed(known, old, fresh); err != nil {
		return err
	}
	if !j.Program.ignoreOld {
		if err := j.compareKnown(ctx, known, old); err != nil {
			return err
		}
	}
	j.Files = fresh
	j.stamps = make([]fileStamp, len(fresh))
	j.LoadID = st.Loads + 1
	return nil
}

// compareKnown requires that files which were loaded hold what they held. One
// with other times is read for its hash; where that is the same, the ledger
// gets the new times.
func (j *Job) compareKnown(ctx context.Context, known map[string]fileStamp, files []File) error {
	now := make([]fileStamp, len(files))
	const each = 1000 // files that one goroutine looks at
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for start := 0; start < len(files); start += each {
		g.Go(func() error {
			for i := start; i < min(start+each, len(files)); i++ {
				if err := gctx.Err(); err != nil {
					return err
				}
				info, err := os.Stat(files[i].Path)
				if err != nil {
					return fmt.Errorf("stat input: %w", err)
				}
				now[i] = j.stampOf(info)
				if was := known[files[i].Name]; !was.looksLike(now[i]) {
					if now[i].hash, err = hashFile(files[i].Path); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, f := range files {
		was := known[f.Name]
		if now[i].hash == "" {
			continue
		}
		if now[i].hash != was.hash {
			return diag.Errorf(diag.IngestChangedFile, diag.Pos{File: f.Name}, "the file was loaded before and has changed since").
				WithHint("load everything anew with --full-refresh, or keep what was loaded with on_changed_file: ignore")
		}
		now[i].ord, now[i].records, now[i].rejects = was.ord, was.records, was.rejects
		j.touched = append(j.touched, ledgerRow{name: f.Name, fileStamp: now[i]})
	}
	return nil
}

// renamed refuses files that were loaded under another name, which is what a
// change of the declared paths makes of all of them: they would be loaded a
// second time.
func (j *Job) renamed(known map[string]fileStamp, old, fresh []File) error {
	if len(fresh) == 0 || len(old) == len(known) {
		return nil
	}
	type identity struct{ size, mtime int64 }
	gone := map[identity][]string{}
	here := make(map[string]bool, len(old))
	for _, f := range old {
		here[f.Name] = true
	}
	for name, s := range known {
		if !here[name] {
			id := identity{s.size, s.mtime}
			gone[id] = append(gone[id], name)
		}
	}
	for _, f := range fresh {
		info, err := os.Stat(f.Path)
		if err != nil {
			return fmt.Errorf("stat input: %w", err)
		}
		names := gone[identity{info.Size(), info.ModTime().UnixNano()}]
		slices.Sort(names)
		for _, name := range names {
			if !strings.HasSuffix("/"+f.Name, "/"+name) && !strings.HasSuffix("/"+name, "/"+f.Name) {
				continue
			}
			hash, err := hashFile(f.Path)
			if err != nil {
				return err
			}
			if hash != known[name].hash {
				continue
			}
			return diag.Errorf(diag.IngestChangedFile, diag.Pos{File: f.Name}, "the file was loaded before under the name %s", name).
				WithHint("files are named relative to the folder that holds all paths of the input: keep its paths as they were, or load everything anew with --full-refresh")
		}
	}
	return nil
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("open input: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read input: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ledgerRow is a row that this load adds to the ledger.
type ledgerRow struct {
	name string
	fileStamp
}

func (m *merger) ledgerQuery() string {
	return "SELECT * FROM " + readParquet([]string{m.ledgerShard()}) + " ORDER BY ord"
}

func (m *merger) ledgerShard() string { return filepath.Join(m.dir, "shards", "ledger.shard") }

// writeLedger puts what was learnt of the files into a shard of its own.
func (m *merger) writeLedger() error {
	t := &table{name: "ledger"}
	for _, c := range ledgerColumns() {
		typ := typBigint
		if c.Type == "VARCHAR" {
			typ = typText
		}
		t.add(c.Name, typ, true)
	}
	first := int64(0)
	if m.prev != nil {
		first = m.prev.Files
	}
	rows := slices.Clone(m.j.touched)
	for i, f := range m.j.Files {
		st := m.j.stamps[i]
		st.ord, st.records, st.rejects = first+int64(i), m.set.byFile[i][0], m.set.byFile[i][1]
		rows = append(rows, ledgerRow{name: f.Name, fileStamp: st})
	}
	b := newTableBuf(t)
	for _, r := range rows {
		for k, v := range []int64{r.ord, m.j.LoadID, 0, r.size, r.mtime, r.ctime, 0, r.records, r.rejects} {
			switch k {
			case 2:
				b.cols[k].text([]byte(r.name))
			case 6:
				b.cols[k].text([]byte(r.hash))
			default:
				b.cols[k].int64(v)
			}
		}
		b.rows++
	}
	w, err := createShard(m.ledgerShard(), t)
	if err != nil {
		return err
	}
	if err := w.flush(b); err != nil {
		return err
	}
	return w.close()
}
