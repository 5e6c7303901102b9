package problem

// What contracting a part needs and parts of other jobs may need again.

import (
	"context"
	"sync"

	"github.com/basetensor/basetensor/internal/base/memo"
)

// Memo remembers values by kind and key. Do returns the remembered value or computes and remembers it; values are
// shared and do not change. An implementation that fails must compute: losing its memory changes
// nothing but time. An error is not remembered.
type Memo interface {
	Do(ctx context.Context, e Entry, compute func(context.Context) (Memorable, error)) (Memorable, error)
}

// Memorable is a value of a Memo.
type Memorable interface {
	Bytes() int64 // about what it takes in memory
	MarshalBinary() ([]byte, error)
}

// Entry names a value of a Memo.
type Entry struct {
	Kind string // of the value
	Key  string // all that it depends on, of its kind
	Most int64  // largest size in bytes of a value that is stored outside of the process
	// Decode reads what MarshalBinary wrote. The context's error says nothing about the bytes.
	Decode func(context.Context, []byte) (Memorable, error)
}

// Remember returns the value of an entry through the problem's memo, if it has one.
func Remember[V Memorable](ctx context.Context, p *Problem, e Entry, compute func(context.Context) (V, error)) (V, error) {
	if p.Memo == nil {
		return compute(ctx)
	}
	value, err := p.Memo.Do(ctx, e, func(ctx context.Context) (Memorable, error) { return compute(ctx) })
	if err != nil {
		var none V
		return none, err
	}
	return value.(V), nil
}

// mostRecent bounds the bytes of Recent where its Most is 0.
const mostRecent = 256 << 20

// Recent is a Memo of the values used last in this process. The zero value is empty and keeps
// 256 MiB; it may be used by several goroutines, which may both compute the same.
type Recent struct {
	Most int64 // bytes; 0: 256 MiB

	bounds sync.Once
	known  memo.LRU[[2]string, Memorable]
}

// Do implements Memo.
func (r *Recent) Do(
	ctx context.Context, e Entry, compute func(context.Context) (Memorable, error),
) (Memorable, error) {
	r.bounds.Do(func() {
		if r.known.Bytes = r.Most; r.Most <= 0 {
			r.known.Bytes = mostRecent
		}
	})
	key := [2]string{e.Kind, e.Key}
	if v, ok := r.known.Get(key); ok {
		return v, nil
	}
	v, err := compute(ctx)
	if err == nil {
		r.known.Add(key, v, v.Bytes())
	}
	return v, err
}
