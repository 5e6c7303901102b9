package bp

import (
	"context"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Messages runs belief propagation on m, without evidence, and returns its state, whose LnZ is the
// Bethe value. Factors of every form take part through trees of tables, except symmetric and
// symmetry-CP ones whose chains of counters have more than 2^24 entries. Complete says that none was
// left out.
// Errors: from reparam.AbsorbUnary and Run.
func Messages(
	ctx context.Context, m *factorgraph.Model, o Options,
) (state *State, complete bool, err error) {
	g, err := newGauge(ctx, m, o)
	if err != nil {
		return nil, false, err
	}
	for _, at := range g.factors.incidences {
		if len(at) > 0 && at[0].table < 0 {
			return g.state, false, nil
		}
	}
	return g.state, true, nil
}
