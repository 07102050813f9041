package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rbt/internal/lake"
)

// definition is a model of the simulated project. What it computes depends on
// number/2 only, so that some edits have no effect.
type definition struct {
	materialization string
	number          int
	parents         []string // sorted; "" is the source
}

func (d definition) file() string {
	sql := fmt.Sprintf("---\nmaterialization: %s\n---\nselect %d as a", d.materialization, d.number)
	for i, p := range d.parents {
		word := " from "
		if i > 0 {
			word = " join "
		}
		if p == "" {
			sql += word + "{{ source('raw', 't') }}"
		} else {
			sql += word + "{{ ref('" + p + "') }}"
		}
	}
	return sql + "\n"
}

// simulation is a world in which every relation has a content: a text that
// names all that went into it.
type simulation struct {
	*world
	now     map[string]definition // in the project
	views   map[string]definition // as published
	tables  map[string]string     // content as published
	source  int
	hashing bool // content hashes are kept
}

// read gives the content of a relation for what reads it now.
func (s *simulation) read(name string) string {
	if name == "" {
		return fmt.Sprintf("raw%d", s.source)
	}
	if s.now[name].materialization == "ephemeral" {
		return s.compute(s.now[name])
	}
	if d, ok := s.views[name]; ok {
		return s.compute(d)
	}
	return s.tables[name]
}

func (s *simulation) compute(d definition) string {
	parts := []string{fmt.Sprint(d.number / 2)}
	for _, p := range d.parents {
		parts = append(parts, s.read(p))
	}
	return "(" + strings.Join(parts, " ") + ")"
}

// act acts a run out and checks every step that is left as it is: building it
// would give what is published.
func (s *simulation) act(t *rapid.T, p *Plan) {
	settler := p.NewSettler()
	nodes := map[string]lake.Node{}
	for name, n := range s.state.Nodes {
		nodes[name] = n
	}
	for _, step := range p.Steps {
		name := step.Node.Name
		d := Decision{Action: step.Action, Fingerprint: step.Fingerprint, Inputs: step.Inputs, Reasons: step.Reasons}
		if step.Pending {
			d = settler.Decide(step)
		}
		def := s.now[name]
		if d.Action != ActionRun {
			if want, have := s.compute(def), s.read(name); want != have {
				t.Fatalf("%s is left unchanged (%v), and building it would turn %s into %s", name, d.Reasons, have, want)
			}
			continue
		}
		delete(s.views, name)
		delete(s.tables, name)
		delete(s.content, name)
		if def.materialization == "view" {
			s.views[name] = def
		} else {
			s.tables[name] = s.compute(def)
			if s.hashing {
				s.content[name] = s.tables[name]
			}
		}
		n := s.publish(step, d)
		nodes[name] = n
		settler.Done(step, &n.Receipt)
	}
	s.state = lake.State{Nodes: nodes}
}

// TestNothingStaleIsKept edits and runs a random project in part and in whole,
// and checks that what is left unchanged is what a build would make.
func TestNothingStaleIsKept(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := &simulation{world: newWorld(t, map[string]string{
			"project.yml": "name: shop\nsources:\n  - name: raw\n    tables: [{name: t, path: t.csv, columns: {a: BIGINT}}]\n",
		}), now: map[string]definition{}, views: map[string]definition{}, tables: map[string]string{}}
		count := rapid.IntRange(2, 6).Draw(rt, "models")
		for i := range count {
			s.draw(rt, i)
		}
		for range rapid.IntRange(1, 8).Draw(rt, "actions") {
			switch rapid.IntRange(0, 3).Draw(rt, "action") {
			case 0:
				s.draw(rt, rapid.IntRange(0, count-1).Draw(rt, "edited"))
			case 1:
				s.source++
			case 2:
				s.hashing = rapid.Bool().Draw(rt, "hashing")
			default:
				s.files["raw.t"] = map[string]lake.FileStamp{"t.csv": {Size: int64(s.source)}}
				var words []string
				for i := range count {
					if rapid.IntRange(0, 2).Draw(rt, "selected") == 0 {
						words = append(words, fmt.Sprintf("m%d", i))
					}
				}
				if p, diags := s.tryPlan(words...); !diags.HasErrors() {
					s.act(rt, p)
				}
			}
		}
		s.files["raw.t"] = map[string]lake.FileStamp{"t.csv": {Size: int64(s.source)}}
		s.act(rt, s.plan())
		for _, step := range s.plan().Steps {
			if step.Action != ActionUnchanged {
				rt.Errorf("after a whole run %s would %s: %v", step.Node.Name, step.Action, step.Reasons)
			}
		}
		for name, have := range s.tables {
			// What an ephemeral was before lies there and is read by nobody.
			if want := s.compute(s.now[name]); have != want && s.now[name].materialization != "ephemeral" {
				rt.Errorf("after a whole run %s is %s instead of %s", name, have, want)
			}
		}
	})
}

// draw writes model i anew: it reads models before it, or the source.
func (s *simulation) draw(t *rapid.T, i int) {
	d := definition{
		materialization: rapid.SampledFrom([]string{"table", "view", "ephemeral"}).Draw(t, "materialization"),
		number:          rapid.IntRange(0, 5).Draw(t, "number"),
	}
	for p := range i {
		if rapid.IntRange(0, 1).Draw(t, "reads") == 0 {
			d.parents = append(d.parents, fmt.Sprintf("m%d", p))
		}
	}
	if len(d.parents) == 0 {
		d.parents = []string{""}
	}
	slices.Sort(d.parents)
	name := fmt.Sprintf("m%d", i)
	s.now[name] = d
	s.write(map[string]string{"models/" + name + ".sql": d.file()})
}
