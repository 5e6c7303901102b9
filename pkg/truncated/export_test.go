package truncated

import (
	"context"

	"github.com/basetensor/basetensor/pkg/btn"
)

// Tree searches a plan of the family tree.
func (p *Prepared) Tree(ctx context.Context, o SearchOptions) (btn.TruncatedPlan, error) {
	found, err := p.tree(ctx, o, 1<<26)
	return found.plan, err
}
