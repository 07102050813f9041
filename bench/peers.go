package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// peerState says whether a tool is there to be measured.
type peerState struct {
	version string
	reason  string // why it is not; "" it is
	dir     string // where it is installed
}

// peer is another tool that does the same work.
type peer struct {
	name     string
	packages []string // of the package registry of its language, pinned
	cargo    bool     // a Rust tool; else a Python one
	// side writes the project in the tool's format and is its way to run it.
	side func(b *bench, tool peerState, dir string, p neutral) (side, error)
	// fasterBy is how much faster rbt promises to be, by scenario; 0 nothing
	// promised.
	fasterBy map[string]float64
}

// duckdbPin is the engine of every Python tool: the version that rbt has
// inside, so that the tools differ and not the engine.
const duckdbPin = "duckdb==1.5.6"

// modelPeers are the tools that build models.
func modelPeers() []peer {
	dbt := []string{"dbt-core==1.11.16", "dbt-duckdb==1.11.1", duckdbPin}
	return []peer{
		{name: "dbt-duckdb external", packages: dbt, side: dbtExternal, fasterBy: map[string]float64{"b": 20}},
		{name: "dbt-duckdb table", packages: dbt, side: dbtTable, fasterBy: map[string]float64{"b": 20}},
		{name: "sqlmesh", packages: []string{"sqlmesh==0.236.4", duckdbPin}, side: sqlmeshSide, fasterBy: map[string]float64{"b": 20}},
		{name: "rbt-datalake", packages: []string{"rbt-datalake@0.13.0"}, cargo: true, side: datalakeSide, fasterBy: map[string]float64{"b": 2, "d": 2}},
		{name: "yato", packages: []string{"yato-lib==0.0.17", duckdbPin}, side: yatoSide},
	}
}

// peerSides are the sides and targets of the other tools; none without
// -peers. A tool that cannot be had is left out, and the report says why.
func (b *bench) peerSides(dir string, p neutral) ([]side, []target) {
	var sides []side
	var targets []target
	if !b.opt.peers {
		return nil, nil
	}
	for _, t := range modelPeers() {
		if !b.wanted(t.name) {
			continue
		}
		tool := b.install(t)
		if tool.reason != "" {
			continue
		}
		s, err := t.side(b, tool, filepath.Join(dir, strings.ReplaceAll(t.name, " ", "-")), p)
		if err != nil {
			s.run = func() (usage, error) { return usage{}, err }
		}
		s.name = t.name
		sides = append(sides, s)
		if by := t.fasterBy[b.scenario]; by > 0 {
			targets = append(targets, target{side: "rbt", metric: wall, against: t.name, max: 1 / by})
		}
	}
	return sides, targets
}

// install puts a tool into an environment of its own under the working folder,
// once, from the package registry of its language.
func (b *bench) install(t peer) peerState {
	want := strings.Join(t.packages, " ")
	if state, known := b.tools[want]; known {
		return state
	}
	folder := strings.FieldsFunc(t.packages[0], func(r rune) bool { return r == '=' || r == '@' || r == '[' })[0]
	state := peerState{version: want, dir: filepath.Join(b.work, "peers", folder)}
	stamp := filepath.Join(state.dir, "installed.txt")
	if had, err := os.ReadFile(stamp); err != nil || string(had) != want {
		b.logf("   installing %s", want)
		if err := b.installAfresh(t, state.dir); err != nil {
			state.reason = err.Error()
			b.logf("   %s: %v", want, err)
		} else if err := writeText(stamp, want); err != nil {
			state.reason = err.Error()
		}
	}
	b.tools[want] = state
	return state
}

// wanted says whether a tool is among those asked for.
func (b *bench) wanted(name string) bool {
	return b.opt.tools == "" || slices.ContainsFunc(strings.Split(b.opt.tools, ","), func(want string) bool {
		return strings.HasPrefix(name, strings.TrimSpace(want))
	})
}

// installAfresh installs into a folder. A Rust tool takes up a build that was
// cut short: it takes half an hour on two cores.
func (b *bench) installAfresh(t peer, dir string) error {
	var steps []*exec.Cmd
	if t.cargo {
		name, version, _ := strings.Cut(t.packages[0], "@")
		steps = append(steps, b.command("", "cargo", "install", name, "--version", version, "--locked", "--root", dir, "--target-dir", filepath.Join(dir, "target")))
	} else {
		steps = append(steps, b.command("", "python3", "-m", "venv", "--clear", dir),
			b.command("", filepath.Join(dir, "bin", "pip"), append([]string{"install", "-q"}, t.packages...)...))
	}
	for _, cmd := range steps {
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("install %s: %w: %s", strings.Join(t.packages, " "), err, tail(out, 1))
		}
	}
	if t.cargo {
		return os.RemoveAll(filepath.Join(dir, "target"))
	}
	return nil
}

// tool is a call of an installed tool in a folder, with more environment.
func (b *bench) tool(tool peerState, dir, bin string, env []string, args ...string) *exec.Cmd {
	cmd := b.command(dir, filepath.Join(tool.dir, "bin", bin), args...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// inDatabase is the relations of models that a tool keeps in a DuckDB file.
func inDatabase(path, schema string, names []string) func() (map[string]relation, error) {
	return func() (map[string]relation, error) {
		out := map[string]relation{}
		for _, name := range names {
			out[name] = relation{database: path, table: schema + "." + name}
		}
		return out, nil
	}
}
