package cached

import (
	"context"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/cache"
	"github.com/basetensor/basetensor/internal/contract"
	"github.com/basetensor/basetensor/internal/families/truncated/trees"
	"github.com/basetensor/basetensor/internal/plan"
)

// Parts remembers inputs of contracting parts: the values used last in this process, smaller ones
// in a cache as well. It is a problem.Memo of contract-worker.
type Parts[V interface{ Bytes() int64 }] struct {
	Cache *cache.Cache // nil: only this process remembers them
	Most  int64        // largest size in bytes of an entry of the cache

	kind   string
	encode func(V) ([]byte, error)
	decode func(context.Context, []byte) (V, error)
	recent contract.Recent[V]
}

// Largest entries of the cache.
const (
	mostProjectors = 4 << 20
	mostCircuit    = 64 << 20
)

// NewProjectors returns a memo of projectors of truncated trees. The cache may be nil.
func NewProjectors(c *cache.Cache) *Parts[*trees.Projectors] {
	return &Parts[*trees.Projectors]{
		Cache: c, Most: mostProjectors, kind: "projectors",
		encode: (*trees.Projectors).MarshalBinary,
		decode: func(_ context.Context, b []byte) (*trees.Projectors, error) {
			p := new(trees.Projectors)
			return p, p.UnmarshalBinary(b)
		},
	}
}

// NewCircuits returns a memo of circuits of cubes. The cache may be nil.
func NewCircuits(c *cache.Cache) *Parts[*btn.Compiled] {
	return &Parts[*btn.Compiled]{
		Cache: c, Most: mostCircuit, kind: "circuit",
		encode: func(of *btn.Compiled) ([]byte, error) { return of.Encode(), nil },
		decode: btn.DecodeCompiled,
	}
}

// Do implements problem.Memo. A stored entry that cannot be decoded is forgotten and computed again.
func (p *Parts[V]) Do(ctx context.Context, key string, compute func(context.Context) (V, error)) (V, error) {
	return p.recent.Do(ctx, key, func(ctx context.Context) (V, error) {
		if p.Cache == nil {
			return compute(ctx)
		}

		key := cache.Prefix + p.kind + ":" + plan.AlgorithmVersion + ":" + NumericKind() + ":" + key
		if b, ok := p.Cache.Get(ctx, key); ok {
			if value, err := p.decode(ctx, b); err == nil {
				return value, nil
			}
			if ctx.Err() != nil {
				var none V
				return none, ctx.Err() // it was called off, and nothing is wrong with the entry
			}
			p.Cache.Forget(ctx, key)
		}

		value, err := compute(ctx)
		if err != nil {
			return value, err
		}
		if value.Bytes() <= p.Most {
			if b, err := p.encode(value); err == nil {
				p.Cache.Put(ctx, key, b)
			}
		}
		return value, nil
	})
}
