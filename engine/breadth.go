package engine

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"rbt/internal/lake"
	"rbt/internal/project"
)

// A query of few rows is done by the thread that asks for it before another one
// has woken up, and to wake that costs up to a fifth of the CPU time of a run of
// small models, which are built several at once anyhow. So a run begins with one
// thread a query, and goes on with all of them from the first step on that may have
// more to do: it is never wrong to go on so, and to have begun otherwise costs one
// query that could have been faster.
const (
	// narrowBytes is how large all files are at most that a step reads which one
	// thread may build. They may be compressed: the rows count as well.
	narrowBytes = 1 << 20
	// narrowRows is how many rows these files hold at most: some milliseconds of one
	// core.
	narrowRows = 100_000
	// narrowTakes is how long such a step may take before it was no small one, on a
	// machine that has much else to do, too.
	narrowTakes = time.Second
)

// breadth is how many threads of the engine may work at one query.
type breadth struct {
	mu     sync.Mutex
	narrow bool // one
	all    int  // what the project says; 0 is what the engine takes by itself
}

// narrow lets one thread do each query until widen is called. That it cannot be set
// costs time and nothing else.
func (d *database) narrow(ctx context.Context) {
	d.breadth.mu.Lock()
	defer d.breadth.mu.Unlock()
	if d.breadth.narrow || d.breadth.all == 1 {
		return
	}
	_, err := d.db.ExecContext(ctx, "SET GLOBAL threads = 1")
	d.breadth.narrow = err == nil
}

// widen lets all threads work at each query that begins from now on.
func (d *database) widen(ctx context.Context) error {
	d.breadth.mu.Lock()
	defer d.breadth.mu.Unlock()
	if !d.breadth.narrow {
		return nil
	}
	all := "RESET GLOBAL threads"
	if d.breadth.all > 0 {
		all = fmt.Sprintf("SET GLOBAL threads = %d", d.breadth.all)
	}
	if _, err := d.db.ExecContext(ctx, all); err != nil {
		return fmt.Errorf("set the threads of the SQL engine: %w", plainError(err))
	}
	d.breadth.narrow = false
	return nil
}

// widened gives back all threads when a run is over, unless something of it still
// runs and ends with the process.
func (r *run) widened(ctx context.Context) error {
	r.e.mu.Lock()
	db := r.e.db
	if r.e.stuck {
		db = nil
	}
	r.e.mu.Unlock()
	if db == nil {
		return nil
	}
	return db.widen(context.WithoutCancel(ctx))
}

// spread settles before a step is run how many threads its queries need: all of
// them unless what it reads is known to be little, and all of them once it takes
// longer than that does. done ends the watch.
func (b *builder) spread(ctx context.Context) (done func(), err error) {
	db := b.session.db
	if !b.little() {
		return func() {}, db.widen(ctx)
	}
	late := time.AfterFunc(narrowTakes, func() { _ = db.widen(ctx) })
	return func() { late.Stop() }, nil
}

// little reports whether one thread does for a step: a seed or a text that shows all
// that it reads, over few rows, and no test that reads more than the step itself.
func (b *builder) little() bool {
	for _, t := range b.step.Gates {
		if n := b.run.tests[t]; n == nil || n.Compiled != nil || len(n.Reads) > 1 {
			return false
		}
	}
	var sum size
	n := b.step.Node
	if n.Seed != nil {
		return addFileSize(b.reads[0], &sum)
	}
	if b.compiled == nil || b.volatile != "" || !b.text.plain() {
		return false
	}
	for _, ref := range n.Refs {
		if !b.run.addSize(ref, &sum) {
			return false
		}
	}
	return !b.step.Incremental || b.run.addSize(project.Ref{Node: n.Name}, &sum)
}

// size is how much there is to read.
type size struct{ rows, bytes int64 }

func (s size) little() bool { return s.rows <= narrowRows && s.bytes <= narrowBytes }

// addSize adds what stands in the files of a relation; false where that is not
// known, or more than little.
func (r *run) addSize(ref project.Ref, sum *size) bool {
	rel, ok := r.catalog.lookup(ref.Relation())
	if !ok {
		return false
	}
	if rel.node.Source != nil {
		return addFileSize(rel, sum)
	}
	pub, ok, err := r.publishedNode(rel.node)
	if err != nil || !ok || pub.damage != nil || pub.receipt.Form == lake.FormView {
		return false
	}
	for _, o := range pub.receipt.Outputs {
		sum.rows += o.Rows
		for _, f := range o.Files {
			sum.bytes += f.Bytes
		}
	}
	return sum.little()
}

// addFileSize adds the size of the files of a source or seed, where one
// look at each shows it: of other files than Parquet a row has a byte at least.
func addFileSize(rel *relation, sum *size) bool {
	rel.mu.Lock()
	table, footers := rel.table, rel.footers
	rel.mu.Unlock()
	if table == nil || len(table.files) > inPlaceFiles {
		return false
	}
	for _, file := range table.files {
		info, err := os.Stat(file)
		if err != nil || compressionOf(file, table.options) != "none" {
			return false
		}
		sum.bytes += info.Size()
	}
	if !sum.little() {
		return false
	}
	rows, known := footers.count()
	if table.format != "parquet" {
		rows, known = sum.bytes/2, true // a digit and a line break
	}
	sum.rows += rows
	return known && sum.little()
}
