package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// manyProject is n small models that use what real ones use: frontmatter,
// config, ref, var, is_incremental and a macro out of a file of fifty.
func manyProject(data string, n int) neutral {
	p := neutral{
		name: "many", data: data, extra: "vars: {offset: 3}\n",
		sources: []source{{name: "events", path: filepath.Join(data, "events.parquet")}},
	}
	width := max(1, n/10)
	for i := range n {
		from := "{{ source('raw', 'events') }}"
		if i >= width {
			from = fmt.Sprintf("{{ ref('%s') }}", manyName(i-width))
		}
		p.models = append(p.models, model{
			name: manyName(i), folder: fmt.Sprintf("area_%02d", i%20), level: i / width,
			front: fmt.Sprintf("description: model %d of many\ntags: [area_%02d]\n", i, i%20),
			sql: fmt.Sprintf(`{{ config(tags=['many']) }}
with parent as (
  select * from %s
)
select
  k,
  {{ helper_%02d('v') }} as v,
  {{ var('offset') }} as o
from parent
{%% if is_incremental() %%} where k > 10 {%% endif %%}`, from, i%50),
		})
	}
	return p
}

func manyName(i int) string { return fmt.Sprintf("m_%05d", i) }

// writeMany writes the project with its macros.
func writeMany(dir string, p neutral) error {
	var macros strings.Builder
	for i := range 50 {
		fmt.Fprintf(&macros, "{%% macro helper_%02d(column) %%}(%s + %d){%% endmacro %%}\n", i, "{{ column }}", i)
	}
	if err := writeText(filepath.Join(dir, "macros", "helpers.sql"), macros.String()); err != nil {
		return err
	}
	return p.writeRbt(dir)
}

// command is a measured call of rbt.
type measuredCall struct {
	name  string
	args  []string
	reset func() error
	wallS float64 // target; 0 none
	peakB float64 // target; 0 none
	// texts is a folder of files: the bare program reads them and writes as many.
	texts string
}

// runMany is scenario c.
func runMany(b *bench) error {
	if err := b.small(); err != nil {
		return err
	}
	sizes := []int{b.size(1000, 20), b.size(10_000, 200)}
	if b.opt.growth {
		return b.growMany(sizes[1])
	}
	for _, n := range sizes {
		b.logf("   project of %d models", n)
		project, err := b.manyProjectDir(n)
		if err != nil {
			return err
		}
		calls, published := b.manyCalls(project, n)
		if err := b.callAll(strconv.Itoa(n)+" models, nothing published: ", project, calls); err != nil {
			return err
		}
		built, err := b.runRbt(project, "run")
		if err != nil {
			return err
		}
		b.logf("   %d models published: %s", n, built)
		if err := b.readAnew(project, n); err != nil {
			return err
		}
		if err := b.callAll(strconv.Itoa(n)+" models, all published: ", project, published); err != nil {
			return err
		}
	}
	return nil
}

// readAnew makes the first plan after a run, which reads all that the run published:
// what a command remembers of a lake is what it read of it itself. Those after it,
// which are the warm ones, find it remembered.
func (b *bench) readAnew(project string, n int) error {
	return b.compare(comparison{name: strconv.Itoa(n) + " models, all published: plan, the first after a run", sides: []side{{
		name: "rbt", once: true, run: func() (usage, error) { return b.runRbt(project, "plan") },
	}}})
}

// manyProjectDir writes a project of n models with its data.
func (b *bench) manyProjectDir(n int) (string, error) {
	dir, err := b.dir("many-" + strconv.Itoa(n))
	if err != nil {
		return "", err
	}
	if err := b.makeParquet(dir, map[string]string{"events": eventsTable(100)}); err != nil {
		return "", err
	}
	project := filepath.Join(dir, "project")
	return project, writeMany(project, manyProject(dir, n))
}

