package memlog

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// joined returns all subjects of at most so many of the tokens.
func joined(tokens []string, most int) (all []string) {
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

// TestFiltersCollide where a subject matches both, by all subjects of a few tokens.
func TestFiltersCollide(t *testing.T) {
	subjects, filters := joined([]string{"a", "ab", "a*", "c"}, 4), joined([]string{"a", "ab", "a*", "*", ">"}, 3)
	for _, a := range filters {
		for _, b := range filters {
			both := slices.ContainsFunc(subjects, func(s string) bool { return matches(a, s) && matches(b, s) })
			if overlap(a, b) != both {
				t.Errorf("%s and %s: %t", a, b, !both)
			}
		}
	}
}

// TestIndex holds the subjects that an index finds to matches, while messages come and go.
func TestIndex(t *testing.T) {
	subjects, filters := joined([]string{"a", "ab", "a*"}, 3), joined([]string{"a", "ab", "a*", "*", ">"}, 3)
	ix, have := index{byName: map[string]*subject{}}, map[string][]uint64{}
	r := rand.New(rand.NewPCG(1, 2))
	for sequence := range uint64(400) {
		name := subjects[r.IntN(len(subjects))]
		if of := have[name]; len(of) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(of))
			ix.remove(name, of[i])
			have[name] = slices.Delete(of, i, i+1)
		} else {
			ix.add(name, sequence)
			have[name] = append(of, sequence)
		}
		filter := filters[r.IntN(len(filters))]
		got, want := map[string][]uint64{}, map[string][]uint64{}
		for s := range ix.matching(filter) {
			got[s.name] = s.sequences
		}
		for name, of := range have {
			if len(of) > 0 && matches(filter, name) {
				want[name] = of
			}
			if !slices.Equal(ix.sequencesOf(name), of) {
				t.Fatalf("%s has %v, want %v", name, ix.sequencesOf(name), of)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s finds %v, want %v", filter, got, want)
		}
	}
	for name, of := range have {
		for _, sequence := range of {
			ix.remove(name, sequence)
		}
	}
	if len(ix.root.children) > 0 || len(ix.byName) > 0 {
		t.Errorf("of an empty index %v is left", ix.root.children)
	}
}
