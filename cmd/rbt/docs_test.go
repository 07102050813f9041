package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// shellBlocks gives the text of the ```sh blocks of a page, in order.
func shellBlocks(page string) string {
	var b strings.Builder
	inside := false
	for _, line := range strings.Split(page, "\n") {
		switch {
		case strings.TrimSpace(line) == "```sh":
			inside = true
		case strings.TrimSpace(line) == "```":
			inside = false
		case inside:
			b.WriteString(strings.TrimSpace(line) + "\n")
		}
	}
	return b.String()
}

// The commands of every page run, one after another: those of get-started from
// nothing, all others in a copy of the demo project.
func TestDocs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands of the pages are for a Unix shell")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	run := 0
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		script := shellBlocks(string(text))
		if script == "" {
			continue
		}
		run++
		t.Run(filepath.Base(page), func(t *testing.T) {
			dir := t.TempDir()
			if filepath.Base(page) != "get-started.md" {
				copyDemo(t, root, dir)
			}
			// In the README rbt is not installed yet.
			const head = "set -ex\ngo() { if [ \"$1\" = run ]; then shift 2; rbt \"$@\"; fi; }\n"
			cmd := exec.Command("sh", "-c", head+script)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if run < 5 {
		t.Errorf("only %d pages have commands", run)
	}
}

// copyDemo copies the demo project of the repository.
func copyDemo(t *testing.T, root, dir string) {
	t.Helper()
	for _, name := range []string{"models", "seeds", "tests", "macros", filepath.Join("testdata", "demo")} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(root, name))); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "project.yml"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "project.yml"), text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Every link of a page leads to a file that is there.
func TestDocsLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "](")[1:] {
			link, _, _ := strings.Cut(part, ")")
			link, _, _ = strings.Cut(link, "#")
			if link == "" || strings.Contains(link, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), link)); err != nil {
				t.Errorf("%s links to %s, which is not there", filepath.Base(page), link)
			}
		}
	}
}
