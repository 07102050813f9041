package diag

import (
	"slices"
	"strings"
)

// Nearest returns the candidate that a person most probably meant by word, or
// "" where none is near: at most a third of its letters differ (one for short
// words; a swap of neighbours counts as one), or it differs in case only. Equal
// distances are settled by alphabet, so that the answer never depends on order.
func Nearest(word string, candidates []string) string {
	best, bestDist := "", 1+max(1, len([]rune(word))/3)
	sorted := slices.Clone(candidates)
	slices.Sort(sorted)
	w := []rune(strings.ToLower(word))
	for _, c := range sorted {
		if d := distance(w, []rune(strings.ToLower(c)), bestDist); d < bestDist {
			best, bestDist = c, d
		}
	}
	return best
}

// distance is the optimal string alignment distance (Damerau-Levenshtein
// without repeated edits of one place), given up at limit.
func distance(a, b []rune, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
