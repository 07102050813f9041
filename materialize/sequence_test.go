package materialize

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rbt/internal/lake"
)

// rank orders what a publish renames: parts, what commits, the pointer, the
// receipt. 0 is none of them.
func rank(path string) int {
	base := filepath.Base(path)
	_, part := lake.PartNumber(base)
	switch {
	case part:
		return 1
	case base == lake.ManifestName, strings.HasSuffix(base, ".parquet"):
		return 2
	case strings.HasSuffix(base, ".rbt_incremental.json"):
		return 3
	case strings.HasSuffix(filepath.ToSlash(filepath.Dir(path)), "/.rbt/state"):
		return 4
	}
	return 0
}

// sequenceProblems says what a recorded publish does in the wrong order: content
// that is renamed before it is durable, a step made before the folder of the step
// before is durable, parts after their manifest, anything after the receipt.
func sequenceProblems(calls []lake.Call) []string {
	var problems []string
	durable := map[string]bool{}
	pending := map[string]int{} // folders with an entry that is not durable, and its rank
	highest := 0
	for _, c := range calls {
		switch c.Op {
		case "Write", "CopyTo":
			durable[c.Name] = false
		case "Sync":
			durable[c.Name] = true
		case "SyncDir":
			delete(pending, c.Name)
		case "Rename":
			r := rank(c.New)
			if r == 0 {
				continue
			}
			base := filepath.Base(c.New)
			if !durable[c.Name] {
				problems = append(problems, base+" is renamed before its content is durable")
			}
			for dir, before := range pending {
				if before < r {
					problems = append(problems, fmt.Sprintf("%s is renamed before folder %s is durable", base, filepath.Base(dir)))
				}
			}
			if r < highest {
				problems = append(problems, base+" comes after what must follow it")
			}
			highest = max(highest, r)
			pending[filepath.Dir(c.New)] = r
		}
	}
	for dir := range pending {
		problems = append(problems, "folder "+filepath.Base(dir)+" is not made durable")
	}
	if highest != 4 {
		problems = append(problems, "no receipt is written")
	}
	slices.Sort(problems)
	return problems
}

func TestSequence(t *testing.T) {
	for _, sc := range scenarios() {
		if sc.mess != nil || sc.step.fail {
			continue
		}
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			b := prepare(t, sc)
			calls := b.calls
			if i := slices.IndexFunc(calls, func(c lake.Call) bool { return c.Op == "CopyTo" }); i >= 0 {
				calls = calls[i:]
			}
			if p := sequenceProblems(calls); len(p) > 0 {
				t.Fatal(strings.Join(p, "\n"))
			}
			// Without any one of its steps the sequence must be found wanting:
			// each is needed, and the check sees each.
			for i, c := range calls {
				needed := c.Op == "Rename" && rank(c.New) == 4 ||
					c.Op == "Sync" && wasRenamed(calls[i:], c.Name) ||
					c.Op == "SyncDir" && i > 0 && calls[i-1].Op == "Rename" && filepath.Dir(calls[i-1].New) == c.Name
				if !needed {
					continue
				}
				if len(sequenceProblems(slices.Concat(calls[:i], calls[i+1:]))) == 0 {
					t.Errorf("%s could be left out unseen", describe(c, b.root))
				}
			}
		})
	}
}

// wasRenamed is false for what is staged and then not published: an increment
// without rows.
func wasRenamed(calls []lake.Call, name string) bool {
	return slices.ContainsFunc(calls, func(c lake.Call) bool { return c.Op == "Rename" && c.Name == name && rank(c.New) > 0 })
}
