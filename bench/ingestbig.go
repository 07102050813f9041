package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Bounds of scenario i: what the SQL engine and an ingest's own side are
// allowed, and what the process may take.
const (
	ingestEngineLimit = "1GB"
	ingestOwnLimit    = "256MB"
	ingestPeak        = 1_800_000_000
	peakGrowth        = 1.1
	appendShare       = 0.08
	nothingNewShare   = 1.5
)

// runBigIngest is scenario i.
func runBigIngest(b *bench) error {
	if b.opt.growth {
		return errors.New("the cases of this scenario compare sizes already")
	}
	for _, c := range []func() error{b.ingestUnderLimit, b.ingestTwice, b.ingestEqualTwice, b.ingestLargeAppend, b.ingestNothingNew} {
		if err := c(); err != nil {
			return err
		}
	}
	return nil
}

// limited is a project with one ingest under small limits.
func limited(dir, front string) neutral {
	return neutral{name: "records", data: dir, engine: []string{"memory_limit: " + ingestEngineLimit},
		models: []model{{name: "loaded", front: strings.Replace(front, "materialization: ingest\n", "materialization: ingest\nmemory_limit: "+ingestOwnLimit+"\n", 1)}}}
}

// ingestSide ingests into a fresh lake; its phases become a note of the case.
func (b *bench) ingestSide(name, project string, p neutral, phases *[]string) (side, error) {
	if err := p.writeRbt(project); err != nil {
		return side{}, err
	}
	s := b.rbtSide(name, project, p)
	s.outputs = nil
	plain := s.run
	s.run = func() (usage, error) {
		u, err := plain()
		if err == nil {
			var text string
			text, err = phasesOf(project)
			*phases = append(*phases, name+": "+text)
		}
		return u, err
	}
	return s, nil
}

// phasesOf is what the receipt of the last ingest says of its phases.
func phasesOf(project string) (string, error) {
	content, err := os.ReadFile(filepath.Join(project, "lake", ".rbt", "state", "loaded.json"))
	if err != nil {
		return "", fmt.Errorf("read the phases: %w", err)
	}
	var r struct {
		Stats struct {
			Bytes, Records int64
			Encode         float64 `json:"encode_seconds"`
			Merge          float64 `json:"merge_seconds"`
		}
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return "", fmt.Errorf("read the phases: %w", err)
	}
	return fmt.Sprintf("%d MB, %d records, encode %.1f s, merge %.1f s", r.Stats.Bytes>>20, r.Stats.Records, r.Stats.Encode, r.Stats.Merge), nil
}

// ingestUnderLimit loads far more than fits into memory.
func (b *bench) ingestUnderLimit() error {
	n := b.size(9_000_000, 3000) // 10 GB
	dir, err := b.dir("limit")
	if err != nil {
		return err
	}
	b.logf("   data: %d nested records", n)
	if err := writeRecords(filepath.Join(dir, "nested.ndjson"), n, &recordWriter{}, crystal(max(1, n/2))); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var phases []string
	s, err := b.ingestSide("rbt", filepath.Join(dir, "project"), limited(dir, fmt.Sprintf(nestedFront, "$data/nested.ndjson", "")), &phases)
	if err != nil {
		return err
	}
	s.once = true
	c := comparison{
		name: fmt.Sprintf("ingest of %d nested records, engine %s, ingest %s", n, ingestEngineLimit, ingestOwnLimit), base: "rbt", sides: []side{s},
		targets: []target{{side: "rbt", metric: peak, max: ingestPeak}},
	}
	return b.compareWith(c, &phases)
}

// compareWith runs a case and notes the phases that its sides had.
func (b *bench) compareWith(c comparison, phases *[]string) error {
	err := b.compare(c)
	if err == nil {
		last := &b.results[len(b.results)-1]
		last.Notes = append(last.Notes, *phases...)
		b.logf("   %s", strings.Join(*phases, "\n   "))
	}
	return err
}

// ingestTwice loads n and 2n records: memory must not follow.
func (b *bench) ingestTwice() error {
	// So many that the merge takes all of the engine's limit already at N: below,
	// it takes what it needs, and that does grow.
	n := b.size(4_500_000, 1000)
	return b.twoSizes("peak memory of an ingest at N and 2N nested records", n, func(path string, n int) error {
		return writeRecords(path, n, &recordWriter{}, crystal(max(1, n/2)))
	}, fmt.Sprintf(nestedFront, "$data/%s", ""))
}

