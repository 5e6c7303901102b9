package junction_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/junction"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestEngine has what every engine is to do.
func TestEngine(t *testing.T) {
	enginetest.Exercise(t, enginetest.Engine{
		Contract: func(_ context.Context, p *enginetest.Problem, w enginetest.Want) (enginetest.Value, error) {
			over, ok := plan(t, rand.New(rand.NewPCG(p.Seed, 1)), p.Base)
			if !ok {
				return enginetest.Value{}, enginetest.ErrDeclined
			}
			tree, ok := junction.Compile(p.Base, over)
			if !ok {
				return enginetest.Value{}, enginetest.ErrDeclined
			}
			q := junction.Query{Net: p.Network}
			if w.Marginals {
				q.Marginals = make([]scaled.Number, values(p.Model))
			}
			a := run(t, tree, q)[0]
			if !a.OK {
				return enginetest.Value{}, enginetest.ErrDeclined
			}
			v := enginetest.Value{Z: a.Z}
			for _, d := range p.Model.Domains {
				if w.Marginals {
					v.Marginals = append(v.Marginals, enginetest.Normalised(a.Z, [][]scaled.Number{q.Marginals[:d]})[0])
					q.Marginals = q.Marginals[d:]
				}
			}
			return v, nil
		},
		Lacks: map[enginetest.Property]string{
			enginetest.Joint:       "a tree's indices are those of the network",
			enginetest.Signs:       "terms may cancel, which it does not count: trees are of entries of 0 and above",
			enginetest.Expressions: "trees are made of networks",
			enginetest.Slices:      "a tree is not sliced",
			enginetest.Threads:     "trees run in one goroutine",
			enginetest.OverBudget:  "trees are bounded by their flops and bytes before they are made: see exact.JunctionPlan",
			enginetest.Range:       "products that would lose digits are left to other engines: see TestTreesRefuseWhatTheyWouldLose",
			enginetest.Cancelled:   "a run looks at its context before long merges: see TestARunEnds",
		},
	})
}
