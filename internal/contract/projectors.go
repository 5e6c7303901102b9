package contract

// Projectors of truncated trees, remembered from component to component.

import (
	"context"
	"sync"

	"github.com/basetensor/basetensor/internal/engine/compressed"
	"github.com/basetensor/basetensor/internal/memo"
)

// Recent keeps the projectors used last in this process, at most so many bytes of them. The zero
// value is empty and keeps 128 MiB; it may be used by several goroutines, which may both compute
// the same.
type Recent struct {
	Most int64 // bytes; 0: 128 MiB

	bounds sync.Once
	known  memo.LRU[string, *compressed.Projectors]
}

// mostRecent bounds the bytes of Recent where its Most is 0.
const mostRecent = 128 << 20

// Do implements problem.ProjectorMemo.
func (r *Recent) Do(
	ctx context.Context, key string, compute func(context.Context) (*compressed.Projectors, error),
) (*compressed.Projectors, error) {
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
