package plan

import (
	"context"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/internal/testing/reference"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestOneTreeForAllEvidence: marginals of a grid come from one tree, whatever is observed, and are those of an elimination.
func TestOneTreeForAllEvidence(t *testing.T) {
	ctx := context.Background()
	m, err := generate.Grid(15, 15, generate.Ising{Delta: 1, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(ctx, m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	shape, err := lower.Shape(ctx, net)
	if err != nil {
		t.Fatal(err)
	}
	order := &exact.Elimination{Order: orders.Best(shape)}

	memo, shared := kept{}, &problem.Shared{}
	for _, evidence := range []factorgraph.Evidence{
		{},
		{Hard: []factorgraph.Observation{{Var: 3, Value: 1}, {Var: 180, Value: 0}}},
		{Hard: []factorgraph.Observation{{Var: 3, Value: 0}, {Var: 181, Value: 0}}},
	} {
		d := btn.Demand{Evidence: evidence, Want: btn.Want{Marginals: true}}
		as, err := Assign(ctx, net, []btn.Demand{d}, query.Settings{Method: query.MethodExact}, memo, nil)
		if err != nil || as[0].Error != nil {
			t.Fatal(err, as[0].Error)
		}
		part, ok := as[0].Plan.Estimates[0].Parts[0].(*exact.Junction)
		if !ok {
			t.Fatalf("evidence %v: part %T", evidence, as[0].Plan.Estimates[0].Parts[0])
		}
		p, err := shared.Problem(net, evidence, nil, problem.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := btn.Want{Marginals: true}
		tree, err := contraction.Part(ctx, p, part, want)
		if err != nil {
			t.Fatal(err)
		}
		along, err := contraction.Part(ctx, p, order, want)
		if err != nil {
			t.Fatal(err)
		}
		if off := tree.Z.LogAbs() - along.Z.LogAbs(); math.Abs(off) > 1e-11 {
			t.Errorf("evidence %v: ln Z is off by %g", evidence, off)
		}
		if tree.Flops > 1.01*as[0].Cost.Flops {
			t.Errorf("evidence %v: %g flops, %g are planned", evidence, tree.Flops, as[0].Cost.Flops)
		}
		a, b := rows(tree), rows(along)
		for i := range a {
			if math.Abs(a[i]-b[i]) > 1e-12 {
				t.Fatalf("evidence %v: probability %d is %v along the tree, %v along the order", evidence, i, a[i], b[i])
			}
		}
	}
	if len(memo) != 1 {
		t.Errorf("%d plans are remembered, want 1", len(memo))
	}
}

// rows are the marginal probabilities of a value, one after the other.
func rows(v btn.Value) (p []float64) {
	for _, m := range v.Marginals.Mant {
		p = append(p, scaled.Make(m, v.Marginals.Exp).Div(v.Z).Float64())
	}
	return p
}

// TestLargeNetworksHaveOneTree: networks whose tables are nearly all logic have it, too.
func TestLargeNetworksHaveOneTree(t *testing.T) {
	for _, name := range []string{"munin", "munin1"} {
		net, err := reparam.Build(t.Context(), reference.Read(t, "bn/"+name+".bif.gz"), reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		as, err := Assign(t.Context(), net, []btn.Demand{{Want: btn.Want{Marginals: true}}}, query.Settings{}, nil, nil)
		if err != nil || as[0].Error != nil {
			t.Fatal(err, as[0].Error)
		}
		part := as[0].Plan.Estimates[0].Parts[0]
		if _, ok := part.(*exact.Junction); !ok {
			t.Errorf("%s: part %T", name, part)
		}
	}
}
