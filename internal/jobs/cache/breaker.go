package cache

import (
	"sync"
	"time"
)

// The first failure shuts the breaker for firstPause; each further one doubles the pause up to longestPause.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 10 * time.Second
)

// breaker spares callers the wait for a Redis that does not answer: after a failure, calls are skipped until a pause is
// over; then one call at a time may try.
type breaker struct {
	now    func() time.Time
	mu     sync.Mutex
	pause  time.Duration // 0: closed, calls pass
	until  time.Time
	trying bool
}

// allow reports whether a call may be made; one that may must end in succeed, fail or abandon.
func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause == 0 {
		return true
	}
	if b.trying || b.now().Before(b.until) {
		return false
	}
	b.trying = true
	return true
}

func (b *breaker) succeed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pause, b.trying = 0, false
}

// abandon: the call ended before it showed anything.
func (b *breaker) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
}

func (b *breaker) fail() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause > 0 && !b.trying && b.now().Before(b.until) {
		return // one of several calls that were under way when the first failed
	}
	b.pause = min(max(firstPause, 2*b.pause), longestPause)
	b.until, b.trying = b.now().Add(b.pause), false
}
