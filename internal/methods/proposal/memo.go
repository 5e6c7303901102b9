package proposal

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// AlgorithmVersion is part of every cache key. It changes whenever the same network and settings may give
// another decomposition.
const AlgorithmVersion = "22"

// Memo remembers plans by key. Do returns the remembered plan with hit true, or computes and remembers it. An implementation whose memory
// fails must compute: losing its memory changes nothing but time. The context that compute gets is that of the computation.
type Memo interface {
	Do(ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error)) (plan *btn.Plan, hit bool, err error)
}
