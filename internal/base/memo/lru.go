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

	mu      sync.Mutex
	entries map[K]*entry[K, V]
	// ring is the sentinel of a ring of all entries: its next is the entry used last, its previous the one to drop first.
	ring  entry[K, V]
	bytes int64 // of all values together
}

// entry is a value with its key, in the ring of all entries.
type entry[K comparable, V any] struct {
	key            K
	value          V
	bytes          int64
	next, previous *entry[K, V]
}

// Get returns the value of a key, which is the one used last from now on.
func (l *LRU[K, V]) Get(key K) (value V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	if e == nil {
		return value, false
	}
	l.moveToFront(e)
	return e.value, true
}

// Put keeps a value of about so many bytes in place of the key's last one, which is dropped. A value that is too large is not kept.
func (l *LRU[K, V]) Put(key K, value V, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[key]; e != nil {
		l.drop(e)
	}
	l.insert(key, value, bytes)
}

// Add returns the value that is kept for a key. If there is none, it keeps and returns the given one, of about so many bytes. A value that
// is too large is returned and not kept.
func (l *LRU[K, V]) Add(key K, value V, bytes int64) V {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[key]; e != nil {
		l.moveToFront(e)
		return e.value
	}
	l.insert(key, value, bytes)
	return value
}

// Resize sets the size of a key's value to about so many bytes, and drops values until the bounds hold again. It does nothing if the key
// has no value.
func (l *LRU[K, V]) Resize(key K, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	if e == nil {
		return
	}
	l.bytes += bytes - e.bytes
	e.bytes = bytes
	if l.isTooLarge(bytes) {
		l.drop(e)
	}
	l.dropExcess()
}

// Remove drops a key and its value.
func (l *LRU[K, V]) Remove(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[key]; e != nil {
		l.drop(e)
	}
}

// Size returns the number of values, and their bytes.
func (l *LRU[K, V]) Size() (entries int, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries), l.bytes
}

// isTooLarge reports whether a value of so many bytes is not kept.
func (l *LRU[K, V]) isTooLarge(bytes int64) bool {
	limit := l.Largest
	if limit == 0 {
		limit = l.Bytes
	}
	return limit != 0 && bytes > limit
}

// insert keeps a value whose key has none, as the one used last, and drops others until the bounds hold. It does nothing if the value is
// too large.
func (l *LRU[K, V]) insert(key K, value V, bytes int64) {
	if l.isTooLarge(bytes) {
		return
	}
	if l.entries == nil {
		l.entries = map[K]*entry[K, V]{}
		l.ring.next, l.ring.previous = &l.ring, &l.ring
	}
	e := &entry[K, V]{key: key, value: value, bytes: bytes}
	l.entries[key] = e
	l.bytes += bytes
	l.pushFront(e)
	l.dropExcess()
}

// dropExcess drops the least recently used values until the bounds of their number and of their bytes hold.
func (l *LRU[K, V]) dropExcess() {
	for l.Entries > 0 && len(l.entries) > l.Entries || l.Bytes > 0 && l.bytes > l.Bytes {
		l.drop(l.ring.previous)
	}
}

// drop removes an entry from the map and the ring.
func (l *LRU[K, V]) drop(e *entry[K, V]) {
	e.unlink()
	delete(l.entries, e.key)
	l.bytes -= e.bytes
}

// moveToFront makes e the entry used last.
func (l *LRU[K, V]) moveToFront(e *entry[K, V]) {
	e.unlink()
	l.pushFront(e)
}

// pushFront links an entry that is in no ring behind the sentinel, as the one used last.
func (l *LRU[K, V]) pushFront(e *entry[K, V]) {
	e.previous, e.next = &l.ring, l.ring.next
	e.next.previous = e
	l.ring.next = e
}

// unlink takes an entry out of the ring.
func (e *entry[K, V]) unlink() {
	e.previous.next, e.next.previous = e.next, e.previous
}
