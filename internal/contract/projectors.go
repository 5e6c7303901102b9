package contract

// Projectors of truncated trees, remembered from component to component.

import (
	"context"
	"sync"

	"github.com/basetensor/basetensor/internal/compressed"
	"github.com/basetensor/basetensor/internal/memo"
)

// ProjectorMemo remembers projectors by key. Do returns the remembered ones or computes and remembers them; they are shared
// and do not change. An implementation that fails must compute: losing its memory changes nothing but time.
type ProjectorMemo interface {
	Do(ctx context.Context, key string, compute func(context.Context) (*compressed.Projectors, error)) (*compressed.Projectors, error)
}

// Recent keeps the projectors used last in this process, at most so many bytes of them. The zero value is empty and keeps
// 128 MiB; it may be used by several goroutines, which may both compute the same.
type Recent struct {
	Most int64 // bytes; 0: 128 MiB

	bounds sync.Once
	known  memo.LRU[string, *compressed.Projectors]
}

const mostRecent = 128 << 20

// Do implements ProjectorMemo.
func (r *Recent) Do(ctx context.Context, key string, compute func(context.Context) (*compressed.Projectors, error)) (*compressed.Projectors, error) {
	r.bounds.Do(func() {
		if r.known.Bytes = r.Most; r.Most <= 0 {
			r.known.Bytes = mostRecent
		}
	})
	if p, ok := r.known.Get(key); ok {
		return p, nil
	}
	p, err := compute(ctx)
	if err == nil {
		r.known.Add(key, p, p.Bytes())
	}
	return p, err
}

// projectors returns those of a key through the memo, if there is one.
func (j job) projectors(ctx context.Context, key string, learn func(context.Context) (*compressed.Projectors, error)) (*compressed.Projectors, error) {
	if j.options.Projectors == nil {
		return learn(ctx)
	}
	return j.options.Projectors.Do(ctx, key, learn)
}
