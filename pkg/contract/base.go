package contract

// C = B: the network itself, contracted exactly along an elimination order.

import (
	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/einsum"
)

// base returns Z(T) as an expression over dense tables, whose Scale includes the network's. The order names indices of that
// expression; evidence changes their dimensions, never their numbers.
func (j job) base() (btn.Value, error) {
	e, err := einsum.Build(j.net)
	if err != nil {
		return btn.Value{}, err
	}
	z, stats, err := einsum.Contract(j.ctx, e, j.q.Order, einsum.Options{Memory: j.memory, Threads: j.threads})
	if err != nil {
		return btn.Value{}, err
	}
	return btn.Value{Z: z, Flops: stats.Flops}, nil
}
