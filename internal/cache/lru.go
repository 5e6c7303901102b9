package cache

import (
	"container/list"
	"sync"
)

// lru keeps the entries used last, up to a number of bytes. One entry takes at most a quarter of them.
type lru struct {
	mu    sync.Mutex
	most  int64
	size  int64
	order *list.List // of *item, last used first
	items map[string]*list.Element
}

type item struct {
	key   string
	value []byte
}

// overhead is what an entry takes beside key and value, roughly.
const overhead = 200

func (i *item) size() int64 { return int64(len(i.key)+len(i.value)) + overhead }

func newLRU(most int64) *lru {
	return &lru{most: most, order: list.New(), items: map[string]*list.Element{}}
}

func (l *lru) get(key string) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.items[key]
	if !ok {
		return nil, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*item).value, true
}

func (l *lru) put(key string, value []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(l.items[key])
	i := &item{key, value}
	if i.size() > l.most/4 {
		return
	}
	l.items[key] = l.order.PushFront(i)
	for l.size += i.size(); l.size > l.most; {
		l.drop(l.order.Back())
	}
}

// held returns how many entries there are, and their size.
func (l *lru) held() (entries, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.items)), l.size
}

func (l *lru) remove(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(l.items[key])
}

func (l *lru) drop(e *list.Element) {
	if e == nil {
		return
	}
	i := l.order.Remove(e).(*item)
	delete(l.items, i.key)
	l.size -= i.size()
}
