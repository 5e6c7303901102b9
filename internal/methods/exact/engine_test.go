package exact_test

import (
	"context"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
	"github.com/basetensor/basetensor/pkg/fault"
)

// TestExactEngine: simplified, planned and contracted,
// within the smallest budget where slices are wanted.
func TestExactEngine(t *testing.T) {
	enginetest.Exercise(t, enginetest.Engine{
		Contract: func(ctx context.Context, p *enginetest.Problem,
			w enginetest.Want) (v enginetest.Value, err error) {
			ready, err := exact.PrepareJoint(ctx, p.Network, w.Marginals, w.Joint, w.Memory)
			if err != nil {
				return v, err
			}
			o := exact.PlanOptions{Memory: w.Memory, Seed: p.Seed, Moves: 1 << 24}
			c, _, err := ready.PlanWithin(ctx, o)
			for o.Memory = 1 << 20; w.Sliced && err == nil &&
				o.Memory > 64; o.Memory = o.Memory * 3 / 4 {
				next, _, err := ready.PlanWithin(ctx, o)
				if fault.CodeOf(err) == fault.OverBudget && err != nil {
					break
				}
				if err != nil {
					return v, err
				}
				c = next
			}
			if err != nil {
				return v, err
			}
			a, err := ready.AnswerSlices(ctx, c,
				exact.Options{Memory: w.Memory, Threads: w.Threads, From: w.From, To: w.To})
			if err == nil && a.Doubt != "" {
				return v, enginetest.ErrDeclined
			}
			return enginetest.Value{Z: a.Z, Marginals: a.Rows, Joint: a.Joint,
				Slices: max(1, c.Count)}, err
		},
		Lacks: map[enginetest.Property]string{
			enginetest.Expressions: "it lowers networks itself",
		},
	})
}
