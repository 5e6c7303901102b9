package descent_test

import (
	"context"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/descent"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
	"github.com/basetensor/basetensor/pkg/fault"
)

// enough is a number of slices to be cut anywhere: thousands take seconds.
const enough = 64

// planned prepares a question, where slices are wanted within the largest power of two that takes enough of them, or else the smallest
// that has a path.
func planned(
	ctx context.Context, p *enginetest.Problem, ask btn.Ask, w enginetest.Want,
) (*descent.Prepared, *descent.Path, error) {
	for _, m := range p.Network.Maps {
		if m.A != nil {
			return nil, nil, enginetest.ErrDeclined // entries below 0
		}
	}
	ready, err := descent.Prepare(ctx, p.Network, ask, nil, w.Memory)
	if err != nil {
		return nil, nil, err
	}
	o := descent.PlanOptions{Memory: w.Memory, Seed: p.Seed, Moves: 1 << 20}
	path, _, err := ready.Plan(ctx, o)
	for o.Memory = 1 << 16; w.Sliced && err == nil && path.Count < enough && o.Memory > 64; o.Memory /= 2 {
		next, _, err := ready.Plan(ctx, o)
		if fault.CodeOf(err) == fault.OverBudget {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		path = next
	}
	return ready, path, err
}

// TestDescentEngine: Z is the total weight of the distribution drawn from.
func TestDescentEngine(t *testing.T) {
	sliced := 0
	enginetest.Exercise(t, enginetest.Engine{
		Contract: func(ctx context.Context, p *enginetest.Problem, w enginetest.Want) (v enginetest.Value, err error) {
			ready, path, err := planned(ctx, p, btn.AskSamples, w)
			if err != nil {
				return v, err
			}
			o := descent.Options{Memory: w.Memory, Threads: w.Threads, From: w.From, To: w.To}
			if o.To == 0 {
				o.To = path.Count
			}
			drawn, err := ready.Draw(ctx, path, 1, 1, o)
			v.Slices = path.Count
			if drawn != nil {
				v.Z = drawn.Weight
			}
			return v, err
		},
		Assign: func(
			ctx context.Context, p *enginetest.Problem, samples int, w enginetest.Want,
		) (out enginetest.Assigned, err error) {
			ready, path, err := planned(ctx, p, btn.AskMPE, w)
			if err != nil {
				return out, err
			}
			if path.Count > 1 {
				sliced++
			}
			// One part per slice, and the best of them.
			var found *btn.Found
			for s := range path.Count {
				part, err := ready.Best(ctx, path, descent.Options{Threads: w.Threads, From: s, To: s + 1})
				if err != nil {
					return out, err
				}
				found = found.Better(part)
			}
			if ready, path, err = planned(ctx, p, btn.AskSamples, w); err != nil {
				return out, err
			}
			drawn, err := ready.Draw(ctx, path, samples, p.Seed, descent.Options{Threads: w.Threads, To: path.Count})
			if err != nil || found == nil || drawn == nil {
				return out, err
			}
			out.Best, out.Ln = found.Values, found.Weight.LogAbs()
			n := len(drawn.Values) / samples
			for k := range samples {
				out.Drawn = append(out.Drawn, drawn.Values[k*n:][:n])
			}
			return out, nil
		},
		Tolerance: 1e-11, // Z comes from its logarithm
		Lacks: map[enginetest.Property]string{
			enginetest.Marginals:   "it finds assignments",
			enginetest.Joint:       "it finds assignments",
			enginetest.Signs:       "it refuses entries below 0: see TestRefusals",
			enginetest.Maps:        "maps make entries below 0",
			enginetest.Expressions: "it lowers networks itself",
		},
	})
	if sliced == 0 && !testing.Short() { // a short run asks few models
		t.Error("nothing was sliced")
	}
}
