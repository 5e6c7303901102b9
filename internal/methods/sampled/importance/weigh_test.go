package importance

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestStatesWeighWhatTheDrawsThatTheyAreWould: ψ over the weight is the density, which adds up to 1 over all states, of every kind of
// proposal.
func TestStatesWeighWhatTheDrawsThatTheyAreWould(t *testing.T) {
	tested := map[string]int{}
	for seed := range uint64(60) {
		e := drawExpression(rand.New(rand.NewPCG(seed, 9)))
		states, psi, lnZ := exactStates(e)
		if math.IsInf(lnZ, -1) {
			continue
		}
		kinds := map[string]*Proposal{}
		kinds["mini-buckets"], _ = newTestProposal(t, e, 8, 0, 1)
		kinds["a sweep"], _ = newTestProposal(t, e, 8, 2, 0.01)
		kinds["beliefs"] = newBeliefProposal(t, e, 8, 0, 0.01)
		kinds["beliefs that follow"] = newBeliefProposal(t, e, 8, 0.05, 0.01)
		kinds["slices"], _, _ = newSliceProposal(t, e, 8, 8)
		for name, p := range kinds {
			if p == nil {
				continue
			}
			ln, err := p.LnWeights(t.Context(), states)
			if err != nil {
				t.Fatal(err)
			}
			total, alive := 0.0, true
			for c, l := range ln {
				alive = alive && psi[c] > 0
				if math.IsNaN(l) {
					t.Fatalf("seed %d: state %v of %s weighs e^%v", seed, states[c], name, l)
				}
				if psi[c] > 0 {
					total += psi[c] * math.Exp(-l)
				}
			}
			if total > 1+1e-9 || alive && total < 1-1e-9 {
				t.Errorf("seed %d: the density of %s adds up to %v", seed, name, total)
			}
			if alive {
				tested[name]++
			}
		}
	}
	for name, n := range tested {
		if n < 20 {
			t.Errorf("%d models of %s", n, name)
		}
	}
	if len(tested) < 5 {
		t.Errorf("%v", tested)
	}
}
