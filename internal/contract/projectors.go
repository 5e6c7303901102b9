package contract

// Projectors of truncated trees, remembered from component to component.

import (
	"container/list"
	"context"
	"sync"

	"github.com/basetensor/basetensor/internal/compressed"
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

	mu    sync.Mutex
	order list.List // of *recent, last used first
	by    map[string]*list.Element
	bytes int64
}

type recent struct {
	key   string
	value *compressed.Projectors
}

const mostRecent = 128 << 20

// Do implements ProjectorMemo.
func (r *Recent) Do(ctx context.Context, key string, compute func(context.Context) (*compressed.Projectors, error)) (*compressed.Projectors, error) {
	if p := r.get(key); p != nil {
		return p, nil
	}
	p, err := compute(ctx)
	if err == nil {
		r.put(key, p)
	}
	return p, err
}

func (r *Recent) get(key string) *compressed.Projectors {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.by[key]
	if e == nil {
		return nil
	}
	r.order.MoveToFront(e)
	return e.Value.(*recent).value
}

func (r *Recent) put(key string, p *compressed.Projectors) {
	most := r.Most
	if most <= 0 {
		most = mostRecent
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by[key] != nil || p.Bytes() > most {
		return
	}
	if r.by == nil {
		r.by = map[string]*list.Element{}
	}
	r.by[key] = r.order.PushFront(&recent{key, p})
	for r.bytes += p.Bytes(); r.bytes > most; {
		old := r.order.Remove(r.order.Back()).(*recent)
		delete(r.by, old.key)
		r.bytes -= old.value.Bytes()
	}
}

// projectors returns those of a key through the memo, if there is one.
func (j job) projectors(ctx context.Context, key string, learn func(context.Context) (*compressed.Projectors, error)) (*compressed.Projectors, error) {
	if j.options.Projectors == nil {
		return learn(ctx)
	}
	return j.options.Projectors.Do(ctx, key, learn)
}
