package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// git runs git in the project.
func (l mutationLab) git(args ...string) {
	l.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", l.dir, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// commit makes a repository of the project with all that is in it.
func (l mutationLab) commit() {
	l.t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		l.t.Skip("there is no git on this machine")
	}
	l.write(".gitignore", "lake*\ntarget\n")
	l.git("init", "-q", "-b", "main")
	l.git("add", "-A")
	l.git("commit", "-q", "-m", "first")
}

// content gives a hash of every file below a folder.
func (l mutationLab) content(dir string) map[string]string {
	l.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(l.path(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		sum := sha256.Sum256(text)
		rel, _ := filepath.Rel(l.dir, path)
		out[filepath.ToSlash(rel)] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

// built gives the names of what the last run built, sorted.
func (l mutationLab) built() []string {
	names := []string{}
	for name := range l.rebuilt() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

const twoTargets = "targets:\n  dev: {lake: lake_dev}\n  prod: {lake: lake_prod}\ndefault_target: dev\n"

// TestSlimCI is a pull request on a public data set: what a branch edits, and
// what reads it, is built in an empty lake, over all else as production has it.
func TestSlimCI(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	shared := sharedData(root)
	if shared == "" {
		t.Skip("the shared data (RBT_SHARED) is absent")
	}
	l := mutationLab{t: t, dir: t.TempDir(), env: map[string]string{"RBT_SHARED": shared}}
	if err := os.CopyFS(l.dir, os.DirFS(filepath.Join(root, "testdata", "projects", "olist"))); err != nil {
		t.Fatal(err)
	}
	l.write("project.yml", l.read("project.yml")+twoTargets)
	l.commit()
	l.rbt(0, "run", "-q", "--target", "prod")
	prod := l.content("lake_prod")
	l.git("checkout", "-q", "-b", "feature")
	body := l.read("models/staging/stg_order_payments.sql")
	l.write("models/staging/stg_order_payments.sql", strings.Replace(body, "select", "select 'new' as marker,", 1))
	out, _ := l.rbt(0, "ls", "-s", "state:modified+", "--state", "git:main", "--resource-type", "model")
	want := strings.Fields(out)
	if !slices.Contains(want, "stg_order_payments") || !slices.Contains(want, "fct_orders") || slices.Contains(want, "dim_sellers") {
		t.Fatalf("modified: %v", want)
	}
	l.rbt(0, "run", "-q", "-s", "state:modified+", "--state", "git:main", "--defer")
	if diff := cmp.Diff(want, l.built()); diff != "" {
		t.Error(diff)
	}
	for name := range l.content("lake_dev") {
		if base := filepath.Base(name); strings.HasSuffix(base, ".parquet") && !slices.Contains(want, strings.TrimSuffix(base, ".parquet")) {
			t.Errorf("the lake of development holds %s", name)
		}
	}
	if diff := cmp.Diff(prod, l.content("lake_prod")); diff != "" {
		t.Errorf("production changed: %s", diff)
	}
	figures := "select count(*), sum(payments_amount), sum(items_amount) from {{ ref('fct_orders') }}"
	out, _ = l.rbt(0, "show", "--inline", figures, "--output", "csv")
	if _, row, _ := strings.Cut(out, "\n"); row != "20000,3249579.78,2768685.99\n" {
		t.Errorf("figures: %q", out)
	}
	// A second run of the branch finds everything done.
	l.rbt(0, "run", "-q", "-s", "state:modified+", "--state", "git:main", "--defer")
	if got := l.built(); len(got) > 0 {
		t.Errorf("again: %v", got)
	}
}

// TestState compares with a revision and with a manifest.
func TestState(t *testing.T) {
	files := mutationProject()
	files["project.yml"] += twoTargets
	l := mutationLab{t: t, dir: t.TempDir()}
	for name, text := range files {
		l.write(name, text)
	}
	l.commit()
	l.rbt(0, "run", "-q", "--target", "prod", "--target-path", l.path("prod_target"))
	states := []string{"git:main", l.path("prod_target")}
	for _, state := range states {
		out, _ := l.rbt(0, "run", "-s", "state:modified+", "--state", state)
		if out != "Nothing to do.\n" {
			t.Errorf("%s: %q", state, out)
		}
	}
	l.replace("models/vw.sql", "id, v", "id, v, 1 as one")
	l.replace("models/base.sql", "[daily]", "[hourly]")
	l.write("models/added.sql", "select n + 1 as n from {{ ref('from_vw') }}\n")
	for _, c := range []struct{ words, want string }{
		{"state:new", "added"},
		{"state:modified", "added base vw"},
		{"state:modified.body", "added vw"},
		{"state:modified.configs", "added base"},
		{"state:modified.body+", "added from_vw vw"},
		{"state:unmodified,path:models", "alone eph from_base from_codes from_eph from_vw log"},
		{"state:old,state:modified", "base vw"},
	} {
		for _, state := range states {
			out, _ := l.rbt(0, "ls", "-s", c.words, "--state", state)
			if diff := cmp.Diff(c.want, strings.Join(strings.Fields(out), " ")); diff != "" {
				t.Errorf("%s %s: %s", c.words, state, diff)
			}
		}
	}
	prod := l.content("lake_prod")
	// vw is a view of this lake over base of the other; added reads from_vw as
	// production has it.
	for _, state := range states {
		if err := os.RemoveAll(l.path("lake_dev")); err != nil {
			t.Fatal(err)
		}
		l.rbt(0, "run", "-q", "-s", "vw added log", "--state", state, "--defer")
		if diff := cmp.Diff([]string{"added", "log", "vw"}, l.built()); diff != "" {
			t.Error(diff)
		}
		out, _ := l.rbt(0, "show", "--inline", "select n, (select count(*) from {{ ref('log') }}) as l from {{ ref('added') }}", "--output", "csv")
		if out != "n,l\n3,2\n" {
			t.Errorf("%s: %q", state, out)
		}
		// A view of the other lake reads what is published here, where it is.
		l.rbt(0, "test", "-q", "-s", "base", "--state", state, "--defer")
	}
	if diff := cmp.Diff(prod, l.content("lake_prod")); diff != "" {
		t.Errorf("production changed: %s", diff)
	}
	_, problem := l.rbt(2, "run", "-s", "vw", "--state", "git:main", "--defer", "--defer-target", "prd")
	if !strings.Contains(problem, "RBT3015") || !strings.Contains(problem, `no target "prd"`) {
		t.Error(problem)
	}
	_, problem = l.rbt(2, "ls", "-s", "state:new", "--state", "git:nowhere")
	if !strings.Contains(problem, "RBT3014") || !strings.Contains(problem, `revision "nowhere"`) {
		t.Error(problem)
	}
}

// TestDeferredView: a view of the other lake reads what this lake publishes,
// where it does, and what reads the view is built anew with it.
func TestDeferredView(t *testing.T) {
	files := mutationProject()
	files["project.yml"] += twoTargets
	l := mutationLab{t: t, dir: t.TempDir()}
	for name, text := range files {
		l.write(name, text)
	}
	l.rbt(0, "run", "-q", "--target", "prod", "--target-path", l.path("state"))
	l.replace("models/base.sql", "from {{", "from (select * from {{")
	l.write("models/base.sql", strings.TrimSpace(l.read("models/base.sql"))+" where id = 1)\n")
	show := func() string {
		out, _ := l.rbt(0, "show", "--inline", "select n from {{ ref('from_vw') }}", "--output", "csv")
		return out
	}
	l.rbt(0, "run", "-q", "-s", "base from_vw", "--state", l.path("state"), "--defer")
	if got := show(); got != "n\n1\n" {
		t.Errorf("after the first run: %q", got)
	}
	l.replace("models/base.sql", "id = 1", "id = 0")
	l.rbt(0, "run", "-q", "-s", "base from_vw", "--state", l.path("state"), "--defer")
	if got := show(); got != "n\n0\n" {
		t.Errorf("after the second run: %q", got)
	}
	l.rbt(0, "run", "-q", "-s", "base from_vw", "--state", l.path("state"), "--defer")
	if got := l.built(); len(got) > 0 {
		t.Errorf("nothing changed, and %v are built", got)
	}
}

// TestRetry: after a failure in the middle of a graph of twenty nodes retry
// builds exactly what was left, whatever other commands ran meanwhile.
func TestRetry(t *testing.T) {
	files := map[string]string{"project.yml": "name: shop\nvars: {n: 1}\n"}
	for i := range 20 {
		text := "select 1 as x\n"
		if i >= 2 { // two chains
			text = fmt.Sprintf("select x + 0 as x from {{ ref('m%02d') }}\n", i-2)
		}
		files[fmt.Sprintf("models/m%02d.sql", i)] = text
	}
	files["models/m09.sql"] = "select error('boom') as x, {{ var('n') }} as n, x as y from {{ ref('m07') }}\n"
	l := mutationLab{t: t, dir: t.TempDir()}
	for name, text := range files {
		l.write(name, text)
	}
	_, problem := l.rbt(2, "retry")
	if !strings.Contains(problem, "RBT3016") {
		t.Error(problem)
	}
	l.rbt(1, "run", "-q", "--exclude", "m19", "--var", "n=5")
	if got := len(l.built()); got != 14 {
		t.Errorf("%d were built before the failure, want 14", got)
	}
	l.rbt(1, "retry", "-q")
	if got := l.built(); len(got) != 0 {
		t.Errorf("nothing was mended, and %v were built", got)
	}
	l.replace("models/m09.sql", "error('boom')", "1")
	l.rbt(0, "test", "-q")
	l.rbt(0, "show", "-s", "m00")
	l.rbt(0, "retry", "-q")
	if diff := cmp.Diff([]string{"m09", "m11", "m13", "m15", "m17"}, l.built()); diff != "" {
		t.Error(diff)
	}
	if status, _ := l.results(); len(status) != 5 {
		t.Errorf("retry looked at %v", status)
	}
	out, _ := l.rbt(0, "show", "--inline", "select n from {{ ref('m09') }}", "--output", "csv")
	if out != "n\n5\n" {
		t.Errorf("the variables of the run: %q", out)
	}
	if out, _ := l.rbt(0, "retry"); out != "Nothing to do.\n" {
		t.Errorf("all is done: %q", out)
	}
}

// TestRetryRefused: a project that is no longer the one that ran.
func TestRetryRefused(t *testing.T) {
	l := mutationLab{t: t, dir: t.TempDir()}
	l.write("project.yml", "name: shop\n")
	l.write("models/a.sql", "select error('boom') as x\n")
	l.write("models/b.sql", "select x from {{ ref('a') }}\n")
	l.rbt(1, "run", "-q")
	if err := os.Remove(l.path("models/b.sql")); err != nil {
		t.Fatal(err)
	}
	_, problem := l.rbt(2, "retry")
	if !strings.Contains(problem, "RBT3016") || !strings.Contains(problem, "model.shop.b") {
		t.Error(problem)
	}
	l.write("models/b.sql", "select x from {{ ref('a') }}\n")
	l.write("project.yml", "name: shop\nlake: other\n")
	_, problem = l.rbt(2, "retry")
	if !strings.Contains(problem, "RBT3016") || !strings.Contains(problem, "the last run published in") {
		t.Error(problem)
	}
}

// TestStateOfRepositories: a project is compared with a revision whatever kind of
// repository it stands in, and nothing is modified where nothing was edited.
func TestStateOfRepositories(t *testing.T) {
	project := func(l mutationLab, at string) mutationLab {
		l.dir = l.path(at)
		for name, text := range mutationProject() {
			l.write(name, text)
		}
		l.write("macros/more.sql", "{% macro one() %}1{% endmacro %}\n")
		l.write("models/uses_more.sql", "select {{ one() }} as n\n")
		return l
	}
	for _, c := range []struct {
		what string
		make func(t *testing.T, l mutationLab) (in mutationLab, ref string)
	}{
		{"a folder of the repository, in a hook of git", func(t *testing.T, l mutationLab) (mutationLab, string) {
			in := project(l, "apps/shop")
			l.commit()
			t.Setenv("GIT_DIR", l.path(".git"))
			t.Setenv("GIT_INDEX_FILE", l.path("none"))
			return in, "main"
		}},
		{"a branch and a tag with a slash", func(_ *testing.T, l mutationLab) (mutationLab, string) {
			in := project(l, ".")
			l.commit()
			l.git("checkout", "-q", "-b", "feat/x")
			l.git("tag", "-a", "-m", "t", "v/1")
			return in, "v/1"
		}},
		{"a shallow clone", func(_ *testing.T, l mutationLab) (mutationLab, string) {
			from := project(l, "from")
			from.commit()
			l.git("init", "-q")
			l.git("clone", "-q", "--depth", "1", "file://"+from.dir, l.path("to"))
			l.dir = l.path("to")
			return l, "origin/main"
		}},
		{"a work tree beside the first", func(_ *testing.T, l mutationLab) (mutationLab, string) {
			from := project(l, "from")
			from.commit()
			from.git("worktree", "add", "-q", "-b", "other", l.path("to"))
			l.dir = l.path("to")
			return l, "main"
		}},
		{"macros in a submodule", func(_ *testing.T, l mutationLab) (mutationLab, string) {
			from, in := l, project(l, "in")
			from.dir = l.path("from")
			from.write("more.sql", in.read("macros/more.sql"))
			from.commit()
			if err := os.RemoveAll(in.path("macros/more.sql")); err != nil {
				t.Fatal(err)
			}
			in.commit()
			in.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", from.dir, "macros/sub")
			in.git("commit", "-q", "-m", "second")
			return in, "main"
		}},
		{"a folder behind a link", func(t *testing.T, l mutationLab) (mutationLab, string) {
			in := project(l, ".")
			l.write("elsewhere/linked.sql", "select 1 as n\n")
			l.write("models/uses_linked.sql", "select * from {{ ref('linked') }}\n")
			l.write("README.md", "text\n")
			for name, to := range map[string]string{"models/far": "../elsewhere", "models/README.md": "../README.md", "lost": "nowhere"} {
				if err := os.Symlink(to, l.path(name)); err != nil {
					t.Skipf("this system makes no links: %v", err)
				}
			}
			l.commit()
			return in, "main"
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			in, ref := c.make(t, mutationLab{t: t, dir: t.TempDir()})
			if out, _ := in.rbt(0, "ls", "-s", "state:modified", "--state", "git:"+ref); out != "" {
				t.Errorf("nothing was edited, and modified are %q", out)
			}
			in.write("macros/more2.sql", "{% macro two() %}2{% endmacro %}\n")
			in.write("models/uses_more.sql", "select {{ one() }} + 1 as n\n")
			if out, _ := in.rbt(0, "ls", "-s", "state:modified", "--state", "git:"+ref); out != "uses_more\n" {
				t.Errorf("one model was edited, and modified are %q", out)
			}
			_, problem := in.rbt(2, "ls", "-s", "state:modified", "--state", "git:gone")
			if want := "git:origin/main"; c.what != "a shallow clone" && !strings.Contains(problem, want) {
				t.Errorf("the problem does not say %q: %s", want, problem)
			}
			if want := "this clone is shallow"; c.what == "a shallow clone" && !strings.Contains(problem, want) {
				t.Errorf("the problem does not say %q: %s", want, problem)
			}
		})
	}
}
