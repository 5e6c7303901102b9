package factorgraph

import (
	"errors"
	"testing"
)

// TestProductsOfWeightsAreNotLost: two weights of one value whose product no float64 holds are an error and no 0.
func TestProductsOfWeightsAreNotLost(t *testing.T) {
	for _, w := range []float64{1e-200, 1e-160, -1e-200} {
		twice := []Likelihood{{Var: 3, Weights: []float64{w, 1}}, {Var: 3, Weights: []float64{w, 1}}}
		if e, err := NewEvidence(nil, twice); !errors.Is(err, ErrEvidence) {
			t.Errorf("%v twice: %v, %v", w, e, err)
		}
	}
	if e, err := NewEvidence(nil, []Likelihood{{Weights: []float64{0, 1e-100}}, {Weights: []float64{1e-200, 1e-200}}}); err != nil ||
		e.Soft[0].Weights[0] != 0 || e.Soft[0].Weights[1] != 1e-300 {
		t.Errorf("%v, %v", e, err)
	}
}
