package infer

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestSampledAgainstBruteForce: on random models with evidence, statements hold as often as they say, bounds always, and marginals are
// near.
func TestSampledAgainstBruteForce(t *testing.T) {
	models, wrong, marginalsWrong, answered := 0, 0, 0, 0
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := modeltest.Small(rng, modeltest.SmallOptions{Variables: 9, Factors: 14, MaxArity: 3, Zeros: 0.1 * float64(seed%3)})
		ev := modeltest.Evidence(rng, m)
		want, sign := oracle.LogZ(m, ev)
		if sign <= 0 {
			continue
		}
		results, err := Run(context.Background(), Request{
			Job: "t", Model: m, Queries: []query.Query{{Evidence: ev, Marginals: true}},
			Settings: query.Settings{Method: query.MethodSampled, Budget: 1e7, Seed: seed},
		})

		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		if r.Status != query.StatusOK {
			t.Logf("seed %d: %s", seed, r.Error.Message)
			continue
		}
		answered++
		if r.Exact { // simplification left nothing to draw
			continue
		}
		models++
		if b := r.Bounds; b == nil || b.Lower == nil || b.Upper == nil || *b.Lower > want || *b.Upper < want || b.Level < 0.99 {
			t.Errorf("seed %d: bounds %+v, ln Z %v", seed, b, want)
		}
		if r.Uncertainty == nil || math.Abs(*r.LogZ-want) > 3**r.Uncertainty {
			wrong++
		}
		exact := oracle.Marginals(m, ev)
		worst := 0.0
		for v := range exact {
			for x := range exact[v] {
				worst = max(worst, math.Abs(exact[v][x]-r.Marginals[v].P[x]))
			}
		}
		if r.MarginalUncertainty == nil || worst > 3**r.MarginalUncertainty || *r.MarginalUncertainty > 1 {
			marginalsWrong++
		}
	}
	if models < 20 || wrong > models/20 || marginalsWrong > models/10 {
		t.Errorf("%d answered, %d drawn, %d beyond three times what is stated, %d of marginals", answered, models, wrong, marginalsWrong)
	}
}
