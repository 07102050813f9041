package plan

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/project"
)

// world is a project, a lake and what happened to both: a run is acted out
// without an engine.
type world struct {
	t       testing.TB
	dir     string
	env     map[string]string
	state   lake.State
	files   map[string]map[string]lake.FileStamp // by source or ingest
	content map[string]string                    // content hash by node; "" or absent: none is kept
	opts    Options
	commits int
	ran     []string // of the last run
}

// newWorld makes a project of files; project.yml is added where it is missing.
func newWorld(t testing.TB, files map[string]string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), state: lake.State{Nodes: map[string]lake.Node{}},
		files: map[string]map[string]lake.FileStamp{}, content: map[string]string{}}
	w.write(map[string]string{"project.yml": "name: shop\n"})
	w.write(files)
	w.opts = Options{EngineIdentity: "duckdb 1.5.6", RunStartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), InvocationID: "i1",
		SourceFiles: func(s *project.Source) (map[string]lake.FileStamp, error) {
			files, ok := w.files[s.Group+"."+s.Name]
			if !ok {
				return nil, fmt.Errorf("no file matches")
			}
			return files, nil
		},
		IngestFiles: func(m *project.Model) (map[string]lake.FileStamp, error) { return w.files[m.Name], nil },
		SeedHash: func(s *project.Seed) (string, error) {
			b, err := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(s.File)))
			return hashText(string(b)), err
		},
	}
	return w
}

func (w *world) write(files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		path := filepath.Join(w.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.dir, filepath.FromSlash(name))); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) load() *project.Project {
	w.t.Helper()
	p, diags := project.Load(context.Background(), project.Options{Dir: w.dir,
		Env: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok }})
	if diags.HasErrors() {
		w.t.Fatalf("load: %v", diags)
	}
	return p
}

// tryPlan plans a command.
func (w *world) tryPlan(words ...string) (*Plan, diag.List) {
	w.t.Helper()
	o := w.opts
	o.Select = append(slices.Clone(o.Select), words...)
	return Build(context.Background(), w.load(), &w.state, &fakeParser{}, o)
}

func (w *world) plan(words ...string) *Plan {
	w.t.Helper()
	p, diags := w.tryPlan(words...)
	if diags.HasErrors() {
		w.t.Fatalf("plan: %v", diags)
	}
	return p
}

// run acts a run out: what is built gets a new commit, an increment a new part.
func (w *world) run(words ...string) *Plan {
	w.t.Helper()
	p := w.plan(words...)
	w.act(p)
	return p
}

func (w *world) act(p *Plan) {
	w.t.Helper()
	settler := p.NewSettler()
	w.ran = nil
	next := lake.State{Root: w.state.Root, Nodes: maps.Clone(w.state.Nodes), Foreign: w.state.Foreign}
	for _, s := range p.Steps {
		d := Decision{Action: s.Action, Fingerprint: s.Fingerprint, Inputs: s.Inputs}
		if s.Pending {
			d = settler.Decide(s)
		}
		if d.Fingerprint == "" {
			w.t.Fatalf("%s has no fingerprint", s.Node.Name)
		}
		if d.Action == ActionUnchanged || d.Action == ActionAudit {
			if d.Action == ActionAudit {
				r := *s.Receipt
				r.TestsHash = passing(s, r.TestsHash)
				next.Nodes[s.Node.Name] = lake.Node{Receipt: r, Recorded: true, Manifest: s.parts}
			}
			continue
		}
		w.ran = append(w.ran, s.Node.Name)
		n := w.publish(s, d)
		next.Nodes[s.Node.Name] = n
		settler.Done(s, &n.Receipt)
	}
	w.state = next
}

// passing adds the tests of a step to those that a receipt remembers.
func passing(s *Step, remembered string) string {
	hashes := strings.Fields(remembered)
	for _, t := range s.tests {
		hashes = append(hashes, t.Hash)
	}
	slices.Sort(hashes)
	return strings.Join(slices.Compact(hashes), " ")
}

