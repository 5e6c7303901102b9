package sampled

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/sampled/annealing"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// chainsOf are the chains of a model without evidence.
func chainsOf(t *testing.T, m *factorgraph.Model) *Chains {
	t.Helper()
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	chains, err := PrepareChains(t.Context(), problem.New(net, problem.Options{}), false)
	if err != nil {
		t.Fatal(err)
	}
	return chains
}

// TestChainsBeginWithBeliefsWhereThatHelps: in strong fields, and not where beliefs speak for one of two modes.
func TestChainsBeginWithBeliefsWhereThatHelps(t *testing.T) {
	const n = 24
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name            string
		field, coupling float64
		want            bool
	}{
		{"strong random fields", 2, 0.05, true},
		{"two modes", 0.02, 0.11, false},
		{"a small second mode", 0.1, 0.11, false},
	} {
		e := &sumproduct.Expression{Scale: scaled.One}
		for i := range n {
			e.Dims = append(e.Dims, 2)
			h := c.field
			if c.want && r.IntN(2) == 0 {
				h = -h
			}
			e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i}, Data: []float64{math.Exp(-h), math.Exp(h)}})
			for k := range i {
				same, other := math.Exp(c.coupling), math.Exp(-c.coupling)
				e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{k, i}, Data: []float64{same, other, other, same}})
			}
		}
		m, err := annealing.New(e)
		if err != nil {
			t.Fatal(err)
		}
		along, _, err := Pilot(t.Context(), m, query.Settings{Budget: 1e10, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		if along.Product != c.want {
			t.Errorf("%s: chains that begin with beliefs: %v", c.name, along.Product)
		}
	}
}

// TestForestsAreDrawnWhereModelsAreSparse: on a 3-regular graph, not on a complete one, nor where budget or memory do not hold them.
func TestForestsAreDrawnWhereModelsAreSparse(t *testing.T) {
	sparse, err := generate.RandomRegular(120, 3, generate.Ising{Delta: 1, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	dense, err := generate.Complete(30, generate.Ising{Delta: 0.5, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		model  *factorgraph.Model
		budget float64
		memory int64
		want   bool
	}{
		{"sparse", sparse, 1e10, 1 << 30, true}, {"dense", dense, 1e10, 1 << 30, false},
		{"a small budget", sparse, 1e7, 1 << 30, false}, {"a small memory", sparse, 1e10, 1 << 17, false},
	} {
		chains := chainsOf(t, c.model)
		along, _, err := Pilot(t.Context(), chains.Model, query.Settings{Budget: c.budget, Memory: c.memory, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		if along.Forests != c.want || along.Forests && along.Metropolis {
			t.Errorf("%s: forests %v, single values %v", c.name, along.Forests, along.Metropolis)
		}
		if each, setup := along.flops(chains.Model); each <= 0 || c.want != (setup > 0) {
			t.Errorf("%s: a chain takes %v, and %v before the first", c.name, each, setup)
		}
	}
}

// TestPilotsThatAreCutShort: wherever the time for a pilot ends, there is none or one that says how components are drawn, and only that of
// all kinds is whole.
func TestPilotsThatAreCutShort(t *testing.T) {
	m, err := generate.Grid(8, 8, generate.Ising{Delta: 1, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	chains, s := chainsOf(t, m), query.Settings{Budget: 1e8, Memory: 1 << 20, Seed: 2}
	want, whole, err := ChooseSampling(t.Context(), chains, s)
	if err != nil || !whole {
		t.Fatal(whole, err)
	}
	none, cut := 0, 0
	for looks := 0; ; looks += 1 + looks/8 {
		along, whole, err := ChooseSampling(enginetest.ContextEndingAfter(looks, context.DeadlineExceeded), chains, s)
		if err != nil {
			if none++; !proposal.IsLate(err) {
				t.Fatalf("after %d looks: %v", looks, err)
			}
			continue
		}
		if whole {
			if !reflect.DeepEqual(along, want) {
				t.Errorf("the whole pilot chose %+v, not %+v", along, want)
			}
			break
		}
		cut++
		if _, err := PlanEstimates(chains, along, s, false); err != nil || along.About().Shape == "" || !(along.About().Spread > 0) {
			t.Errorf("after %d looks: %+v, %v", looks, along, err)
		}
	}
	if none == 0 || cut < 5 {
		t.Errorf("%d pilots ended with nothing, %d with something", none, cut)
	}
}
