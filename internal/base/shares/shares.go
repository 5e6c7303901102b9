// Package shares divides room among several callers: none of them takes it all.
package shares

import "sync"

// Room is room of one kind. A caller may hold at most as much as was free before it took the last piece. In small
// pieces, one caller alone takes half at most, two take three quarters, and a new one finds room. Its methods may be
// called from any goroutine.
type Room struct {
	Most int64

	mu   sync.Mutex
	used int64
	held map[string]int64 // by caller
}

// Take takes n of the room, or returns the reason why not: full, there is too little room; share, the caller holds its
// share already. Callers without a name have no share: for them there is room, or none.
func (r *Room) Take(who string, n int64) (full, share bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	free := r.Most - r.used
	switch {
	case n > free:
		return true, false
	case who != "" && r.held[who]+n > free:
		return false, true
	}
	if r.held == nil {
		r.held = map[string]int64{}
	}
	r.used += n
	r.held[who] += n
	return false, false
}

// Give returns n of the room.
func (r *Room) Give(who string, n int64) {
	if n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= n
	if r.held[who] -= n; r.held[who] == 0 {
		delete(r.held, who)
	}
}

// Used is the room that is taken.
func (r *Room) Used() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used
}
