package infer

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// propertyModels is the number of random models in the property test; BTN_RANDOM_MODELS overrides it.
const propertyModels = 10_000

// rounding bounds the error of probabilities and of ln Z relative to the largest term,
// for models without cancellation.
const rounding = 1e-9

// TestRandomModelsAgainstEnumeration draws models of all factor kinds, mixed domains, zeros, arity
// up to 6, with evidence, and holds Z and every marginal of the exact way, along orders and along
// trees, against enumeration.
func TestRandomModelsAgainstEnumeration(t *testing.T) {
	models := nightly.Rounds(propertyModels/6, propertyModels)
	if s := os.Getenv("BTN_RANDOM_MODELS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("BTN_RANDOM_MODELS: %v", err)
		}
		models = n
	}
	ways := []query.Settings{
		{}, {Cores: query.CoresAreVariables}, {Maps: query.MapOrthogonal}, {Maps: query.MapBP},
		{Memory: 64 << 10}, {Memory: 8 << 10, Seed: 3}, // small budgets: trees, and slices
	}
	solved := 0
	for seed := range uint64(models) {
		rng := rand.New(rand.NewPCG(seed, 11))
		m := modeltest.Small(rng, modeltest.SmallOptions{
			Variables: 2 + rng.IntN(6), Factors: 1 + rng.IntN(9), MinDomain: 1 +
				rng.IntN(2), MaxDomain: 2 + rng.IntN(3),
			MaxArity: 1 + rng.IntN(6), MaxStates: 1 << 9, Constant: rng.IntN(4) == 0,
			Zeros: 0.15 * float64(rng.IntN(4)),
		})
		asked := query.Query{Evidence: modeltest.Evidence(rng, m), Marginals: true}
		s := ways[rng.IntN(len(ways))]
		s.Method = query.MethodExact
		results, err := Run(context.Background(),
			Request{Job: "t", Model: m, Queries: []query.Query{asked}, Settings: s})

		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		r := results[0]
		want, sign := oracle.LogZ(m, asked.Evidence)
		switch {
		case r.Status != "ok" && r.Error.Code == fault.OverBudget && s.Memory > 0:
			continue // the model's own tables do not fit
		case r.Status != "ok" && sign == 0 && s.Maps != "":
			continue // zeros of rotated tables are rounding, and that is said
		case r.Status != "ok":
			t.Errorf("seed %d, %+v: %+v", seed, s, r.Error)
			continue
		case sign == 0:
			if !r.Zero {
				t.Errorf("seed %d, %+v: ln Z %v, Z is 0", seed, s, *r.LogZ)
			}
			continue
		case r.Zero || math.Abs(*r.LogZ-want) > rounding*(1+math.Abs(want)):
			t.Errorf("seed %d, %+v: ln Z %v, want %v", seed, s, r.LogZ, want)
			continue
		}
		solved++
		for v, row := range oracle.Marginals(m, asked.Evidence) {
			for a, p := range row {
				if math.Abs(r.Marginals[v].P[a]-p) > rounding {
					t.Errorf("seed %d, %+v: P(x_%d = %d) = %v, want %v",
						seed, s, v, a, r.Marginals[v].P[a], p)
				}
			}
		}
	}
	if solved < models/2 {
		t.Errorf("only %d of %d models had an answer to compare", solved, models)
	}
}
