package memlog

import (
	"slices"
	"strings"
	"testing"
)

// TestFiltersCollide where a subject matches both, by all subjects of a few tokens.
func TestFiltersCollide(t *testing.T) {
	lists := func(tokens []string, most int) (all []string) {
		level := []string{""}
		for range most {
			var next []string
			for _, s := range level {
				if strings.HasSuffix(s, ">") {
					continue
				}
				for _, token := range tokens {
					next = append(next, strings.TrimPrefix(s+"."+token, "."))
				}
			}
			all, level = append(all, next...), next
		}
		return all
	}
	subjects, filters := lists([]string{"a", "ab", "a*", "c"}, 4), lists([]string{"a", "ab", "a*", "*", ">"}, 3)
	for _, a := range filters {
		for _, b := range filters {
			both := slices.ContainsFunc(subjects, func(s string) bool { return matches(a, s) && matches(b, s) })
			if collide(a, b) != both {
				t.Errorf("%s and %s: %t", a, b, !both)
			}
		}
	}
}
