package ingest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"rbt/internal/diag"
)

// maxRaw is how much of a bad record _rejects.raw repeats, in bytes.
const maxRaw = 4096

// reject is one bad record.
type reject struct {
	pos            int64
	file           string
	line           int64
	offset, length int64
	path           string // of the record in its document
	field          string
	reason, msg    string
	raw            []byte
	fatal          bool // the policy for this reason is fail
}

// append writes the reject as a row.
func (r *reject) append(b *tableBuf) {
	b.cols[0].int64(r.pos)
	b.cols[1].int64(r.line)
	if r.offset >= 0 {
		b.cols[2].int64(r.offset)
	} else {
		b.cols[2].null()
	}
	if r.length > 0 {
		b.cols[3].int64(r.length)
	} else {
		b.cols[3].null()
	}
	for i, s := range []string{r.path, r.field, r.reason, r.msg} {
		if s == "" {
			b.cols[4+i].null()
		} else {
			b.cols[4+i].text([]byte(validText(s)))
		}
	}
	b.cols[8].text([]byte(validText(string(r.raw[:min(len(r.raw), maxRaw)]))))
	b.rows++
}

// validText makes bytes that are no UTF-8 storable; they show as U+FFFD.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// fieldPath joins the fault's path, innermost first, as a.b[3].c.
func fieldPath(path []string) string {
	var b strings.Builder
	for _, p := range slices.Backward(path) {
		if b.Len() > 0 && !strings.HasPrefix(p, "[") {
			b.WriteByte('.')
		}
		b.WriteString(p)
	}
	return b.String()
}

// at says where in the file, for formats in which bytes have places.
func (r *reject) at() string {
	if r.offset < 0 {
		return ""
	}
	return fmt.Sprintf("byte %d: ", r.offset)
}

// told says what is wrong with the record, and in which field where it is one.
func (r *reject) told() string {
	if r.field == "" {
		return fmt.Sprintf("%s%s: %s", r.at(), r.reason, r.msg)
	}
	return fmt.Sprintf("%s%s: %s: %s", r.at(), r.field, r.reason, r.msg)
}

// shownRejects is how many rejects an aborted load names.
const shownRejects = 5

// earlyStop is the largest max_rejects for which positions are kept to stop a
// hopeless load early; above, the count is taken at the end.
const earlyStop = 100_000

// gate decides where a load stops. It works by position and not by time, so
// that the reasons given do not depend on which worker was faster: everything
// before the stop is still read.
type gate struct {
	mu    sync.Mutex
	max   int64 // -1: no early stop
	stop  int64 // positions above are not read any more
	fatal *reject
	first []reject // the first few by position
	heap  []int64  // the smallest max+1 positions, the largest on top
	total int64
}

const noStop = int64(1<<63 - 1)

func newGate(p *Program) *gate {
	g := &gate{max: p.maxRejects, stop: noStop}
	if g.max > earlyStop {
		g.max = -1
	}
	return g
}

func (g *gate) beyond(pos int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return pos > g.stop
}

// note takes a reject in and moves the stop where it has to.
func (g *gate) note(r *reject) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total++
	i, _ := slices.BinarySearchFunc(g.first, r.pos, func(x reject, pos int64) int {
		if x.pos < pos {
			return -1
		}
		return 1
	})
	if i < shownRejects {
		g.first = slices.Insert(g.first, i, *r)
		g.first = g.first[:min(len(g.first), shownRejects)]
	}
	if r.fatal {
		if g.fatal == nil || r.pos < g.fatal.pos {
			kept := *r
			g.fatal = &kept
		}
		g.stop = min(g.stop, r.pos)
	}
	if g.max < 0 {
		return
	}
	if int64(len(g.heap)) <= g.max {
		g.push(r.pos)
	} else if r.pos < g.heap[0] {
		g.heap[0] = r.pos
		g.sift()
	}
	if int64(len(g.heap)) == g.max+1 {
		g.stop = min(g.stop, g.heap[0])
	}
}

func (g *gate) push(pos int64) {
	g.heap = append(g.heap, pos)
	for i := len(g.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if g.heap[up] >= g.heap[i] {
			return
		}
		g.heap[up], g.heap[i] = g.heap[i], g.heap[up]
		i = up
	}
}

func (g *gate) sift() {
	for i := 0; ; {
		big := i
		for _, c := range []int{2*i + 1, 2*i + 2} {
			if c < len(g.heap) && g.heap[c] > g.heap[big] {
				big = c
			}
		}
		if big == i {
			return
		}
		g.heap[big], g.heap[i] = g.heap[i], g.heap[big]
		i = big
	}
}

// verdict is the error that the rejects amount to, if any. records counts the
// loaded ones.
func (g *gate) verdict(p *Program, records int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f := g.fatal; f != nil && (g.max < 0 || int64(len(g.heap)) <= g.max || f.pos <= g.heap[0]) {
		d := diag.Errorf(diag.IngestBadRecord, diag.Pos{File: f.file, Line: int(f.line)}, "%s", f.told())
		return d.WithHint("mend the record, or let on_bad_record: quarantine set such records aside")
	}
	limit, over := "", false
	if p.maxRejects >= 0 {
		over = g.total > p.maxRejects
		limit = fmt.Sprint(p.maxRejects)
	} else {
		over = float64(g.total) > p.maxShare*float64(g.total+records)
		limit = fmt.Sprintf("%g%% of the records", p.maxShare*100)
	}
	if !over {
		return nil
	}
	d := diag.Errorf(diag.IngestTooManyRejects, diag.Pos{File: g.first[0].file, Line: int(g.first[0].line)}, "more records are bad than max_rejects allows (%s)", limit)
	first := g.first
	if g.max >= 0 {
		// Rejects after the stop are seen or not as it happens.
		first = first[:min(int64(len(first)), g.max+1)]
	}
	for i := range first {
		r := &first[i]
		d = d.WithNote(diag.Pos{File: r.file, Line: int(r.line)}, "%s", r.told())
	}
	return d.WithHint("mend the input, or raise max_rejects")
}
