package cache

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"
)

// GetOrCompute returns the value under key, and computes and stores it where there is none; where another worker has stored one meanwhile,
// that is the value. hit says that this call did not compute. Calls for one key in this process compute once. Across
// processes a lock in Redis lets one worker compute while others wait for at most LockWait; it saves work and guards
// nothing: with Redis away, both compute, and get the same. The error is compute's own, or ctx's.
func (c *Cache) GetOrCompute(
	ctx context.Context, key string, compute func(context.Context) ([]byte, error),
) (value []byte, hit bool, err error) {
	for {
		f, leader := c.flights.join(key)
		if leader {
			func() {
				defer c.flights.land(key, f) // also when compute panics
				f.err = errLeaderLost
				f.value, hit, f.err = c.fetch(ctx, key, compute)
			}()
			return f.value, hit, f.err
		}
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-f.done:
		}
		lost := errors.Is(f.err, errLeaderLost) || errors.Is(f.err, context.Canceled) || errors.Is(f.err, context.DeadlineExceeded)
		if !lost {
			c.stats.shared.Add(1)
			return f.value, f.err == nil, f.err
		}
		// The leader was stopped, which is no reason to stop here: lead, or follow another.
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
	}
}

func (c *Cache) fetch(ctx context.Context, key string, compute func(context.Context) ([]byte, error)) ([]byte, bool, error) {
	if value, ok := c.Get(ctx, key); ok {
		return value, true, nil
	}
	unlock := c.lock(ctx, key)
	defer unlock()
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	if value, ok := c.look(ctx, key); ok { // another worker had the lock when we first looked
		c.stats.waited.Add(1)
		return value, true, nil
	}
	value, err := compute(ctx)
	if err != nil {
		return nil, false, err
	}
	return c.Put(ctx, key, value), false, nil
}

// unlockScript deletes the lock if it still holds our token: an expired lock may be another's by now.
const unlockScript = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`

// lock returns when this worker should look again and compute: it has the lock, the other worker's result is there, or
// waiting has no point. It waits only for a Redis that answers, and no longer than LockWait.
func (c *Cache) lock(ctx context.Context, key string) (unlock func()) {
	nothing := func() {}
	name, token := key+":lock", rand.Text()
	pause := 5 * time.Millisecond
	for deadline := time.Now().Add(c.o.LockWait); ; pause = min(2*pause, 100*time.Millisecond) {
		taken, there := false, false
		if !c.call(ctx, func(ctx context.Context) (err error) {
			if taken, err = c.setNew(ctx, name, token, c.o.LockTTL); err == nil && !taken {
				var answer any
				answer, err = c.redis.Do(ctx, "EXISTS", key)
				there = answer == int64(1)
			}
			return err
		}) {
			return nothing
		}
		if taken {
			stop := c.renew(ctx, name, token)
			return func() {
				stop()
				c.call(context.WithoutCancel(ctx), func(ctx context.Context) error {
					_, err := c.redis.Do(ctx, "EVAL", unlockScript, 1, name, token)
					return err
				})
			}
		}
		if there || c.o.LockWait < 0 || time.Now().After(deadline) {
			return nothing
		}
		select {
		case <-ctx.Done():
			return nothing
		case <-time.After(pause):
		}
	}
}

// renewScript renews the time of the lock if it still holds our token.
const renewScript = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2]) end return 0`

// renew says that this worker still computes, until stop is called: the lock of one that dies is free soon.
func (c *Cache) renew(ctx context.Context, name, token string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var beat func()
	beat = func() {
		if ctx.Err() != nil {
			return
		}
		c.call(ctx, func(ctx context.Context) error {
			_, err := c.redis.Do(ctx, "EVAL", renewScript, 1, name, token, c.o.LockTTL.Milliseconds())
			return err
		})
		time.AfterFunc(c.o.LockTTL/4, beat)
	}
	timer := time.AfterFunc(c.o.LockTTL/4, beat)
	return func() {
		cancel()
		timer.Stop()
	}
}

// errLeaderLost: the call that computed for others panicked.
var errLeaderLost = errors.New("cache: the computing call was lost")

// flights are the computations under way in this process. (x/sync/singleflight would run them in a goroutine of their own
// or make followers deaf to their own contexts, and cannot hand over when the leader is cancelled.)
type flights struct {
	mu    sync.Mutex
	under map[string]*flight
}

type flight struct {
	done  chan struct{}
	value []byte
	err   error
}

// join returns the flight of a key, and whether the caller leads it: then it must land it.
func (f *flights) join(key string) (*flight, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x, ok := f.under[key]; ok {
		return x, false
	}
	if f.under == nil {
		f.under = map[string]*flight{}
	}
	x := &flight{done: make(chan struct{})}
	f.under[key] = x
	return x, true
}

func (f *flights) land(key string, x *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.under, key)
	close(x.done)
}
