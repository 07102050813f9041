package lake

import (
	"fmt"
	"sync"
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
