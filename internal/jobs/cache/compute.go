package cache

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"
)

// GetOrCompute returns the value under key. If there is none, it computes the value and stores it. If another worker
// has stored one meanwhile, it returns that. hit is true if this call did not compute. The error is compute's own, or
// ctx's.
//
// Calls for one key in this process compute once. Across processes a lock in Redis lets one worker compute while others
// wait for at most LockWait. The lock only saves work: if Redis is away, both compute, and get the same.
func (c *Cache) GetOrCompute(
	ctx context.Context, key string, compute func(context.Context) ([]byte, error),
) (value []byte, hit bool, err error) {
	for {
		call, isLeader := c.flights.join(key)
		if isLeader { // this call computes for all
			func() {
				defer c.flights.finish(key, call) // also when compute panics
				call.err = errLeaderLost          // stays if compute panics
				call.value, hit, call.err = c.getOrComputeAlone(ctx, key, compute)
			}()
			return call.value, hit, call.err
		}

		// Wait for the call that computes.
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-call.done:
		}
		isLeaderLost := errors.Is(call.err, errLeaderLost) || errors.Is(call.err, context.Canceled) ||
			errors.Is(call.err, context.DeadlineExceeded)
		if !isLeaderLost {
			c.stats.shared.Add(1)
			return call.value, call.err == nil, call.err
		}
		// The computing call was stopped, which is no reason to stop this one: compute here, or wait for another.
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
	}
}

// getOrComputeAlone is GetOrCompute for the one call in this process that computes for a key. The second result is true
// if it did not compute.
func (c *Cache) getOrComputeAlone(ctx context.Context, key string, compute func(context.Context) ([]byte, error)) ([]byte, bool, error) {
	if value, ok := c.Get(ctx, key); ok {
		return value, true, nil
	}
	unlock := c.waitForLock(ctx, key)
	defer unlock()
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	if value, ok := c.lookUp(ctx, key); ok { // another worker had the lock when we first looked
		c.stats.waited.Add(1)
		return value, true, nil
	}
	value, err := compute(ctx)
	if err != nil {
		return nil, false, err
	}
	return c.Put(ctx, key, value), false, nil
}

// unlockScript deletes the lock if it still has our token. If it expired, it may be another worker's by now.
const unlockScript = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`

// waitForLock tries to take the lock of a key, and returns when this worker should look for the value again and compute
// it if there is none: it has the lock, another worker has stored the value, or waiting has no point. It waits only
// while Redis answers, and no longer than LockWait. The caller calls unlock at the end.
func (c *Cache) waitForLock(ctx context.Context, key string) (unlock func()) {
	noUnlock := func() {}
	name, token := key+":lock", rand.Text()
	pause := 5 * time.Millisecond
	for deadline := time.Now().Add(c.options.LockWait); ; pause = min(2*pause, 100*time.Millisecond) {
		// Try to take the lock, or else see whether its holder has stored the value.
		hasLock, hasValue := false, false
		isAnswered := c.callRedis(ctx, func(ctx context.Context) (err error) {
			if hasLock, err = c.setIfAbsent(ctx, name, token, c.options.LockTTL); err == nil && !hasLock {
				var answer any
				answer, err = c.redis.Do(ctx, "EXISTS", key)
				hasValue = answer == int64(1)
			}
			return err
		})
		if !isAnswered {
			return noUnlock
		}
		if hasLock {
			stopKeeping := c.keepLock(ctx, name, token)
			return func() {
				stopKeeping()
				c.deleteLock(ctx, name, token)
			}
		}
		if hasValue || c.options.LockWait < 0 || time.Now().After(deadline) { // below 0: do not wait at all
			return noUnlock
		}
		select {
		case <-ctx.Done():
			return noUnlock
		case <-time.After(pause):
		}
	}
}

// deleteLock deletes a lock if it still has our token. It does so even if ctx has ended.
func (c *Cache) deleteLock(ctx context.Context, name, token string) {
	const keyCount = 1 // name is the script's only key; token is its argument
	c.callRedis(context.WithoutCancel(ctx), func(ctx context.Context) error {
		_, err := c.redis.Do(ctx, "EVAL", unlockScript, keyCount, name, token)
		return err
	})
}

// renewScript extends the time of the lock if it still has our token.
const renewScript = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2]) end return 0`

// keepLock extends the time of a lock again and again until stop is called, so that the lock of a worker that dies is
// free soon.
func (c *Cache) keepLock(ctx context.Context, name, token string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	interval := c.options.LockTTL / 4 // three renewals come before the lock expires
	var renew func()
	renew = func() {
		if ctx.Err() != nil {
			return
		}
		c.callRedis(ctx, func(ctx context.Context) error {
			_, err := c.redis.Do(ctx, "EVAL", renewScript, 1, name, token, c.options.LockTTL.Milliseconds())
			return err
		})
		time.AfterFunc(interval, renew) // after the end of ctx it does nothing
	}
	timer := time.AfterFunc(interval, renew)
	return func() {
		cancel()
		timer.Stop()
	}
}

// errLeaderLost is the error of a call that computed for others and panicked.
var errLeaderLost = errors.New("cache: the computing call was lost")

// flights are the computations under way in this process. (x/sync/singleflight would run them in a goroutine of their
// own or make followers deaf to their own contexts, and cannot hand over when the leader is cancelled.)
type flights struct {
	mu    sync.Mutex
	byKey map[string]*flight // under mu
}

// flight is one computation. value and err are set when done is closed.
type flight struct {
	done  chan struct{}
	value []byte
	err   error
}

// join returns the computation of a key. If there was none, it begins one, and the second result is true: the caller
// has to compute and to call finish.
func (f *flights) join(key string) (*flight, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if call, ok := f.byKey[key]; ok {
		return call, false
	}
	if f.byKey == nil {
		f.byKey = map[string]*flight{}
	}
	call := &flight{done: make(chan struct{})}
	f.byKey[key] = call
	return call, true
}

// finish ends a computation, and wakes those who wait for it.
func (f *flights) finish(key string, call *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byKey, key)
	close(call.done)
}
