package lake

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// Nodes of one run make and remove their staging in the same folders at once.
func TestStagingOfManyNodes(t *testing.T) {
	l := open(t, t.TempDir())
	const nodes, rounds = 16, 200
	errs := make([]error, nodes)
	var running sync.WaitGroup
	for n := range nodes {
		running.Go(func() {
			p := Place{Folder: "gold", Name: fmt.Sprintf("m%d", n), Form: FormFile}
			for range rounds {
				if _, errs[n] = l.MakeStaging(p, "run"); errs[n] != nil {
					return
				}
				l.RemoveStaging(p, "run")
			}
		})
	}
	running.Wait()
	for n, err := range errs {
		if err != nil {
			t.Errorf("node %d: %v", n, err)
		}
	}
}

// made counts the folders that are made.
type made struct {
	FS
	folders *atomic.Int64
}

func (m made) MkdirAll(name string) error {
	m.folders.Add(1)
	return m.FS.MkdirAll(name)
}

// Nodes of a run that shares its staging get folders that were emptied, each its
// own and empty, whoever had it before and whatever was left there.
func TestSharedStaging(t *testing.T) {
	root := t.TempDir()
	l, err := Open(root, made{OS(), &atomic.Int64{}})
	if err != nil {
		t.Fatal(err)
	}
	folders := l.fs.(made).folders
	end := l.ShareStaging("run")
	const nodes, rounds = 8, 100
	var running sync.WaitGroup
	for n := range nodes {
		running.Go(func() {
			for round := range rounds {
				p := Place{Folder: "gold", Name: fmt.Sprintf("m%d", (n*rounds+round)%(nodes*rounds)), Form: FormFile}
				dir, err := l.MakeStaging(p, "run")
				if err != nil {
					t.Error(err)
					return
				}
				if want := filepath.Join(root, "gold", ".rbt-tmp", "run", p.Name); dir != want {
					t.Errorf("staging %s, want %s", dir, want)
				}
				entries, err := os.ReadDir(dir)
				if err != nil || len(entries) > 0 {
					t.Errorf("staging of %s: %v, %v", p.Name, entries, err)
				}
				staged := filepath.Join(dir, "x.staged")
				if err := os.WriteFile(staged, nil, 0o666); err != nil {
					t.Error(err)
				}
				if round%10 > 0 { // else what failed leaves its file
					if err := os.Remove(staged); err != nil {
						t.Error(err)
					}
				}
				l.RemoveStaging(p, "run")
				l.RemoveStaging(p, "run")
			}
		})
	}
	running.Wait()
	if n := folders.Load(); n > nodes*rounds/4 {
		t.Errorf("%d folders were made for %d nodes", n, nodes*rounds)
	}
	end()
	if entries, err := os.ReadDir(filepath.Join(root, "gold")); err != nil || len(entries) > 0 {
		t.Errorf("left after the run: %v, %v", entries, err)
	}
	// Another run, and this one from now on, share nothing.
	p := Place{Folder: "gold", Name: "m", Form: FormFile}
	for _, run := range []string{"run", "other"} {
		if _, err := l.MakeStaging(p, run); err != nil {
			t.Fatal(err)
		}
		l.RemoveStaging(p, run)
		if entries, err := os.ReadDir(filepath.Join(root, "gold")); err != nil || len(entries) > 0 {
			t.Errorf("left by a node: %v, %v", entries, err)
		}
	}
}
