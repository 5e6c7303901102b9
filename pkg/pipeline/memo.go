package pipeline

import (
	"context"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/cache"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/internal/bus"
	"github.com/basetensor/basetensor/pkg/learn"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Memo remembers decompositions in a cache, as bytes: it is the learn.Memo of learn-worker.
type Memo struct{ Cache *cache.Cache }

// Do returns the decomposition under key, or computes it and remembers it. An entry that was kept faithfully and yet
// cannot be decoded, written by another version perhaps, is forgotten and computed anew.
func (m Memo) Do(ctx context.Context, key string, compute func(context.Context) (*btn.Decomposition, error)) (*btn.Decomposition, bool, error) {
	var dec *btn.Decomposition // set if this call computes
	produce := func(ctx context.Context) ([]byte, error) {
		var err error
		if dec, err = compute(ctx); err != nil {
			return nil, err
		}
		b, err := wire.EncodeDecomposition(dec)
		return b, fault.Wrap(fault.Internal, err)
	}
	b, hit, err := m.Cache.GetOrCompute(ctx, key, produce)
	if err != nil {
		return nil, false, err
	}
	if dec != nil {
		return dec, false, nil
	}
	if dec, err = wire.DecodeDecomposition(b); err == nil {
		return dec, hit, nil
	}
	m.Cache.Forget(ctx, key)
	dec, err = compute(ctx)
	return dec, false, err
}

// openCache opens the cache of a Config, in this process only without a Redis.
func openCache(c Config, b *bus.Bus) (*cache.Cache, error) {
	store, err := cache.Open(c.Redis, cache.Options{Overflow: overflow{b}, Logger: c.Logger})
	return store, fault.Wrap(fault.BadInput, err)
}

// memoIn is the memo of learn-worker; without a Redis there is none, and every decomposition says "off".
func memoIn(c Config, store *cache.Cache) learn.Memo {
	if c.Redis == "" {
		return nil
	}
	return Memo{store}
}

// overflow keeps the decompositions that are too large for Redis among the blobs.
type overflow struct{ bus *bus.Bus }

func (o overflow) Get(ctx context.Context, digest string) ([]byte, error) {
	return o.bus.GetBlob(ctx, digest)
}

func (o overflow) Put(ctx context.Context, _ string, value []byte) error {
	_, err := o.bus.PutBlob(ctx, value)
	return err
}
