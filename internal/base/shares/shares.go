// Package shares divides room among several callers: none of them takes it all.
package shares

import "sync"

// Room is a limited quantity that callers share. A caller may hold at most as much as was free before it took its last piece. In small
// pieces, one caller alone takes half at most, two take three quarters, and a new one finds room. Its methods may be called from any
// goroutine.
type Room struct {
	Size int64 // the whole quantity

	mu   sync.Mutex
	used int64
	held map[string]int64 // by caller
}

// Take gives n of the room to a caller, or nothing: isFull is true if less than n is free, and isShareUsed if the caller would then hold
// more than was free before. So one caller in small pieces takes half of the room at most, and others find some. The share does not limit
// callers without a name: they get what is free.
func (r *Room) Take(caller string, n int64) (isFull, isShareUsed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	free := r.Size - r.used
	switch {
	case n > free:
		return true, false
	case caller != "" && r.held[caller]+n > free:
		return false, true
	}
	if r.held == nil {
		r.held = map[string]int64{}
	}
	r.used += n
	r.held[caller] += n
	return false, false
}

// Release gives n of the room back that a caller has taken.
func (r *Room) Release(caller string, n int64) {
	if n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= n
	if r.held[caller] -= n; r.held[caller] == 0 {
		delete(r.held, caller)
	}
}

// Used returns how much of the room is taken.
func (r *Room) Used() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used
}
