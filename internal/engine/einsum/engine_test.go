package einsum_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// orderFor is min-fill or any order.
func orderFor(p *enginetest.Problem, h contractionorder.Hypergraph) []int {
	if p.Seed%2 == 0 || len(h.Dims) > 20 {
		return orders.MinFill(h)
	}
	return contractionorder.Restrict(rand.New(rand.NewPCG(p.Seed, 1)).Perm(len(h.Dims)), h)
}

func TestTableEngine(t *testing.T) {
	enginetest.Exercise(t, enginetest.Engine{
		Contract: func(ctx context.Context, p *enginetest.Problem, w enginetest.Want) (enginetest.Value, error) {
			o, order := einsum.Options{Threads: w.Threads, Memory: w.Memory}, orderFor(p, p.Expression.Hypergraph())
			if !w.Marginals {
				z, _, err := einsum.Contract(ctx, p.Expression, order, o)
				return enginetest.Value{Z: z}, err
			}
			r, _, err := einsum.Marginals(ctx, p.Expression, order, o)
			if err != nil {
				return enginetest.Value{}, err
			}
			return enginetest.Value{Z: r.Z, Marginals: p.ByVariable(enginetest.Normalised(r.Z, r.Marginals))}, nil
		},
		Lacks: map[enginetest.Property]string{
			enginetest.Joint:  "an expression with an index over the cells has them as marginals of that index",
			enginetest.Slices: "an elimination is not sliced",
		},
	})
}

func TestCompiledEngine(t *testing.T) {
	enginetest.Exercise(t, enginetest.Engine{
		Contract: func(ctx context.Context, p *enginetest.Problem, w enginetest.Want) (enginetest.Value, error) {
			shape, err := lower.Shape(ctx, p.Base)
			if err != nil {
				return enginetest.Value{}, err
			}
			program, ok := einsum.Compile(p.Base, orderFor(p, shape), 1e7)
			if !ok {
				return enginetest.Value{}, enginetest.ErrDeclined
			}
			if !w.Marginals {
				z, ok := program.Z(p.Network)
				if !ok {
					return enginetest.Value{}, enginetest.ErrDeclined
				}
				return enginetest.Value{Z: z}, nil
			}
			total := 0
			for _, d := range p.Model.Domains {
				total += d
			}
			parts := make([]scaled.Number, total)
			z, ok := program.Marginals(p.Network, parts)
			if !ok {
				return enginetest.Value{}, enginetest.ErrDeclined
			}
			v := enginetest.Value{Z: z}
			for _, d := range p.Model.Domains {
				v.Marginals = append(v.Marginals, enginetest.Normalised(z, [][]scaled.Number{parts[:d]})[0])
				parts = parts[d:]
			}
			return v, nil
		},
		Lacks: map[enginetest.Property]string{
			enginetest.Joint:       "a program's indices are those of the network",
			enginetest.Signs:       "terms may cancel, which it does not count: programs are of entries of 0 and above",
			enginetest.Expressions: "programs are made of networks",
			enginetest.Slices:      "an elimination is not sliced",
			enginetest.Threads:     "programs are small and run in one goroutine",
			enginetest.OverBudget:  "programs are bounded by their flops: see TestProgramsAreForSmallNetworks",
			enginetest.Range:       "products that would lose digits are left to the general way: see TestProgramsRefuseWhatTheyWouldLose",
			enginetest.Cancelled:   "a program runs for less than a millisecond and looks at no context",
		},
	})
}
