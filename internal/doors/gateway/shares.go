package gateway

// Room for several callers at one time: none of them takes it all.

import (
	"maps"
	"net"
	"sync"
	"time"
)

// shares is room of one kind. A caller may hold at most as much as was free before it took the last piece. In small
// pieces, one caller alone takes half at most, two take three quarters, and a new one finds room.
type shares struct {
	most int64

	mu   sync.Mutex
	used int64
	held map[string]int64 // by caller
}

// take takes n of the room, or returns the reason why not: full, there is too little room; share, the caller holds its
// share already.
func (s *shares) take(who string, n int64) (full, share bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := s.most - s.used
	switch {
	case n > free:
		return true, false
	case s.held[who]+n > free:
		return false, true
	}
	if s.held == nil {
		s.held = map[string]int64{}
	}
	s.used += n
	s.held[who] += n
	return false, false
}

// give returns n of the room.
func (s *shares) give(who string, n int64) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
	if s.held[who] -= n; s.held[who] == 0 {
		delete(s.held, who)
	}
}

// all is the room that is taken.
func (s *shares) all() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// rates bound the requests of a key a second. Twice as many may come at once.
type rates struct {
	second float64 // 0: any number

	mu    sync.Mutex
	spent map[string]time.Time // until when a key has spent its rate
}

// wait counts a request that may come now, and returns 0; else it returns the time until one may.
func (r *rates) wait(who string, now time.Time) time.Duration {
	if r.second <= 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	until := r.spent[who]
	if until.Before(now) {
		until = now
	}
	if ahead := until.Sub(now) - 2*time.Second; ahead > 0 {
		return ahead
	}
	if r.spent == nil {
		r.spent = map[string]time.Time{}
	}
	if len(r.spent) > mostSpent {
		maps.DeleteFunc(r.spent, func(_ string, until time.Time) bool { return until.Before(now) })
	}
	r.spent[who] = until.Add(time.Duration(float64(time.Second) / r.second))
	return 0
}

// mostSpent is the number of keys above which idle ones are forgotten.
const mostSpent = 1000

// asker returns the name of the caller for shares and rates: its key, or without one its address.
func (c *call) asker() string {
	if c.who.sum != (Key{}).sum {
		return string(c.who.sum[:])
	}
	host, _, err := net.SplitHostPort(c.r.RemoteAddr)
	if err != nil {
		return c.r.RemoteAddr
	}
	return host
}
