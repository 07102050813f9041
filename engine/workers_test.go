package engine

import (
	"runtime"
	"testing"

	"rbt/internal/project"
)

func TestWorkersFor(t *testing.T) {
	cores := min(runtime.GOMAXPROCS(0), 8)
	for _, tc := range []struct{ asked, project, want int }{
		{3, 0, 3}, {3, 11, 3}, {0, 11, 11}, {0, 0, cores}, {EveryCore, 11, cores}, {EveryCore, 0, cores},
	} {
		if got := workersFor(tc.asked, project.Engine{Threads: tc.project}); got != tc.want {
			t.Errorf("asked for %d, the project says %d: got %d, want %d", tc.asked, tc.project, got, tc.want)
		}
	}
}
