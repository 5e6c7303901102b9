package questions

import (
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

func TestEvidenceThatRestricts(t *testing.T) {
	see := func(soft []factorgraph.Likelihood, values map[int]int) factorgraph.Evidence {
		e := factorgraph.Observe(values)
		e.Soft = soft
		return e
	}
	weak := []factorgraph.Likelihood{{Var: 4, Weights: []float64{1, 0.5}}}
	strong := []factorgraph.Likelihood{{Var: 4, Weights: []float64{2, 0.5}}}
	given := see(nil, map[int]int{1: 0})
	for _, c := range []struct {
		name     string
		e, given factorgraph.Evidence
		want     bool
	}{
		{"itself", given, given, true},
		{"one more", see(nil, map[int]int{1: 0, 2: 1}), given, true},
		{"another value", see(nil, map[int]int{1: 1, 2: 1}), given, false},
		{"one less", factorgraph.Evidence{}, given, false},
		{"weights of at most 1", see(weak, map[int]int{1: 0}), given, true},
		{"weights above 1", see(strong, map[int]int{1: 0}), given, false},
		{"the same weights above 1", see(strong, map[int]int{1: 0, 2: 1}), see(strong, map[int]int{1: 0}), true},
		{"other weights", see(weak, nil), see(strong, nil), false},
		{"weights gone", given, see(weak, map[int]int{1: 0}), false},
	} {
		if got := restricts(c.e, c.given); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
