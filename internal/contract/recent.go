package contract

// What contracting a part needs and the next part may need again, remembered in this process.

import (
	"context"
	"sync"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/families/truncated/trees"
	"github.com/basetensor/basetensor/internal/memo"
)

// Recent keeps the values used last in this process, at most so many bytes of them. The zero value is empty and keeps
// 128 MiB; it may be used by several goroutines, which may both compute the same.
type Recent[V interface{ Bytes() int64 }] struct {
	Most int64 // bytes; 0: 128 MiB

	bounds sync.Once
	known  memo.LRU[string, V]
}

// RecentProjectors and RecentCircuits are the memos of problem.Options in this process.
type (
	RecentProjectors = Recent[*trees.Projectors]
	RecentCircuits   = Recent[*btn.Compiled]
)

// mostRecent bounds the bytes of Recent where its Most is 0.
const mostRecent = 128 << 20

// Do implements problem.Memo.
func (r *Recent[V]) Do(ctx context.Context, key string, compute func(context.Context) (V, error)) (V, error) {
	r.bounds.Do(func() {
		if r.known.Bytes = r.Most; r.Most <= 0 {
			r.known.Bytes = mostRecent
		}
	})

	if v, ok := r.known.Get(key); ok {
		return v, nil
	}

	v, err := compute(ctx)
	if err == nil {
		r.known.Add(key, v, v.Bytes())
	}
	return v, err
}
