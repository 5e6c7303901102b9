package truncated

import (
	"context"

	"github.com/basetensor/basetensor/internal/btn"
)

// Tree searches a plan of the family tree.
func (p *Prepared) Tree(ctx context.Context, o SearchOptions, moves int64) (btn.TruncatedPlan, error) {
	found, err := p.tree(ctx, o, moves)
	return found.plan, err
}
