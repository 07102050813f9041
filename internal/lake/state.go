package lake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Node is what the lake holds of one node. Its receipt's outputs list the files
// that count: those of the manifest where there is one.
type Node struct {
	Receipt  Receipt
	Manifest *Manifest // of the forms parts, incremental and ingest
	// Recorded is false where no receipt of the node exists. Last is the commit
	// that the receipt names: the one that the next publish replaces.
	Recorded bool
	Last     string
	// Adopted is true where the data was committed by a run that ended before
	// its receipt: it counts as published, and Recover writes the receipt.
	Adopted bool
	// Foreign is true where what lies in the node's place was published by no
	// run that rbt knows of: it can be read, and not be replaced without a full
	// refresh.
	Foreign bool
	// Damage says why what is published cannot be relied on; nil where it can.
	// It is a *DamageError, or what the system said on reading.
	Damage error
	// Others are paths of further data under the node's name that no receipt
	// accounts for.
	Others []string
}

// Output finds one relation of the node.
func (n Node) Output(relation string) (Output, bool) {
	for _, o := range n.Receipt.Outputs {
		if strings.EqualFold(o.Relation, relation) {
			return o, true
		}
	}
	return Output{}, false
}

// State is the content of a lake at one time. It is not changed after it was
// read.
type State struct {
	Root  string
	Nodes map[string]Node // by name as the receipt spells it
	// Foreign lists data that no receipt accounts for and that Recover would
	// not adopt: paths relative to the lake, sorted.
	Foreign []string
}

// Orphans lists nodes with a receipt that known does not name, sorted.
func (s State) Orphans(known func(name string) bool) []string {
	var names []string
	for name, n := range s.Nodes {
		if n.Recorded && !known(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ReadState reads everything that is published, without a lock: what a run that
// goes on beside it commits meanwhile is seen either before or after. A node
// that is damaged is no error here but says so itself.
func (l *Lake) ReadState(ctx context.Context) (State, error) {
	found, err := l.scan(ctx)
	if err != nil {
		return State{}, err
	}
	return l.readState(ctx, found)
}

func (l *Lake) readState(ctx context.Context, found *inventory) (State, error) {
	candidates := found.byName()
	names, err := l.receiptNames()
	if err != nil {
		return State{}, err
	}
	recorded := len(names)
	known := make(map[string]bool, recorded)
	for _, n := range names {
		known[n] = true
	}
	var rest []string
	for name := range candidates {
		if !known[name] {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	names = append(names, rest...)

	// Only here: a node that is read alone was often written just now.
	with := *l
	with.recalling = l.memory
	nodes := make([]Node, len(names))
	here := make([]bool, len(names))
	parallel(len(names), func(i int) {
		if ctx.Err() == nil {
			nodes[i], here[i] = with.readNode(names[i], candidates[names[i]])
		}
	})
	if err := ctx.Err(); err != nil {
		return State{}, err
	}
	s := State{Root: l.root, Nodes: make(map[string]Node, len(names))}
	for i, name := range names {
		if !here[i] {
			continue
		}
		s.Nodes[name] = nodes[i]
		if nodes[i].Foreign {
			s.Foreign = append(s.Foreign, nodes[i].Receipt.Path)
		}
		s.Foreign = append(s.Foreign, nodes[i].Others...)
	}
	slices.Sort(s.Foreign)
	s.Foreign = slices.Compact(s.Foreign)
	return s, nil
}

// ReadNode reads one node; folders are where its data may lie besides the place
// that its receipt names. False means that nothing of it is there.
func (l *Lake) ReadNode(name string, folders ...string) (Node, bool, error) {
	if err := checkName(name); err != nil {
		return Node{}, false, err
	}
	candidates, err := l.candidatesIn(name, folders)
	if err != nil {
		return Node{}, false, err
	}
	n, ok := l.readNode(name, candidates)
	return n, ok, nil
}

// receiptNames lists the nodes that have a receipt, or only a staged one.
func (l *Lake) receiptNames() ([]string, error) {
	entries, err := l.fs.ReadDir(l.abs(stateDir))
	if notExist(err) {
		return nil, l.ownFolders()
	}
	if err != nil {
		return nil, fmt.Errorf("list receipts of lake %s: %w", l.root, err)
	}
	var names []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), receiptSuffix)
		if !ok && isTemp(e.Name()) {
			name, ok = strings.CutSuffix(strings.TrimSuffix(e.Name()[1:], tempSuffix), receiptSuffix)
		}
		if ok && checkName(name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// readTries bounds how often a node is read again because a run published it
// meanwhile. Publishes of one node are far apart, but a reader that gets little of a
// loaded machine can meet several in a row.
const readTries = 32

// readNode decides what of a node counts. A reader has no lock: where the files
// do not fit the receipt and the receipt has changed meanwhile, it starts again.
func (l *Lake) readNode(name string, candidates []candidate) (Node, bool) {
	var node Node
	var here bool
	seen := ""
	for range readTries {
		receipt, err := l.knownReceipt(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			node, here = l.unrecorded(name, candidates)
			receipt.Commit = "none"
		case err != nil:
			return Node{Receipt: Receipt{Name: name}, Recorded: true, Damage: err}, true
		default:
			node, here = l.recorded(receipt, candidates), true
		}
		if here && node.Damage == nil && !node.Foreign || receipt.Commit == seen {
			break
		}
		seen = receipt.Commit
	}
	return node, here
}

// recorded compares a receipt with what lies in the lake.
func (l *Lake) recorded(r Receipt, candidates []candidate) Node {
	own := candidate{name: r.Name, path: r.Path, form: candidateForm(r.Form)}
	var node Node
	if r.Form == FormView {
		node = Node{Receipt: r}
	} else {
		node = l.examine(own, &r)
	}
	superseded := make(map[string]bool, len(r.Superseded))
	for _, s := range r.Superseded {
		superseded[s] = true
	}
	for _, c := range candidates {
		if c.path == r.Path && r.Form != FormView {
			continue
		}
		other := l.examine(c, &r)
		switch {
		case other.Adopted:
			node = other
		case other.Receipt.Path == "" || superseded[c.path] || superseded[c.manifest()]:
		default:
			node.Others = append(node.Others, c.path)
		}
	}
	node.Recorded, node.Last = true, r.Commit
	return node
}

// unrecorded finds a node without a receipt.
func (l *Lake) unrecorded(name string, candidates []candidate) (Node, bool) {
	var node Node
	here := false
	for _, c := range candidates {
		n := l.examine(c, nil)
		switch {
		case n.Receipt.Path == "" && n.Damage == nil: // a folder of parts without a manifest: nothing was committed
		case !here:
			node, here = n, true
		case n.Adopted && !node.Adopted:
			n.Others = append(n.Others, node.Receipt.Path)
			node = n
		default:
			node.Others = append(node.Others, c.path)
		}
	}
	return node, here
}

// parallel calls work for 0..n-1 on as many goroutines as can run at once, at
// most 8.
func parallel(n int, work func(i int)) {
	// A goroutine takes several at once, so that handing them out costs nothing
	// beside small work.
	const chunk = 8
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), 8, (n+chunk-1)/chunk) {
		wg.Go(func() {
			for from := int(next.Add(chunk)) - chunk; from < n; from = int(next.Add(chunk)) - chunk {
				for i := from; i < min(n, from+chunk); i++ {
					work(i)
				}
			}
		})
	}
	wg.Wait()
}
