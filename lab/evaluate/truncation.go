package evaluate

// Trees and sweeps on their own: truncation at every bond, also where an exact plan would fit.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/methods/truncated/sweeps"
	"github.com/basetensor/basetensor/internal/methods/truncated/trees"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	searchMoves = 1 << 27 // of a tree, about a tenth of a second
	searchSites = 1 << 21 // of a sweep, the same
	mostFlops   = 2e9     // of one contraction
)

// prepared is a model's network, simplified.
func prepared(ctx context.Context, m *factorgraph.Model, marginals bool) (*truncated.Prepared, error) {
	net, err := reparam.Build(ctx, m, reparam.Options{})
	if err != nil {
		return nil, err
	}
	return truncated.Prepare(ctx, net, marginals)
}

// plannedTree is a tree made for a bond; exact trees have no privilege.
func plannedTree(ctx context.Context, p *truncated.Prepared, bond int) (trees.Plan, error) {
	plan, _, err := trees.Search(ctx, p.Hypergraph(), trees.SearchOptions{
		Bond:  bond,
		Flops: 1,
		Moves: searchMoves,
	})
	return plan, err
}

// alongTree is truncated legs along one tree, at one bond.
func alongTree(name string, bond int) Method {
	return Method{Name: name, Step: math.NaN(),
		Solve: func(ctx context.Context, m *factorgraph.Model, _ bool) (Outcome, error) {
			o := unknown()
			p, err := prepared(ctx, m, false)
			if err != nil {
				return o, err
			}
			plan, err := plannedTree(ctx, p, bond)
			if err != nil {
				return o, err
			}
			v, err := trees.Contract(ctx, p.Expression(), plan, trees.Options{Bond: bond})
			o.LnZ, o.Flops = logarithm(v.Z), v.Flops
			return o, err
		}}
}

// logarithm is ln Z, NaN where the estimate is not above 0.
func logarithm(z scaled.Number) float64 {
	if z.Sign() <= 0 {
		return math.NaN()
	}
	return z.LogAbs()
}

// contraction is an answer at one bond, and whether something was truncated; of NaN flops where it would take too much.
type contraction func(bond int) (o Outcome, truncated bool, err error)

// alongOneTree are contractions along one tree.
func alongOneTree(ctx context.Context, p *truncated.Prepared) (contraction, error) {
	plan, err := plannedTree(ctx, p, 32)
	return func(bond int) (Outcome, bool, error) {
		cost, err := trees.Evaluate(p.Hypergraph(), plan, bond)
		if err != nil || cost.Flops > mostFlops || cost.Bytes > float64(query.DefaultMemory) {
			return unknown(), false, err
		}
		v, err := trees.Contract(ctx, p.Expression(), plan, trees.Options{Bond: bond})
		return valued(v.Z, v.Flops), v.Truncated, err
	}, err
}

// sweeping are contractions by a matrix product state.
func sweeping(ctx context.Context, p *truncated.Prepared) (contraction, error) {
	plan, _, err := sweeps.Search(ctx, p.Hypergraph(), sweeps.SearchOptions{Bond: 32, Moves: searchSites})
	return func(bond int) (Outcome, bool, error) {
		cost, err := sweeps.Evaluate(ctx, p.Hypergraph(), plan, bond, false)
		if err != nil || cost.Flops > mostFlops || cost.Bytes > float64(query.DefaultMemory) {
			return unknown(), false, err
		}
		v, err := sweeps.Contract(ctx, p.Expression(), plan, sweeps.Options{Bond: bond})
		return valued(v.Z, v.Flops), v.Truncated, err
	}, err
}

func valued(z scaled.Number, flops float64) Outcome {
	o := unknown()
	o.LnZ, o.Flops = logarithm(z), flops
	return o
}

// bonded contracts at one bond after the other, as long as something is truncated; flops add up.
func bonded(
	ctx context.Context, m *factorgraph.Model, bonds []int,
	planned func(context.Context, *truncated.Prepared) (contraction, error),
) func(emit func(suffix string, step float64, o Outcome)) error {
	return func(emit func(string, float64, Outcome)) error {
		p, err := prepared(ctx, m, false)
		if err != nil {
			return err
		}
		contract, err := planned(ctx, p)
		if err != nil {
			return err
		}
		total := 0.0
		for _, bond := range bonds {
			o, more, err := contract(bond)
			if err != nil || math.IsNaN(o.Flops) {
				return err
			}
			total += o.Flops
			o.Flops = total
			emit("", float64(bond), o)
			if !more {
				break
			}
		}
		return nil
	}
}