// manyCalls are the calls on a project of n models, and those that want it published.
func (b *bench) manyCalls(project string, n int) (calls, published []measuredCall) {
	cold := b.cleared(filepath.Join(project, "target"))
	plan := measuredCall{name: "plan, cold", args: []string{"plan"}, reset: cold}
	list := measuredCall{name: "ls, cold", args: []string{"ls"}, reset: cold}
	listWarm := measuredCall{name: "ls, warm", args: []string{"ls"}}
	warm := measuredCall{name: "plan, warm (after another plan)", args: []string{"plan"}}
	compile := measuredCall{name: "compile, cold", args: []string{"compile"}, reset: cold, texts: filepath.Join(project, "models")}
	compileWarm := measuredCall{name: "compile, warm", args: []string{"compile"}}
	check := measuredCall{name: "compile --check", args: []string{"compile", "--check"}, reset: cold}
	idle := measuredCall{name: "run, nothing to do", args: []string{"run"}}
	switch {
	case n >= 10_000:
		list.wallS, plan.wallS, listWarm.wallS, warm.wallS = 1, 1, 0.4, 0.4
		list.peakB, plan.peakB, listWarm.peakB, warm.peakB = 200e6, 200e6, 200e6, 200e6
		compile.wallS, compile.peakB = 1, 250e6
		compileWarm.wallS, compileWarm.peakB = 1, 250e6
	case n == 1000:
		idle.wallS = 0.5
		check.wallS = 1
	}
	one := measuredCall{name: "run of one model", args: []string{"run", "--force", "-s", manyName(n / 2)}}
	return []measuredCall{list, listWarm, plan, compile, compileWarm, check}, []measuredCall{warm, idle, one,
		{name: "run, nothing to do, no cache", args: []string{"run"}, reset: cold}}
}

// callAll measures calls, one case each.
func (b *bench) callAll(prefix, project string, calls []measuredCall) error {
	for _, call := range calls {
		c := comparison{name: prefix + call.name, sides: []side{{
			name: "rbt", reset: call.reset, run: func() (usage, error) { return b.runRbt(project, call.args...) },
		}}}
		if call.texts != "" {
			c.sides, c.base = append(c.sides, b.bareTexts(call.texts)), "bare"
			c.notes = []string{"bare: a loop that reads as many files and writes them anew, on all cores"}
		}
		if call.wallS > 0 {
			c.targets = append(c.targets, target{side: "rbt", metric: wall, max: call.wallS})
		}
		if call.peakB > 0 {
			c.targets = append(c.targets, target{side: "rbt", metric: peak, max: call.peakB})
		}
		if err := b.compare(c); err != nil {
			return err
		}
	}
	return nil
}

// bareTexts reads all files of a folder and writes them into a new one.
func (b *bench) bareTexts(from string) side {
	dir := filepath.Join(b.work, b.scenario)
	to := filepath.Join(dir, "texts")
	return side{name: "bare", reset: b.cleared(to), run: func() (usage, error) {
		return b.runJob(dir, "texts", job{Texts: from, To: to})
	}}
}

// small measures the calls that must not be felt.
func (b *bench) small() error {
	if b.opt.growth {
		return nil
	}
	target, err := b.dir("small")
	if err != nil {
		return err
	}
	return b.callAll("", b.root, []measuredCall{
		{name: "version", args: []string{"version"}, wallS: 0.030},
		{name: "ls of the demo project", args: []string{"ls", "--target-path", target}, wallS: 0.050},
	})
}

// growMany reports how each call grows with the number of models.
func (b *bench) growMany(size int) error {
	for _, call := range []string{"ls", "plan", "compile", "run"} {
		err := b.grow("rbt "+call+" of small models", "models", size, func(n int) ([]side, error) {
			project, err := b.manyProjectDir(n)
			if err != nil {
				return nil, err
			}
			remove := b.cleared(filepath.Join(project, "target"), filepath.Join(project, "lake"))
			return []side{{name: "rbt", reset: remove, run: func() (usage, error) { return b.runRbt(project, call) }}}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
