package cache

import (
	"sync"
	"time"
)

// Pauses in which calls are skipped: after the first failure firstPause, after each further one twice the pause before,
// up to longestPause.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 10 * time.Second
)

// breaker spares callers the wait for a Redis that does not answer: after a failure, calls are skipped until a pause is
// over; then one call at a time may try.
type breaker struct {
	clock       func() time.Time
	mu          sync.Mutex
	pause       time.Duration // after the last failure; 0: the last call succeeded, and all calls pass
	closedUntil time.Time     // calls are skipped until then
	isTrying    bool          // the one call after the pause is under way
}

// allow reports whether a call to Redis may be made: not during the pause after a failed call, and after the pause only
// one at a time, until one succeeds. A call that may be made has to end in succeed, fail or abandon.
func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause == 0 {
		return true
	}
	if b.isTrying || b.clock().Before(b.closedUntil) {
		return false
	}
	b.isTrying = true
	return true
}

// succeed notes that a call succeeded: all calls pass.
func (b *breaker) succeed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pause, b.isTrying = 0, false
}

// abandon notes that a call ended before it showed whether Redis answers.
func (b *breaker) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isTrying = false
}

// fail notes that a call failed, and begins a pause in which no calls are made. Each pause is twice as long as the one
// before, from firstPause to longestPause.
func (b *breaker) fail() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause > 0 && !b.isTrying && b.clock().Before(b.closedUntil) {
		return // one of several calls that were under way when the first failed
	}
	b.pause = min(max(firstPause, 2*b.pause), longestPause)
	b.closedUntil, b.isTrying = b.clock().Add(b.pause), false
}
