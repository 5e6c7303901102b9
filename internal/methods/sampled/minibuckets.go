package sampled

// Independent draws from mini-buckets.

import (
	"context"

	"github.com/basetensor/basetensor/internal/methods/sampled/importance"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
)

// ByMiniBuckets is the kind of MiniBuckets.
const ByMiniBuckets Kind = "mini-buckets"

// MiniBuckets is independent draws from mini-buckets (package importance).
type MiniBuckets struct{ Independent }

// Draw implements Sampling. It makes the independent draws from ≤ c < to and returns their weights in Value.Weights.
func (s *MiniBuckets) Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error) {
	return drawIndependent(ctx, p, s, from, to, want)
}

// distribution implements independent. It returns the distribution that draws from the mini-buckets m.bound alone.
func (*MiniBuckets) distribution(_ context.Context, m material) (*importance.Proposal, error) {
	return importance.New(m.prepared.Expression(), m.bound, nil, 1)
}

// tryMiniBuckets makes pilot draws from the mini-buckets of a trial alone.
func tryMiniBuckets(ctx context.Context, c *trial) error {
	candidate := &MiniBuckets{c.initial}
	candidate.Kind = ByMiniBuckets
	distribution, err := candidate.distribution(ctx, c.material)
	if err != nil {
		return err
	}
	_, err = c.tryKind(ctx, candidate, distribution) // it keeps the candidate if that is the best so far
	return err
}
