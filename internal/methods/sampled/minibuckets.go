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
	return draw(ctx, p, s, from, to, want)
}

func (*MiniBuckets) proposal(_ context.Context, b beside) (*importance.Proposal, error) {
	return importance.New(b.own.Expression(), b.bound, nil, 1)
}

// tryMiniBuckets tries draws from the mini-buckets of a trial.
func tryMiniBuckets(ctx context.Context, c *trial) error {
	s := &MiniBuckets{c.given}
	s.Kind = ByMiniBuckets
	p, err := s.proposal(ctx, c.beside)
	if err == nil {
		_, err = c.try(ctx, s, p)
	}
	return err
}
