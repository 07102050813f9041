package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// foreseenFiles is the number of files of one source above which a run does not
// look into their headers before it starts: for more, a second look costs more
// than finding a mistake early is worth.
const foreseenFiles = 200

// foresight is what a run that is about to start will build, and what it will
// read as it is published. A nil foresight knows of no published data.
type foresight struct {
	run   *run
	steps map[*plan.Node]*plan.Step // of what may be built
}

// published reports whether the run reads a node as it lies in a lake.
func (f *foresight) published(n *plan.Node) bool {
	switch {
	case f == nil || n.Source != nil:
		return false
	case n.Model != nil && n.Model.Materialization == project.Ephemeral:
		return false
	}
	return f.steps[n] == nil
}

// appends reports whether the run adds to what is published of a node.
func (f *foresight) appends(n *plan.Node) bool {
	return f != nil && f.steps[n] != nil && f.steps[n].Incremental
}

// stored makes a published node known by its receipt.
func (c *checker) stored(ctx context.Context, s *session, n *plan.Node) error {
	pub, ok, err := c.during.run.publishedNode(n)
	if err != nil || !ok || pub.foreign || pub.damage != nil {
		return nil // what this comes to is told when it is read
	}
	for _, o := range pub.receipt.Outputs {
		if len(o.Columns) == 0 {
			return nil
		}
		if err := c.define(ctx, s, n, "main", o.Relation, o.Columns); err != nil {
			return err
		}
	}
	return nil
}

// increment binds what will be appended to a published model, whose columns stay.
func (c *checker) increment(ctx context.Context, s *session, n *plan.Node) error {
	if err := c.stored(ctx, s, n); err != nil || !c.knows([]*plan.Node{n}) {
		return err
	}
	_, err := c.bind(ctx, s, n, n.Increment)
	return err
}

// errNeedsRows is given to a template that asks for rows where there are none.
var errNeedsRows = errors.New("rows are known only when the model runs")

// recompile renders a model whose template asks the database. Columns can be told
// before anything is published, rows cannot: then the result is nil.
func (c *checker) recompile(ctx context.Context, s *session, n *plan.Node, compiled *project.Compiled) (*project.Compiled, error) {
	needsRows := false
	told, problems := c.e.o.Project.Compile(ctx, n.Model, project.CompileOptions{
		Incremental: compiled == n.Increment, RunStartedAt: c.e.o.Now(),
		Query: func(sql string) ([]string, [][]any, error) {
			if word, ok := firstWord(sql); !ok || word != "describe" {
				needsRows = true
				return nil, nil, errNeedsRows
			}
			return s.readOnly(ctx, sql)
		},
	})
	if needsRows {
		return nil, nil
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return told, lateRefs(n, told.Refs)
}

// lateRefs refuses references that a template met only now that it could ask the
// database: nothing made sure that they are there.
func lateRefs(n *plan.Node, refs []project.Ref) error {
	var problems diag.List
	for _, ref := range refs {
		known := slices.ContainsFunc(n.Refs, func(r project.Ref) bool {
			return r.Node == ref.Node && r.Output == ref.Output && r.Source == ref.Source
		})
		if known {
			continue
		}
		call := "ref('" + ref.Node + "')"
		if group, table, ok := strings.Cut(ref.Node, "."); ok && ref.Source {
			call = "source('" + group + "', '" + table + "')"
		}
		problems = append(problems, diag.Errorf(diag.LateRef, ref.Pos, "%s is met only when %s runs, so it is no dependency", call, n.Name).
			WithHint("name it where it is always met: -- depends_on: {{ %s }}", call))
	}
	return problems.Err()
}

// foresee binds what the run will build, before anything is built, so that a
// misspelt column in the last model is told first. What cannot be foreseen is
// left to the turn of its node.
func (r *run) foresee(ctx context.Context) {
	f := &foresight{run: r, steps: map[*plan.Node]*plan.Step{}}
	var nodes []*plan.Node
	for _, s := range r.plan.Steps {
		switch s.Action {
		case plan.ActionRun:
			nodes = append(nodes, s.Node)
			f.steps[s.Node] = s
		case plan.ActionRunIfChanged:
			f.steps[s.Node] = s
		}
	}
	if len(nodes) == 0 {
		return
	}
	c, err := r.e.bindEmpty(ctx, r.plan.Graph, nodes, f)
	if err != nil {
		return
	}
	r.foreseen, r.foretold = map[*plan.Node]error{}, c
	r.catalog.sources = c.sources
	for _, n := range nodes {
		if n.Model != nil && n.Model.Records == nil {
			if err := c.problem(n); err != nil {
				r.foreseen[n] = inFile(err, n.File)
			}
		}
	}
}

// problem is what keeps a node from being built: its own mistake, or that of an
// ephemeral model whose text it contains.
func (c *checker) problem(n *plan.Node) error {
	for todo := []*plan.Node{n}; len(todo) > 0; {
		at := todo[0]
		todo = todo[1:]
		if err := c.problems[at]; err != nil {
			return inFile(err, at.File)
		}
		for _, p := range at.Parents {
			if p.Model != nil && p.Model.Materialization == project.Ephemeral {
				todo = append(todo, p)
			}
		}
	}
	return nil
}

// hopeless is why a step that would be built is known to fail; nil where it is
// not.
func (r *run) hopeless(s *plan.Step) error {
	switch {
	case s.Action != plan.ActionRun:
		return nil
	case s.Refused != nil:
		return s.Refused
	}
	return r.foreseen[s.Node]
}

// foreseenJob is the job of a step; one that is known to fail waits for nothing.
func (r *run) foreseenJob(s *plan.Step) job {
	if r.hopeless(s) != nil {
		return job{urgent: true}
	}
	return job{after: places(s.After), looks: places(s.Looks)}
}
