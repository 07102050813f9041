package ingest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"rbt/materialize"
)

// merger makes the relations from the shards, set by set: it never updates or
// deletes a row. Per record type there is one table of survivors ("keep":
// k key, p position, e entry, n occurrences, sid, and where the last metadata
// counts lp, its position); everything else is joins on it. Of records that are
// never merged it has what is asked for, which is mostly p and sid.
type merger struct {
	j      *Job
	p      *Program
	s      materialize.Session
	dir    string
	schema string
	set    *shardSet
	shift  uint
	names  string  // the shard of file names
	prev   *state  // what an append builds upon; nil from scratch
	base   []int64 // by type: the numbers that are taken
	fresh  []int64 // by type: the numbers that this load gives
	again  []int64 // by type: the stored records that it met
	// referenced are the types that records or lists refer to.
	referenced map[*recType]bool

	mu       sync.Mutex
	staged   map[string]materialize.StagedOutput
	conflict []string // queries of rejects that the merge itself finds
}

// mergeConnections is how many tables are merged at once: each has its own
// connection and memory, and DuckDB's threads are shared anyway.
const mergeConnections = 4

func (j *Job) merge(ctx context.Context, s materialize.Session, dir string, set *shardSet, prev *state) (_ materialize.Staged, err error) {
	sum := sha256.Sum256([]byte(j.Program.model + "\x00" + dir))
	m := &merger{j: j, p: j.Program, s: s, dir: dir, schema: "rbt_ingest_" + hex.EncodeToString(sum[:8]), set: set,
		shift: positionShift(len(j.Files)), staged: map[string]materialize.StagedOutput{},
		prev: prev, base: make([]int64, len(j.Program.types)), fresh: make([]int64, len(j.Program.types)), again: make([]int64, len(j.Program.types))}
	if prev != nil {
		for _, t := range m.p.types {
			m.base[t.ord] = prev.NextSID[t.name]
		}
	}
	m.referenced = map[*recType]bool{}
	for _, e := range m.edges() {
		m.referenced[e.to] = true
	}
	if err := m.fileNames(); err != nil {
		return materialize.Staged{}, err
	}
	if err := m.exec(ctx, s, "begin", "CREATE SCHEMA "+ident(m.schema)); err != nil {
		return materialize.Staged{}, err
	}
	defer func() {
		// Also after a cancel: the tables hold the engine's memory.
		if dropErr := s.Exec(context.WithoutCancel(ctx), "DROP SCHEMA "+ident(m.schema)+" CASCADE"); err == nil && dropErr != nil {
			err = fmt.Errorf("drop merge tables: %w", dropErr)
		}
	}()
	if err := m.checkShards(ctx); err != nil {
		return materialize.Staged{}, err
	}
	if err := m.survivors(ctx); err != nil {
		return materialize.Staged{}, err
	}
	if err := m.countSurvivors(ctx); err != nil {
		return materialize.Staged{}, err
	}
	if m.p.appendMode {
		if err := m.writeLedger(); err != nil {
			return materialize.Staged{}, err
		}
	}
	if err := m.checkIDs(ctx); err != nil {
		return materialize.Staged{}, err
	}
	if err := m.checkFamilies(ctx); err != nil {
		return materialize.Staged{}, err
	}
	if err := m.write(ctx); err != nil {
		return materialize.Staged{}, err
	}
	if err := m.verify(ctx); err != nil {
		return materialize.Staged{}, err
	}
	var out materialize.Staged
	for _, o := range m.outputs() {
		st := m.staged[o.Folder]
		j.stats.Rows[o.Folder] = st.Rows
		out.Outputs = append(out.Outputs, m.withKept(st))
	}
	out.Manifest = map[string]json.RawMessage{StateKey: nil} // what appends before this load kept is not true of it
	if m.p.appendMode {
		next, err := m.nextState(prev)
		if err != nil {
			return materialize.Staged{}, err
		}
		out.Manifest[StateKey] = next
	}
	return out, nil
}

func (m *merger) exec(ctx context.Context, s materialize.Session, step, sql string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if h := m.j.hooks.step; h != nil {
		if err := h(step); err != nil {
			return err
		}
	}
	if err := s.Exec(ctx, sql); err != nil {
		return fmt.Errorf("merge step %s: %w", step, err)
	}
	return nil
}