func (w *world) publish(s *Step, d Decision) lake.Node {
	w.commits++
	r := lake.Receipt{Version: 1, Name: s.Node.Name, Form: s.Node.form(), Commit: fmt.Sprintf("%032x", w.commits),
		Fingerprint: d.Fingerprint, Inputs: d.Inputs, TestsHash: passing(s, "")}
	if place, err := lake.NewPlace(s.Node.folder(), s.Node.Name, s.Node.form()); err != nil {
		w.t.Fatal(err)
	} else {
		r.Path = place.Path()
	}
	if v := s.Node.Volatile; v != "" {
		r.Volatile = &v
	}
	relations := []string{s.Node.Name}
	if s.Node.Model != nil {
		relations = nil
		for _, o := range s.Node.Model.Outputs() {
			relations = append(relations, o.Relation)
		}
	}
	for _, relation := range relations {
		o := lake.Output{Relation: relation}
		if hash := w.content[relation]; hash != "" {
			o.ContentHash = &hash
		}
		r.Outputs = append(r.Outputs, o)
	}
	n := lake.Node{Receipt: r, Recorded: true}
	if r.Form == lake.FormIncremental {
		n.Manifest = &lake.Manifest{PartInfo: map[string]lake.PartInfo{}}
		if s.Incremental {
			n.Manifest.Parts = slices.Clone(s.parts.Parts)
			n.Manifest.PartInfo = maps.Clone(s.parts.PartInfo)
		}
		part := lake.PartName(int64(w.commits))
		n.Manifest.Parts = append(n.Manifest.Parts, part)
		n.Manifest.PartInfo[part] = lake.PartInfo{Fingerprint: d.Fingerprint}
	}
	return n
}

// lines gives a plan in a few words a step: "orders run: sql changed".
func lines(p *Plan) string {
	var b strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%s %s: %s\n", s.Node.Name, s.Action, strings.Join(s.Reasons, "; "))
	}
	return b.String()
}

// fakeParser scans words and finds tables behind from and join, which is enough
// for the SQL of these tests.
type fakeParser struct{}

var fakeTokens = regexp.MustCompile(`--[^\n]*|'(?:[^']|'')*'|"(?:[^"]|"")*"|[\pL_][\pL\pN_]*|\s+|.`)

type fakeProblem struct{ offset int }

func (p *fakeProblem) Error() string  { return "bad SQL" }
func (p *fakeProblem) SQLOffset() int { return p.offset }
func (p *fakeProblem) SQLDiagnostic(pos diag.Pos) diag.Diagnostic {
	return diag.Errorf(diag.SQLSyntax, pos, "bad SQL")
}

func (*fakeParser) Scan(sql string) (Scan, error) {
	if i := strings.Index(sql, "BAD"); i >= 0 {
		return Scan{}, &fakeProblem{i}
	}
	s := Scan{Identifiers: map[string]int{}}
	var tokens []string
	for _, at := range fakeTokens.FindAllStringIndex(sql, -1) {
		token := sql[at[0]:at[1]]
		if strings.TrimSpace(token) == "" || strings.HasPrefix(token, "--") {
			continue
		}
		tokens = append(tokens, token)
		name := strings.ToLower(strings.Trim(token, `"`))
		if token[0] == '\'' || name == "" {
			continue
		}
		if _, seen := s.Identifiers[name]; !seen {
			s.Identifiers[name] = at[0]
		}
		if name == "now" || name == "random" {
			s.Volatile = name + "()"
		}
	}
	s.Normalized = strings.Join(tokens, " ")
	return s, nil
}

func (*fakeParser) Condition(sql string) error {
	if i := strings.Index(sql, "BAD"); i >= 0 {
		return &fakeProblem{i}
	}
	return nil
}

func (*fakeParser) Tables(sql string) (Tables, error) {
	if strings.Contains(strings.ToLower(sql), "pivot") {
		return Tables{Refused: true}, nil
	}
	ctes := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?i)(?:with|,)\s+(\w+)\s+as\s*\(`).FindAllStringSubmatch(sql, -1) {
		ctes[strings.ToLower(m[1])] = true
	}
	var out Tables
	for _, m := range regexp.MustCompile(`(?i)(?:from|join)\s+(?:"?(\w+)"?\.)?"?([\pL\pN_]+)"?`).FindAllStringSubmatchIndex(sql, -1) {
		name := TableName{Name: sql[m[4]:m[5]], Offset: m[4]}
		if m[2] >= 0 {
			name.Schema = sql[m[2]:m[3]]
		}
		if name.Schema != "" || !ctes[strings.ToLower(name.Name)] {
			out.Names = append(out.Names, name)
		}
	}
	return out, nil
}

// wordParser splits text into words and nothing else, so that a benchmark
// measures the plan.
type wordParser struct{}

func (wordParser) Scan(sql string) (Scan, error) {
	s := Scan{Identifiers: map[string]int{}, Normalized: strings.Join(strings.Fields(sql), " ")}
	for at := 0; at < len(sql); at++ {
		start := at
		for at < len(sql) && (sql[at] == '_' || sql[at] >= 'a' && sql[at] <= 'z' || sql[at] >= '0' && sql[at] <= '9') {
			at++
		}
		if at > start {
			if _, seen := s.Identifiers[sql[start:at]]; !seen {
				s.Identifiers[sql[start:at]] = start
			}
		}
	}
	return s, nil
}

func (wordParser) Condition(string) error { return nil }

func (wordParser) Tables(string) (Tables, error) { return Tables{}, nil }
