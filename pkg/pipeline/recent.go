package pipeline

import (
	"container/list"
	"sync"
)

// recent keeps the values used last, at most so many and of so many bytes together. What it returns is shared and must not be
// changed.
type recent[K comparable, V any] struct {
	most, mostBytes int

	mu    sync.Mutex
	order list.List // of *entry[K, V], most recent first
	by    map[K]*list.Element
	bytes int
}

type entry[K comparable, V any] struct {
	key   K
	value V
	bytes int
}

func (r *recent[K, V]) get(key K) (value V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.by[key]
	if e == nil {
		return value, false
	}
	r.order.MoveToFront(e)
	return e.Value.(*entry[K, V]).value, true
}

// put adds a value that takes about so many bytes, unless its key is known or it is larger than all may be together.
func (r *recent[K, V]) put(key K, value V, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by[key] != nil || bytes > r.mostBytes {
		return
	}
	if r.by == nil {
		r.by = map[K]*list.Element{}
	}
	r.by[key] = r.order.PushFront(&entry[K, V]{key, value, bytes})
	r.bytes += bytes
	for r.order.Len() > r.most || r.bytes > r.mostBytes {
		old := r.order.Remove(r.order.Back()).(*entry[K, V])
		delete(r.by, old.key)
		r.bytes -= old.bytes
	}
}
