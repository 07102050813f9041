package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rbt/internal/diag"
	"rbt/internal/plan"
)

// FreshnessStatus is how a source compares with its limits, in dbt's words.
type FreshnessStatus string

// The statuses of sources. FreshnessUnknown says that the age could not be
// found.
const (
	FreshnessPass    FreshnessStatus = "pass"
	FreshnessWarn    FreshnessStatus = "warn"
	FreshnessError   FreshnessStatus = "error"
	FreshnessUnknown FreshnessStatus = "runtime error"
)

// FreshnessResult is the age of the data of one source.
type FreshnessResult struct {
	Node     *plan.Node
	Status   FreshnessStatus
	LoadedAt time.Time // newest modification time of its files, or the largest value of loaded_at
	Checked  time.Time
	Age      time.Duration // never negative
	Elapsed  time.Duration
	Err      error // of FreshnessUnknown
}

// Freshness finds the age of sources, each in turn, and calls done after each.
// It opens no database unless a source has a loaded_at column. That the age of a
// source cannot be found is in its result.
func (e *Engine) Freshness(ctx context.Context, g *plan.Graph, sources []*plan.Node, done func(FreshnessResult)) error {
	f := freshness{e: e, g: g}
	defer func() {
		if f.session != nil {
			_ = f.session.Close()
		}
	}()
	for _, n := range sources {
		started := e.o.Now()
		r := FreshnessResult{Node: n, Checked: started}
		r.LoadedAt, r.Err = f.loadedAt(ctx, n)
		if err := ctx.Err(); err != nil {
			return err
		}
		r.Elapsed = e.o.Now().Sub(started)
		r.judge()
		done(r)
	}
	return nil
}

// judge compares the age with the limits.
func (r *FreshnessResult) judge() {
	r.Age = max(0, r.Checked.Sub(r.LoadedAt))
	limits := r.Node.Source.Freshness
	switch {
	case r.Err != nil:
		r.Status, r.Age = FreshnessUnknown, 0
	case limits == nil:
		r.Status = FreshnessPass
	case limits.ErrorAfter > 0 && r.Age > limits.ErrorAfter:
		r.Status = FreshnessError
	case limits.WarnAfter > 0 && r.Age > limits.WarnAfter:
		r.Status = FreshnessWarn
	default:
		r.Status = FreshnessPass
	}
}

// freshness looks at the sources of one command.
type freshness struct {
	e       *Engine
	g       *plan.Graph
	session *session
	catalog *catalog
}

// errNoData says that a source has nothing whose age could be told.
var errNoData = errors.New("it has no data")

func (f *freshness) loadedAt(ctx context.Context, n *plan.Node) (time.Time, error) {
	limits := n.Source.Freshness
	if limits != nil && limits.LoadedAt != "" {
		return f.largest(ctx, n, limits.LoadedAt)
	}
	files, err := expandPatterns(n.Source.Patterns)
	if err != nil {
		return time.Time{}, err
	}
	var newest time.Time
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return time.Time{}, fmt.Errorf("look at source file: %w", err)
		}
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	if len(files) == 0 {
		return time.Time{}, errNoData
	}
	return newest.UTC().Truncate(time.Microsecond), nil
}

// largest reads the largest value of a column of a source. Times without a zone
// are UTC.
func (f *freshness) largest(ctx context.Context, n *plan.Node, column string) (time.Time, error) {
	if f.session == nil {
		db, err := f.e.database(ctx)
		if err != nil {
			return time.Time{}, err
		}
		if f.session, err = db.session(ctx); err != nil {
			return time.Time{}, err
		}
		f.catalog = newCatalog(f.e.o.Project, f.g, f.e.parser, func(*plan.Node) (publishedNode, bool, error) { return publishedNode{}, false, nil })
	}
	r, _ := f.catalog.lookup(n.Source.Group, n.Source.Name)
	if err := f.catalog.bind(ctx, f.session, r, nil); err != nil {
		return time.Time{}, err
	}
	from := relationName(r.schema, r.name)
	columns, err := f.session.Describe(ctx, "SELECT * FROM "+from)
	if err != nil {
		return time.Time{}, err
	}
	names := make([]string, len(columns))
	for i, c := range columns {
		if names[i] = c.Name; strings.EqualFold(c.Name, column) {
			return f.maximum(ctx, from, c.Name, r)
		}
	}
	d := diag.Errorf(diag.SourceColumn, n.Source.Freshness.Pos, "source %s has no column %q for loaded_at", n.Name, column)
	if near := diag.Nearest(column, names); near != "" {
		d = d.WithHint("did you mean %s?", near)
	}
	return time.Time{}, d
}

func (f *freshness) maximum(ctx context.Context, from, column string, r *relation) (newest time.Time, err error) {
	known := false
	query := "SELECT epoch_us(CAST(max(" + quoteIdent(column) + ") AS TIMESTAMPTZ)) FROM " + from
	err = f.session.Query(ctx, query, func(v []any) error {
		var micros int64
		if micros, known = v[0].(int64); known {
			newest = time.UnixMicro(micros).UTC()
		}
		return nil
	})
	switch {
	case err != nil:
		return newest, f.catalog.explain(err, []*relation{r})
	case !known:
		return newest, errNoData
	}
	return newest, nil
}

// WriteSources leaves the ages of sources in target/sources.json, in the shape
// of dbt's sources v3.
func (e *Engine) WriteSources(ctx context.Context, results []FreshnessResult, elapsed time.Duration, inv Invocation) error {
	list := emptyList()
	for _, r := range results {
		if r.Status == FreshnessUnknown {
			list = append(list, object{"unique_id": r.Node.ID, "error": errorText(r.Err), "status": string(r.Status)})
			continue
		}
		criteria := object{"warn_after": nil, "error_after": nil, "filter": nil}
		if limits := r.Node.Source.Freshness; limits != nil {
			criteria = freshnessObject(limits)
		}
		list = append(list, object{
			"unique_id": r.Node.ID, "max_loaded_at": stamp(r.LoadedAt), "snapshotted_at": stamp(r.Checked),
			"max_loaded_at_time_ago_in_s": r.Age.Seconds(), "status": string(r.Status), "criteria": criteria,
			"adapter_response": emptyObject(), "thread_id": "Thread-0", "execution_time": r.Elapsed.Seconds(),
			"timing": []any{object{"name": "execute", "started_at": stamp(r.Checked), "completed_at": stamp(r.Checked.Add(r.Elapsed))}},
		})
	}
	return e.writeDocuments(ctx, map[string]any{SourcesFile: object{
		"metadata": e.metadata("sources", 3, inv), "results": list, "elapsed_time": elapsed.Seconds(),
	}}, nil)
}

// ReadSources reads a sources.json: the time of the newest data by ID, for
// sources of which it is known.
func ReadSources(dir string) (map[string]time.Time, error) {
	var doc struct {
		Results []struct {
			ID       string `json:"unique_id"`
			LoadedAt string `json:"max_loaded_at"`
		} `json:"results"`
	}
	path := filepath.Join(dir, SourcesFile)
	if err := readDocument(path, &doc); err != nil {
		return nil, err
	}
	times := make(map[string]time.Time, len(doc.Results))
	for _, r := range doc.Results {
		if r.LoadedAt == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, r.LoadedAt)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		times[r.ID] = at
	}
	return times, nil
}
