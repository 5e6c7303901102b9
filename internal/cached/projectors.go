package cached

import (
	"context"

	"github.com/basetensor/basetensor/internal/cache"
	"github.com/basetensor/basetensor/internal/contract"
	"github.com/basetensor/basetensor/internal/engine/compressed"
	"github.com/basetensor/basetensor/internal/plan"
)

// Projectors remembers projectors of truncated trees: the last ones in this process, smaller ones
// in a cache as well. It is the problem.ProjectorMemo of contract-worker.
type Projectors struct {
	Cache *cache.Cache // nil: only this process remembers them
	Most  int          // largest size in bytes of an entry of the cache; 0: 4 MiB

	recent contract.Recent
}

// mostCached is the default of Projectors.Most.
const mostCached = 4 << 20

// Do implements problem.ProjectorMemo. A stored entry that cannot be decoded is forgotten and
// computed again.
func (p *Projectors) Do(
	ctx context.Context, key string, compute func(context.Context) (*compressed.Projectors, error),
) (*compressed.Projectors, error) {
	return p.recent.Do(ctx, key, func(ctx context.Context) (*compressed.Projectors, error) {
		if p.Cache == nil {
			return compute(ctx)
		}

		key := "btn:v1:projectors:" + plan.AlgorithmVersion + ":" + NumericKind() + ":" + key

		if b, ok := p.Cache.Get(ctx, key); ok {
			value := new(compressed.Projectors)
			if value.UnmarshalBinary(b) == nil {
				return value, nil
			}
			p.Cache.Forget(ctx, key)
		}

		value, err := compute(ctx)
		if err != nil {
			return nil, err
		}

		most := p.Most
		if most <= 0 {
			most = mostCached
		}
		if value.Bytes() <= int64(most) {
			if b, err := value.MarshalBinary(); err == nil {
				p.Cache.Put(ctx, key, b)
			}
		}
		return value, nil
	})
}
