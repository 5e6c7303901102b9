package truncated

import (
	"context"
)

// Tree searches a plan of the family tree.
func (p *Prepared) Tree(ctx context.Context, o SearchOptions, moves int64) (TruncatedPlan, error) {
	found, err := p.tree(ctx, o, moves)
	return found.plan, err
}
