package exact

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Contract returns the part of Z that the slices From ≤ s < To make up, and the flops it took:
// Answer without marginals.
//
// Errors: ErrOtherNetwork (fault.Internal), sumproduct.ErrSpan where entries are beyond float64 or
// a total of 0 is in doubt, over budget with the bytes before anything is computed, the context's.
func (p *Prepared) Contract(
	ctx context.Context, c *Tree, o Options,
) (scaled.Number, float64, error) {
	a, err := p.AnswerSlices(ctx, c, o)
	return a.Z, a.Flops, a.unless(err)
}

// Marginals is Contract with the probabilities of every variable's values, given that the slices
// were all there is: rows per variable of the network, nil where the part of Z is 0. The
// contraction must have been planned for marginals.
func (p *Prepared) Marginals(
	ctx context.Context, c *Tree, o Options,
) (z scaled.Number, rows [][]float64, flops float64, err error) {
	if !p.marginals {
		return z, nil, 0, fault.New(fault.Internal,
			"exact: the network was not simplified for marginals")
	}
	a, err := p.AnswerSlices(ctx, c, o)
	return a.Z, a.Rows, a.Flops, a.unless(err)
}

// unless is an error of its own, or ErrSpan for a total of 0 that may have lost terms.
func (a *Answer) unless(err error) error {
	if err == nil && a.Z.IsZero() && a.Doubt != "" {
		return fault.New(fault.Unsupported, "%w: %s", sumproduct.ErrSpan, a.Doubt)
	}
	return err
}