// ingestEqualTwice loads n and 2n equal records.
func (b *bench) ingestEqualTwice() error {
	n := b.size(2_500_000, 1000)
	return b.twoSizes("peak memory of an ingest at N and 2N equal records", n, func(path string, n int) error {
		return writeRecords(path, n, &recordWriter{}, func(w *recordWriter, _ int) { w.flat(1) })
	}, recordFront("$data/%s", "content_id", flatFields()))
}

func (b *bench) twoSizes(name string, n int, write func(path string, n int) error, front string) error {
	dir, err := b.dir("sizes")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var phases []string
	c := comparison{name: fmt.Sprintf("%s, N = %d", name, n), base: "N", targets: []target{{side: "2N", metric: peak, against: "N", max: peakGrowth}}}
	for i, label := range []string{"N", "2N"} {
		file := label + ".ndjson"
		if err := write(filepath.Join(dir, file), (i+1)*n); err != nil {
			return err
		}
		s, err := b.ingestSide(label, filepath.Join(dir, "project-"+label), limited(dir, fmt.Sprintf(front, file)), &phases)
		if err != nil {
			return err
		}
		c.sides = append(c.sides, s)
	}
	return b.compareWith(c, &phases)
}

// ingestLargeAppend adds 4 % to what is stored, a third of it known already.
func (b *bench) ingestLargeAppend() error {
	n := b.size(10_000_000, 5000)
	fresh := max(100, n/25)
	dir, err := b.dir("large-append")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	landing := filepath.Join(dir, "landing")
	const parts = 10
	for i := range parts {
		err := writeRecords(filepath.Join(landing, fmt.Sprintf("%02d.ndjson", i)), n/parts, &recordWriter{}, func(w *recordWriter, k int) { w.flat(i*(n/parts) + k) })
		if err != nil {
			return err
		}
	}
	later, arrived := filepath.Join(dir, "later.ndjson"), filepath.Join(landing, "later.ndjson")
	err = writeRecords(later, fresh, &recordWriter{}, func(w *recordWriter, k int) {
		if k%3 == 0 {
			w.flat(k * 7 % n) // a known one
		} else {
			w.flat(n + k)
		}
	})
	if err != nil {
		return err
	}
	project := filepath.Join(dir, "project")
	p := limited(dir, recordFront("$data/landing", "content_id", flatFields())+"mode: append\n")
	if err := p.writeRbt(project); err != nil {
		return err
	}
	call := func() (usage, error) { return b.runRbt(project, "run") }
	// The stored state is made once, by the first side.
	return b.compare(comparison{
		name: fmt.Sprintf("append of %d records, a third of them known, to %d", fresh, n), base: "full",
		sides: []side{
			{name: "full", run: call, once: true, reset: b.cleared(filepath.Join(project, "lake"), filepath.Join(project, "target"), arrived)},
			{name: "append", run: call, once: true, reset: func() error { return os.Link(later, arrived) }},
		},
		targets: []target{{side: "append", metric: cpu, against: "full", max: appendShare}, {side: "append", metric: wall, against: "full", max: appendShare},
			{side: "append", metric: peak, against: "full", max: 1}},
	})
}

// ingestNothingNew runs an append whose ledger holds 100,000 files.
func (b *bench) ingestNothingNew() error {
	files := b.size(100_000, 100)
	dir, err := b.dir("ledger")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for i := range files {
		path := filepath.Join(dir, "landing", fmt.Sprintf("%03d", i/1000), fmt.Sprintf("%06d.ndjson", i))
		if err := writeRecords(path, 1, &recordWriter{}, func(w *recordWriter, _ int) { w.flat(i) }); err != nil {
			return err
		}
	}
	project := filepath.Join(dir, "project")
	p := limited(dir, recordFront("$data/landing", "content_id", flatFields())+"mode: append\n")
	if err := p.writeRbt(project); err != nil {
		return err
	}
	call := func() (usage, error) { return b.runRbt(project, "run") }
	if _, err := call(); err != nil {
		return err
	}
	return b.compare(comparison{
		name: fmt.Sprintf("a run with nothing new, %d files loaded", files), base: "look",
		sides:   []side{{name: "look", run: func() (usage, error) { return look(filepath.Join(dir, "landing")) }}, {name: "rbt", run: call}},
		targets: []target{{side: "rbt", metric: cpu, against: "look", max: nothingNewShare}},
		notes:   []string{"look is a bare walk over the folder that asks each file for its times: less no comparison can do"},
	})
}

// look walks over a folder and asks for the properties of each file, in this
// process.
func look(dir string) (usage, error) {
	started, before := time.Now(), ownCPU()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		_, err = os.Lstat(path)
		return err
	})
	return usage{WallS: time.Since(started).Seconds(), CPUS: ownCPU() - before}, err
}
