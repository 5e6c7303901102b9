package gateway

// Rates of callers, and their names.

import (
	"maps"
	"net"
	"sync"
	"time"
)

// rateLimiter bounds the requests of a caller a second. Twice as many may come at once.
type rateLimiter struct {
	perSecond float64 // requests a second; 0: any number

	mu         sync.Mutex
	spentUntil map[string]time.Time // by caller, the time at which the requests so far would all have come if they came at the rate
}

// wait counts a request that may come now, and returns 0. If the caller has spent its rate, it counts nothing and
// returns the time until a request may come.
func (r *rateLimiter) wait(caller string, now time.Time) time.Duration {
	if r.perSecond <= 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	spentUntil := r.spentUntil[caller] // the zero time if it is unknown
	if spentUntil.Before(now) {
		spentUntil = now
	}
	const burst = 2 * time.Second // of requests that may come at once
	if tooEarly := spentUntil.Sub(now) - burst; tooEarly > 0 {
		return tooEarly
	}

	// count it; callers that have spent nothing any more are forgotten
	if r.spentUntil == nil {
		r.spentUntil = map[string]time.Time{}
	}
	if len(r.spentUntil) > mostSpent {
		maps.DeleteFunc(r.spentUntil, func(_ string, spentUntil time.Time) bool { return spentUntil.Before(now) })
	}
	r.spentUntil[caller] = spentUntil.Add(time.Duration(float64(time.Second) / r.perSecond))
	return 0
}

// mostSpent is the number of keys above which idle ones are forgotten.
const mostSpent = 1000

// callerName returns the name of the caller for shares and rates: the hash of its key or, without a key, its address.
func (c *call) callerName() string {
	if c.caller.sum != (Key{}).sum {
		return string(c.caller.sum[:])
	}
	host, _, err := net.SplitHostPort(c.request.RemoteAddr)
	if err != nil {
		return c.request.RemoteAddr
	}
	return host
}