// each runs a task for every type on connections of their own. Tasks share the
// engine's memory, each asks for it without regard to the others, and what is
// pinned cannot be written to disk: so a task that did not get enough is done
// again, alone, when the others are over. A task that fails leaves nothing.
func (m *merger) each(ctx context.Context, n int, task func(ctx context.Context, s materialize.Session, i int) error) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(mergeConnections)
	starved := make([]bool, n)
	for i := range n {
		g.Go(func() error {
			err := m.forked(gctx, i, task)
			starved[i] = errors.Is(err, materialize.ErrMemory)
			if starved[i] {
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i := range n {
		if starved[i] {
			if err := m.forked(ctx, i, task); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *merger) forked(ctx context.Context, i int, task func(ctx context.Context, s materialize.Session, i int) error) (err error) {
	s, err := m.s.Fork(ctx)
	if err != nil {
		return fmt.Errorf("open connection: %w", err)
	}
	defer func() {
		if closeErr := s.Close(); err == nil {
			err = closeErr
		}
	}()
	return task(ctx, s, i)
}

// ident and text quote for SQL.
func ident(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
func text(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

var globEscaper = strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]")

// readParquet reads exactly these files; DuckDB takes brackets and stars in a
// path for a pattern.
func readParquet(files []string) string {
	quoted := make([]string, len(files))
	for i, f := range files {
		quoted[i] = text(globEscaper.Replace(f))
	}
	return "read_parquet([" + strings.Join(quoted, ", ") + "])"
}

// shard is the relation of all shards of a table; without any, an empty one.
func (m *merger) shard(t *table) string {
	if files := m.set.files[t.ord]; len(files) > 0 {
		return readParquet(files)
	}
	stored := t.stored()
	cols := make([]string, len(stored))
	for i, c := range stored {
		typ := c.typ.SQL()
		if c.typ.kind == kJSON {
			typ = "VARCHAR" + strings.Repeat("[]", int(c.typ.lists))
		}
		cols[i] = fmt.Sprintf("CAST(NULL AS %s) AS %s", typ, ident(c.name))
	}
	return "(SELECT " + strings.Join(cols, ", ") + " WHERE false)"
}

func (m *merger) keep(t *recType) string { return fmt.Sprintf("%s.keep%d", ident(m.schema), t.ord) }

func (m *merger) temp(format string, args ...any) string {
	return ident(m.schema) + "." + fmt.Sprintf(format, args...)
}

// fileNames writes the names of the input files as one more shard, so that
// 100,000 of them do not have to go through SQL text.
func (m *merger) fileNames() error {
	t := &table{name: "files"}
	t.add("f", typBigint, true)
	t.add("name", typText, true)
	b := newTableBuf(t)
	for i, f := range m.j.Files {
		b.cols[0].int64(int64(i))
		b.cols[1].text([]byte(validText(f.Name)))
		b.rows++
	}
	path := filepath.Join(m.dir, "shards", "files.shard")
	w, err := createShard(path, t)
	if err != nil {
		return err
	}
	if err := w.flush(b); err != nil {
		return err
	}
	if len(m.j.Files) == 0 {
		m.names = "(SELECT CAST(NULL AS BIGINT) AS f, CAST(NULL AS VARCHAR) AS name WHERE false)"
	} else {
		m.names = readParquet([]string{path})
	}
	return w.close()
}

// fileOf is the name of the file in which a position lies, and the join that it
// comes from; a single file needs none.
func (m *merger) fileOf(alias, pos string) (name, join string) {
	if len(m.j.Files) == 1 {
		return text(validText(m.j.Files[0].Name)), ""
	}
	return alias + ".name", fmt.Sprintf("JOIN %s %s ON %s.f = (%s >> %d)", m.names, alias, alias, pos, m.shift)
}

// survivors builds the keep table of every type.
func (m *merger) survivors(ctx context.Context) error {
	types := m.p.types
	order := slices.Clone(types)
	slices.SortStableFunc(order, func(a, b *recType) int { return cmp.Compare(m.set.rows[b.table.ord], m.set.rows[a.table.ord]) })
	err := m.each(ctx, len(order), func(ctx context.Context, s materialize.Session, i int) error {
		t := order[i]
		if t.table.numbered {
			return m.exec(ctx, s, "number "+t.name, "CREATE VIEW "+m.keep(t)+" AS "+m.ranked(t, "p, k"))
		}
		if m.p.sweep {
			return m.exec(ctx, s, "collapse "+t.name, "CREATE TABLE "+m.temp("all%d", t.ord)+" AS "+m.collapse(t))
		}
		return m.exec(ctx, s, "collapse "+t.name, "CREATE TABLE "+m.keep(t)+" AS "+m.numbered(t, m.collapse(t)))
	})
	if err != nil {
		return err
	}
	if err := m.checkOccurrences(ctx); err != nil {
		return err
	}
	for _, t := range types {
		if !t.hasMid {
			continue
		}
		if err := m.conflicts(ctx, t); err != nil {
			return err
		}
		if err := m.storedConflicts(ctx, t); err != nil {
			return err
		}
	}
	if m.p.sweep {
		return m.sweepOrphans(ctx)
	}
	return nil
}

// collapsed is the table that collapse went to: before the sweep another one.
func (m *merger) collapsed(t *recType) string {
	if m.p.sweep {
		return m.temp("all%d", t.ord)
	}
	return m.keep(t)
}

// numbered adds the number of every survivor, and whether it is stored already:
// a stored one keeps its number, the others follow in the order of their places.
func (m *merger) numbered(t *recType, query string) string {
	keys := m.kept(keysFolder(t))
	if m.prev == nil || t.dedup == dedupNone || len(keys) == 0 {
		return fmt.Sprintf("SELECT *, false AS old, %d + row_number() OVER (ORDER BY p) AS sid FROM (%s)", m.base[t.ord], query)
	}
	return fmt.Sprintf(`SELECT a.*, o.sid IS NOT NULL AS old, o.m AS om, coalesce(o.sid, %d + row_number() OVER (PARTITION BY o.sid IS NULL ORDER BY a.p)) AS sid
		FROM (%s) a LEFT JOIN %s o ON o.k = a.k`, m.base[t.ord], query, readParquet(keys))
}

// ranked is the query of all records of a type that workers have numbered, with
// what a keep table has of them.
func (m *merger) ranked(t *recType, columns string) string {
	return fmt.Sprintf("SELECT %s, false AS old, %d + s AS sid FROM %s", columns, m.base[t.ord], m.shard(t.table))
}

// collapse is the query that leaves one row a key.
func (m *merger) collapse(t *recType) string {
	rows := m.shard(t.table)
	if t.dedup == dedupNone {
		cols := "p"
		if m.p.occ != nil || m.referenced[t] {
			cols += ", k"
		}
		if m.p.sweep {
			cols += ", e"
		}
		return "SELECT " + cols + " FROM " + rows
	}
	mid, noMid, mids := "", "", ""
	if t.hasMid {
		mid, noMid, mids = ", m", ", NULL", ", min(m) <> max(m) AS clash"
	}
	from := "SELECT k, p, e, CAST(1 AS BIGINT) AS n" + mid + " FROM " + rows
	if t.reps != nil && len(m.set.files[t.reps.ord]) > 0 {
		// A dropped repeat stands after what it repeats, so its place never counts.
		from += " UNION ALL SELECT k, NULL, e, n" + noMid + " FROM " + m.shard(t.reps)
	}
	if t.lastMeta() {
		mids += ", max(p) AS lp"
	}
	return "SELECT k, min(p) AS p, bool_or(e) AS e, CAST(sum(n) AS BIGINT) AS n" + mids + " FROM (" + from + ") GROUP BY k"
}

// nothingFor reports that an append has no rows for an output that has parts
// already: it collects no empty ones.
func (m *merger) nothingFor(o Output) bool {
	if len(m.kept(o.Folder)) == 0 {
		return false
	}
	switch o.Kind {
	case OutputRecord, OutputChild, outputKeys:
		return m.fresh[o.rec.ord] == 0
	case outputUpdates:
		return m.again[o.rec.ord] == 0
	case OutputRejects:
		return m.j.stats.Rejects == 0
	case outputLedger:
		return len(m.j.Files) == 0 && len(m.j.touched) == 0
	}
	return false
}

// weight is about how much an output has to write, in values.
func (m *merger) weight(o Output) int64 {
	columns := int64(len(o.Columns))
	switch o.Kind {
	case OutputRecord, outputKeys, outputUpdates:
		return columns * m.set.rows[o.rec.table.ord]
	case OutputChild:
		return columns * m.set.rows[o.list.table.ord]
	case OutputOccurrences:
		return columns * m.set.rows[m.p.occ.ord]
	}
	return 0
}

// write stages every output.
func (m *merger) write(ctx context.Context) error {
	var outs []Output
	var done int64
	for _, o := range m.outputs() {
		if m.nothingFor(o) {
			m.staged[o.Folder] = materialize.StagedOutput{Relation: o.Relation, Folder: o.Folder, Columns: o.Columns}
			continue
		}
		outs = append(outs, o)
	}
	// The largest first, so that none is left to run alone at the end.
	slices.SortStableFunc(outs, func(a, b Output) int { return cmp.Compare(m.weight(b), m.weight(a)) })
	return m.each(ctx, len(outs), func(ctx context.Context, s materialize.Session, i int) error {
		o := outs[i]
		if h := m.j.hooks.step; h != nil {
			if err := h("copy " + o.Folder); err != nil {
				return err
			}
		}
		files, err := s.CopyTo(ctx, m.query(o), filepath.Join(m.dir, o.Folder+".staged"), m.j.Metadata)
		if err != nil {
			return fmt.Errorf("write %s: %w", o.Relation, err)
		}
		st := materialize.StagedOutput{Relation: o.Relation, Folder: o.Folder, Files: files, Columns: o.Columns}
		for _, f := range files {
			st.Rows += f.Rows
		}
		if st.Rows == 0 && len(m.kept(o.Folder)) > 0 {
			// An append does not collect empty parts.
			for _, f := range files {
				if err := os.Remove(f.Path); err != nil {
					return fmt.Errorf("remove empty part: %w", err)
				}
			}
			st.Files = nil
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.staged[o.Folder] = st
		done++
		if m.j.Progress != nil {
			m.j.Progress(Progress{Phase: "merge", Tables: done, Files: int64(len(m.j.Files)), TotalFiles: int64(len(m.j.Files)),
				Records: m.j.stats.Records, Rejects: m.j.stats.Rejects, Bytes: m.j.stats.Bytes, TotalBytes: m.j.stats.Bytes})
		}
		return nil
	})
}
