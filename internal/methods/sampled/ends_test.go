package sampled

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestEndsSeeWhatDrawsDoNot: a tenth of the states that weighs far more than the draws counts, and none where all weigh their mean.
func TestEndsSeeWhatDrawsDoNot(t *testing.T) {
	const n = 50
	e := &chainEnds{lnMean: 3}
	at := make([]float64, n)
	for c := range at {
		e.weights = append(e.weights, 1.0/n)
		at[c] = 3
	}
	if got := e.spread(at, 2.9); math.Abs(got) > 1e-12 {
		t.Errorf("all alike: %v", got)
	}
	for c := range n / 10 {
		at[c] = 9
	}
	if got, want := e.spread(at, 2.9), (math.Exp(6)-1)/10; math.Abs(got-want) > 1e-9*want {
		t.Errorf("a tenth outside: %v, want %v", got, want)
	}
	if got := e.spread(at, 9); got > 0 {
		t.Errorf("draws that have seen the most: %v", got)
	}
}

// TestDrawsThatMissAModeAreNotChosen: 64 draws of a sweep of bond 4 through this complete model weigh alike, and are 4 nats below Z.
func TestDrawsThatMissAModeAreNotChosen(t *testing.T) {
	m, err := generate.Complete(40, generate.Ising{Delta: 1, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	along, _, err := ChooseSampling(t.Context(), chainsOf(t, m), query.Settings{Budget: 2e10, Memory: 1 << 31, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	if b := along.About(); b.Kind != ByAnnealing {
		t.Errorf("components are drawn by %s, spread %v", b.Kind, b.Spread)
	}
}
