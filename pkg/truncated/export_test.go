package truncated

import (
	"context"

	"github.com/basetensor/basetensor/pkg/compressed"
)

// Tree searches a plan of the family tree.
func (p *Prepared) Tree(ctx context.Context, o SearchOptions) (compressed.Plan, error) {
	found, err := p.tree(ctx, o, 1<<26)
	if err != nil {
		return compressed.Plan{}, err
	}
	return decodeTree(found.plan.Tree)
}
