package problem_test

import (
	"context"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/trees"
	"github.com/basetensor/basetensor/internal/network/problem"
)

// TestRecentIsBounded: the projectors used last stay,
// as many as there is room for, and none that is larger than all of it.
func TestRecentIsBounded(t *testing.T) {
	of := func(n int) *trees.Projectors {
		return &trees.Projectors{Pairs: []trees.Projector{{Left: make([]float64, n),
			Right: make([]float64, n)}}}
	}
	r := &problem.Recent{Most: 2 * of(100).Bytes()}
	for _, step := range []struct {
		key      string
		n        int
		computed bool
	}{{"a", 100, true}, {"b", 100, true}, {"a", 100, false}, {"c", 100, true}, {"a", 100, false},
		{"b", 100, true}, {"large",
			1000, true}, {"large", 1000, true}, {"b", 100, false}} {
		computed := false
		p, err := r.Do(t.Context(), problem.Entry{Kind: "projectors", Key: step.key},
			func(context.Context) (problem.Memorable, error) {
				computed = true
				return of(step.n), nil
			})
		if err != nil || p.Bytes() != of(step.n).Bytes() || computed != step.computed {
			t.Errorf("%s: %d bytes, computed %v, %v", step.key, p.Bytes(), computed, err)
		}
	}
}
