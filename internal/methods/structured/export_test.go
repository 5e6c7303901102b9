package structured

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// Find returns the structure of a network; nil where it has none that a quadrature sums.
func Find(ctx context.Context, net *btn.Network, memory int64) (*Fit, error) {
	f, _, err := find(ctx, net, memory)
	return f, err
}
