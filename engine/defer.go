package engine

import (
	"fmt"
	"strings"

	"rbt/internal/lake"
)

// pinDeferred pins what the plan reads from another lake and makes it known. The
// pins stand in this lake, and the caller closes them: the other lake is only
// read, and a run there may publish anew meanwhile.
func (r *run) pinDeferred() (*lake.Pins, error) {
	pins := r.e.o.Lake.NewPins(r.e.o.PID)
	if r.o.DeferLake == nil {
		return pins, nil
	}
	for _, n := range r.plan.Deferred {
		folder := ""
		if n.Model != nil {
			folder = n.Model.Path
		}
		pinned, ok, err := pins.Pin(r.o.DeferLake, n.Name, folder)
		if err != nil {
			return pins, fmt.Errorf("read %s of the lake %s: %w", n.Name, r.o.DeferLake.Root(), err)
		}
		if ok {
			r.published[strings.ToLower(n.Name)] = (&pinnedNode{from: r.o.DeferLake, folder: folder, pinned: pinned}).published()
		}
	}
	return pins, nil
}

func (p *pinnedNode) published() publishedNode {
	n := p.pinned.Node
	return publishedNode{receipt: n.Receipt, foreign: n.Foreign, damage: n.Damage, files: p.files}
}
