package cached

import (
	"context"

	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/proposal"
)

// Parts is the problem.Memo of contract-worker: it remembers the values used last in this process, smaller ones in a cache as well.
// The zero value has no cache.
type Parts struct {
	Cache *cache.Cache // nil: only this process remembers them

	recent problem.Recent
}

// Of returns the memo of an owner: it finds the values of that one alone. Both share their bounds.
func (p *Parts) Of(owner string) problem.Memo {
	if owner == "" {
		return p
	}
	return ownedParts{p, owner}
}

type ownedParts struct {
	*Parts
	owner string
}

// Do implements problem.Memo.
func (o ownedParts) Do(
	ctx context.Context, e problem.Entry, compute func(context.Context) (problem.Memorable, error),
) (problem.Memorable, error) {
	e.Key = cache.KeyOf(o.owner, e.Key)
	return o.Parts.Do(ctx, e, compute)
}

// Do implements problem.Memo. A stored value that cannot be decoded is forgotten and computed again.
func (p *Parts) Do(
	ctx context.Context, e problem.Entry, compute func(context.Context) (problem.Memorable, error),
) (problem.Memorable, error) {
	return p.recent.Do(ctx, e, func(ctx context.Context) (problem.Memorable, error) {
		if p.Cache == nil {
			return compute(ctx)
		}

		key := cache.Prefix + e.Kind + ":" + proposal.AlgorithmVersion + ":" + NumericKind() + ":" + e.Key
		if b, ok := p.Cache.Get(ctx, key); ok {
			if value, err := e.Decode(ctx, b); err == nil {
				return value, nil
			}
			if ctx.Err() != nil { // it was called off, and nothing is wrong with the stored value
				return nil, ctx.Err()
			}
			p.Cache.Forget(ctx, key)
		}

		value, err := compute(ctx)
		if err != nil {
			return nil, err
		}
		if value.Bytes() <= e.Most {
			if b, err := value.MarshalBinary(); err == nil {
				p.Cache.Put(ctx, key, b)
			}
		}
		return value, nil
	})
}
