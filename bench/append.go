package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// appendSQL takes the batches that came since the last run.
const appendSQL = `select batch, id, customer_id, amount, sold_at from {{ source('raw', 'sales') }}
{% if is_incremental() %} where batch > (select max(batch) from {{ this }}) {% endif %}`

// batchesTable is all batches of so many rows each, to be cut into files.
func batchesTable(batch, rows int) string {
	return fmt.Sprintf(`SELECT %d::BIGINT AS batch, i AS id, %s AS customer_id, %s AS amount, TIMESTAMP '2024-01-01' + to_seconds(i) AS sold_at
		FROM range(%d, %d) t(i)`, batch, rnd(31, 100_000), rnd(32, 50_000), batch*rows, (batch+1)*rows)
}

// series is one way to append batch after batch.
type series struct {
	name    string
	landing string
	append  func(batch int) (usage, error)
	files   func() ([]string, error)
	clear   func() error
	costs   [][]usage // by batch, every repetition
}

// runAppends is scenario e.
func runAppends(b *bench) error {
	batches, rows := 100, b.size(100_000, 1000)
	dir, err := b.dir("appends")
	if err != nil {
		return err
	}
	tables := map[string]string{}
	for i := range batches {
		tables[fmt.Sprintf("batch_%03d", i)] = batchesTable(i, rows)
	}
	raw := filepath.Join(dir, "raw")
	if err := os.MkdirAll(raw, 0o755); err != nil {
		return err
	}
	if err := b.makeParquet(raw, tables); err != nil {
		return err
	}
	both := []*series{b.bareSeries(dir), nil}
	if both[1], err = b.rbtSeries(dir); err != nil {
		return err
	}
	repeat := b.opt.repeat
	if b.opt.growth {
		repeat = 1
	}
	for range repeat {
		for _, s := range both {
			if err := b.appendAll(s, raw, batches); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	if b.opt.growth {
		return b.growAppends(both)
	}
	if err := b.appendCosts(both, rows); err != nil {
		return err
	}
	return b.readers(dir, both)
}

// appendAll lets one batch after the other arrive and appends it.
func (b *bench) appendAll(s *series, raw string, batches int) error {
	if err := s.clear(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.landing, 0o755); err != nil {
		return err
	}
	if s.costs == nil {
		s.costs = make([][]usage, batches)
	}
	flushDisk()
	for i := range batches {
		name := fmt.Sprintf("batch_%03d.parquet", i)
		if err := os.Link(filepath.Join(raw, name), filepath.Join(s.landing, name)); err != nil {
			return err
		}
		u, err := s.append(i)
		if err != nil {
			return fmt.Errorf("append %d: %w", i+1, err)
		}
		s.costs[i] = append(s.costs[i], u)
	}
	return nil
}

// bareSeries appends in the bare program, one process an append, as rbt is.
func (b *bench) bareSeries(dir string) *series {
	out, landing := filepath.Join(dir, "bare-out"), filepath.Join(dir, "bare-landing")
	part := func(i int) string { return filepath.Join(out, fmt.Sprintf("part-%013d.parquet", i+1)) }
	s := &series{name: "bare", landing: landing, clear: b.cleared(out, landing)}
	count := 0
	s.append = func(i int) (usage, error) {
		count = i + 1
		query := "select batch, id, customer_id, amount, sold_at from read_parquet(" + quote(landing+"/*.parquet") + ")"
		if i > 0 {
			query += " where batch > (select max(batch) from " + relation{files: s.parts(part, i)}.sql() + ")"
		}
		j := job{Settings: plainSettings(dir), Steps: []step{{Query: query, To: part(i), Receipt: filepath.Join(out, "manifest.json")}}}
		return b.runJob(dir, "append", j)
	}
	s.files = func() ([]string, error) { return s.parts(part, count), nil }
	return s
}

func (s *series) parts(part func(int) string, n int) []string {
	files := make([]string, n)
	for i := range n {
		files[i] = part(i)
	}
	return files
}

// rbtSeries appends with `rbt run` on an incremental model.
func (b *bench) rbtSeries(dir string) (*series, error) {
	project, landing := filepath.Join(dir, "project"), filepath.Join(dir, "rbt-landing")
	p := neutral{
		name: "appends", data: dir,
		sources: []source{{name: "sales", path: landing + "/*.parquet"}},
		models:  []model{{name: "sales", sql: appendSQL, front: "materialization: incremental\nstrategy: append\n"}},
	}
	if err := p.writeRbt(project); err != nil {
		return nil, err
	}
	parts := filepath.Join(project, "lake", "sales.parts")
	return &series{
		name: "rbt", landing: landing,
		clear:  b.cleared(landing, filepath.Join(project, "lake"), filepath.Join(project, "target")),
		append: func(int) (usage, error) { return b.runRbt(project, "run") },
		files:  func() ([]string, error) { return manifestParts(parts) },
	}, nil
}

// manifestParts is the files that a manifest lists.
func manifestParts(dir string) ([]string, error) {
	var manifest struct {
		Parts []string `json:"parts"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "_rbt_manifest.json"))
	if err == nil {
		err = json.Unmarshal(text, &manifest)
	}
	if err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", dir, err)
	}
	for i, name := range manifest.Parts {
		manifest.Parts[i] = filepath.Join(dir, name)
	}
	return manifest.Parts, nil
}

// around is the costs of the appends close to the nth, which alone would be
// too few to judge by.
func (s *series) around(n int) []usage {
	var runs []usage
	for i := n - 3; i < min(n+2, len(s.costs)); i++ {
		runs = append(runs, s.costs[i]...)
	}
	return runs
}

// appendCosts compares the hundredth append with the tenth.
func (b *bench) appendCosts(both []*series, rows int) error {
	res := result{Case: "100 appends of " + count(rows, "row"), Base: "rbt, 10th"}
	var found []map[string]digest
	for _, s := range both {
		res.Sides = append(res.Sides, sideResult{Name: s.name + ", 10th", Runs: s.around(10)}, sideResult{Name: s.name + ", 100th", Runs: s.around(100)})
		files, err := s.files()
		if err != nil {
			return err
		}
		d, err := b.digests(map[string]relation{"sales": {files: files}}, byValue)
		if err != nil {
			return err
		}
		found = append(found, d)
	}
	res.settle([]target{
		{side: "rbt, 100th", metric: wall, against: "rbt, 10th", max: 1.3},
		{side: "rbt, 100th", metric: cpu, against: "rbt, 10th", max: 1.3},
	})
	res.Check = "equal (rows and values after 100 appends)"
	if d := difference(found[0], found[1], byValue); d != "" {
		res.Check = "DIFFERENT: " + d
	}
	res.Notes = []string{"each figure is of the five appends around the tenth and the last five; every append is a process of its own, finds its rows in a folder to which one file is added each time, and asks for max(batch) of what is published"}
	b.add(res)
	return nil
}

// readers compares a query over the parts with the same over one file.
func (b *bench) readers(dir string, both []*series) error {
	files, err := both[1].files()
	if err != nil {
		return err
	}
	parts, one := relation{files: files}, relation{files: []string{filepath.Join(dir, "one.parquet")}}
	compact := job{Settings: plainSettings(dir), Steps: []step{{Query: "SELECT * FROM " + parts.sql(), To: one.files[0]}}}
	if _, err := b.runJob(dir, "compact", compact); err != nil {
		return err
	}
	reader := func(name string, rel relation) side {
		return side{name: name, run: func() (usage, error) {
			j := job{Steps: []step{{Ask: "SELECT sum(amount) FROM " + rel.sql(), Times: 9}}}
			answers, u, err := b.ask(dir, "reader", j)
			if err != nil {
				return u, err
			}
			u.WallS = answers[0].Seconds
			return u, nil
		}}
	}
	return b.compare(comparison{
		name: fmt.Sprintf("select sum(amount) over %d parts, as plain DuckDB reads them", len(files)), base: "one file",
		sides:   []side{reader("one file", one), reader("parts", parts)},
		targets: []target{{side: "parts", metric: wall, against: "one file", max: 2}},
		notes:   []string{"wall is that of the fastest of nine queries in one process; cpu is of the whole process"},
	})
}

// growAppends reports the growth of an append with the number of parts.
func (b *bench) growAppends(both []*series) error {
	var found []growthResult
	for _, s := range both {
		g := growthResult{Side: s.name, Unit: "parts before it", Exponents: map[metric]float64{}}
		for _, n := range []int{25, 50, 98} {
			runs := s.around(n)
			g.Sizes = append(g.Sizes, n)
			g.Usages = append(g.Usages, usage{WallS: median(runs, wall), CPUS: median(runs, cpu), PeakB: int64(median(runs, peak))})
		}
		for _, m := range []metric{wall, cpu, peak} {
			g.Exponents[m] = exponent(g, m)
		}
		found = append(found, g)
	}
	b.add(result{Case: "growth: one append", Growth: found})
	return nil
}
