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

// Draw implements Sampling.
func (s *MiniBuckets) Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error) {
	return drawIndependent(ctx, p, s, from, to, want)
}

// distribution implements independent: the mini-buckets themselves.
func (*MiniBuckets) distribution(_ context.Context, m material) (*importance.Proposal, error) {
	return importance.New(m.prepared.Expression(), m.bound, nil, 1)
}

// tryMiniBuckets tries draws from the mini-buckets of a trial, without anything else.
func tryMiniBuckets(ctx context.Context, c *trial) error {
	s := &MiniBuckets{c.common}
	s.Kind = ByMiniBuckets
	p, err := s.distribution(ctx, c.material)
	if err == nil {
		_, err = c.tryKind(ctx, s, p)
	}
	return err
}
