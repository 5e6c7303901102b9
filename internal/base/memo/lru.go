// Package memo is a cache in the memory of this process, bounded in entries and bytes: the least recently used values are dropped first.
package memo

import "sync"

// LRU keeps the values used last, by key: at most so many, and of so many bytes together. Returned
// values are shared and must not be changed. The zero value is empty and has no bounds; bounds must
// not change once it is in use. It may be used by several goroutines. Every method takes O(1) time,
// beside the values it throws out.
type LRU[K comparable, V any] struct {
	Entries int   // at most; 0: any number
	Bytes   int64 // of all values together at most; 0: any number; below 0: nothing is kept
	Largest int64 // bytes of one value at most; 0: Bytes. Larger ones are not kept

	mu    sync.Mutex
	by    map[K]*entry[K, V]
	ring  entry[K, V] // next is the entry used last, before the one that goes first
	bytes int64
}

type entry[K comparable, V any] struct {
	key          K
	value        V
	bytes        int64
	next, before *entry[K, V]
}

// Get returns the value of a key, which is the one used last from now on.
func (l *LRU[K, V]) Get(key K) (value V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.by[key]
	if e == nil {
		return value, false
	}
	l.use(e)
	return e.value, true
}

// Put keeps a value of about so many bytes, in place of the key's last one. One that is too large is not kept, nor is the last one.
func (l *LRU[K, V]) Put(key K, value V, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.by[key]; e != nil {
		l.drop(e)
	}
	l.add(key, value, bytes)
}

// Add keeps a value of about so many bytes unless its key is known, and returns the one that is known from now on: the given one, where it
// is too large to be kept, too.
func (l *LRU[K, V]) Add(key K, value V, bytes int64) V {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.by[key]; e != nil {
		l.use(e)
		return e.value
	}
	l.add(key, value, bytes)
	return value
}

// Resize says that the value of a key, if it is known, takes about so many bytes.
func (l *LRU[K, V]) Resize(key K, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.by[key]; e != nil {
		l.bytes += bytes - e.bytes
		if e.bytes = bytes; l.tooLarge(bytes) {
			l.drop(e)
		}
		l.trim()
	}
}

// Remove forgets a key.
func (l *LRU[K, V]) Remove(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.by[key]; e != nil {
		l.drop(e)
	}
}

// Held returns the number of values, and their bytes.
func (l *LRU[K, V]) Held() (entries int, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.by), l.bytes
}

func (l *LRU[K, V]) tooLarge(bytes int64) bool {
	most := l.Largest
	if most == 0 {
		most = l.Bytes
	}
	return most != 0 && bytes > most
}

func (l *LRU[K, V]) add(key K, value V, bytes int64) {
	if l.tooLarge(bytes) {
		return
	}
	if l.by == nil {
		l.by = map[K]*entry[K, V]{}
		l.ring.next, l.ring.before = &l.ring, &l.ring
	}
	e := &entry[K, V]{key: key, value: value, bytes: bytes}
	l.by[key] = e
	l.bytes += bytes
	l.link(e)
	l.trim()
}

// trim drops the least recently used values.
func (l *LRU[K, V]) trim() {
	for l.Entries > 0 && len(l.by) > l.Entries || l.Bytes > 0 && l.bytes > l.Bytes {
		l.drop(l.ring.before)
	}
}

func (l *LRU[K, V]) drop(e *entry[K, V]) {
	l.unlink(e)
	delete(l.by, e.key)
	l.bytes -= e.bytes
}

func (l *LRU[K, V]) use(e *entry[K, V]) {
	l.unlink(e)
	l.link(e)
}

// link puts an entry in front.
func (l *LRU[K, V]) link(e *entry[K, V]) {
	e.before, e.next = &l.ring, l.ring.next
	e.next.before = e
	l.ring.next = e
}

func (l *LRU[K, V]) unlink(e *entry[K, V]) {
	e.before.next, e.next.before = e.next, e.before
}
