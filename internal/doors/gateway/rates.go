package gateway

// Rates of callers, and their names.

import (
	"maps"
	"net"
	"sync"
	"time"
)

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
