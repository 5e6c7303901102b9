// Package cache remembers learned results: decompositions in Redis, the hot ones in the process too.
//
// Redis is a memo. Down, slow, evicting or lying, it changes the time of an answer and never its
// content: every failure is a miss. No method returns an error of the cache's own; Stats and the
// log say how it fares.
package cache

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/redact"
	"github.com/basetensor/basetensor/internal/queue/tracing"
)

// Options of a cache. The zero value of a field means its default.
type Options struct {
	TTL      time.Duration  // of an entry, default 24 h
	Jitter   float64        // an entry lives TTL·(1 ± Jitter), so that not all end at once; default 0.1, negative: none
	Random   func() float64 // in [0, 1), for the jitter; default math/rand
	Timeout  time.Duration  // of one call to Redis, connecting included; default 100 ms
	MaxValue int            // bytes; larger values go to Overflow; default 4 MiB
	Hot      int64          // bytes of entries kept in the process, default 64 MiB, negative: none
	Overflow Overflow       // where large values go; nil: they are not cached
	// Secrets are the keys of the check of every entry, against other writers to Redis: the first
	// seals, all of them open. Nil, or none: a plain checksum.
	Secrets  func() [][]byte
	LockTTL  time.Duration // after this without a sign of it, a worker that computes is taken for dead; default 1 s
	LockWait time.Duration // longest wait for another worker's result, default 5 s, negative: never wait
	Logger   *slog.Logger  // default slog.Default()
}

// Overflow stores values that are too large for Redis, under the SHA-256 of their bytes in hexadecimal digits. A value that
// Get returns is checked against its digest.
type Overflow interface {
	Get(ctx context.Context, digest string) ([]byte, error)
	Put(ctx context.Context, digest string, value []byte) error
}

// overflowTimeout bounds a call to the overflow store: large values take their time, but not for ever.
const overflowTimeout = 5 * time.Second

// Redis is a client of Redis: Do sends a command and returns the answer, a string, an int64, or nil where there is nothing. An error
// that Redis answers, as opposed to a failure to reach it, is a connect.RedisError.
type Redis interface {
	Do(ctx context.Context, command ...any) (any, error)
	Close() error
}

// Cache is safe for concurrent use. Values are shared: callers must not change values that they put
// in or get.
type Cache struct {
	o       Options
	redis   Redis  // nil: in the process only
	address string // of Redis, without a password
	breaker breaker
	hot     *hot
	flights flights
	stats   counters
	states  states
	closing sync.Once
}

// Open returns a cache on the Redis at a URL that connect.Redis reads, without connecting. The empty url gives a cache that remembers in
// the process only. The only error is a url that cannot be read.
func Open(url string, o Options) (*Cache, error) {
	if url == "" {
		return On(nil, "", o), nil
	}
	client, err := connect.Redis{}.Client(url, o.Timeout)
	if err != nil {
		return nil, err
	}
	return On(client, url, o), nil
}

// On returns a cache on a client, whose calls should end within Timeout, and that Close closes. The
// url stands for it in the log. A nil client gives a cache that remembers in the process only.
func On(client Redis, url string, o Options) *Cache {
	o = o.withDefaults()
	connect.LogRedis(quiet{o.Logger}.Printf)
	return &Cache{
		o:       o,
		hot:     newHot(o.Hot),
		states:  states{log: o.Logger},
		breaker: breaker{now: time.Now},
		redis:   client,
		address: redact.URL(url),
	}
}

func (o Options) withDefaults() Options {
	if o.TTL <= 0 {
		o.TTL = 24 * time.Hour
	}
	o.Jitter = cmp.Or(o.Jitter, 0.1)
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Timeout <= 0 {
		o.Timeout = connect.RedisTimeout
	}
	if o.MaxValue <= 0 {
		o.MaxValue = 4 << 20
	}
	o.Hot = cmp.Or(o.Hot, 64<<20)
	if o.LockTTL <= 0 {
		o.LockTTL = time.Second
	}
	o.LockWait = cmp.Or(o.LockWait, 5*time.Second)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Secrets == nil {
		o.Secrets = func() [][]byte { return nil }
	}
	return o
}

// Probe asks Redis whether it is there, within Timeout, and returns why not; nil where there is none to ask. A failure is logged too.
func (c *Cache) Probe(ctx context.Context) error {
	if c.redis == nil {
		return nil
	}
	var err error
	c.call(ctx, func(ctx context.Context) error {
		_, err = c.redis.Do(ctx, "PING")
		return err
	})
	if err != nil {
		return fmt.Errorf("Redis at %s does not answer (%w)", c.address, redact.Error(err))
	}
	return nil
}

// Close ends the connections. The cache still answers, from the process only.
func (c *Cache) Close() error {
	var err error
	c.closing.Do(func() {
		if c.redis != nil {
			err = c.redis.Close()
		}
	})
	return err
}

// Get returns the value under key, and whether there is one that can be trusted.
func (c *Cache) Get(ctx context.Context, key string) ([]byte, bool) {
	value, ok := c.look(ctx, key)
	if !ok {
		c.stats.miss(key)
	}
	return value, ok
}

// look is Get without counting a miss: GetOrCompute looks twice.
func (c *Cache) look(ctx context.Context, key string) ([]byte, bool) {
	ctx, span := tracing.Child(ctx, "cache")
	value, where := c.find(ctx, key)
	if span.IsRecording() {
		span.SetAttributes(
			tracing.Kind.String(KindOf(key)), tracing.Where.String(where), tracing.Hit.Bool(where != ""),
		)
	}
	span.End()
	return value, where != ""
}

// find returns the value under key and where it was: process or redis, or "".
func (c *Cache) find(ctx context.Context, key string) (value []byte, where string) {
	if value, ok := c.hot.Get(key); ok {
		c.stats.hit(key, true)
		return value, "process"
	}
	value, ok := c.read(ctx, key)
	if !ok {
		return nil, ""
	}
	c.stats.hit(key, false)
	c.hot.put(key, value)
	return value, "redis"
}

// read returns the value that Redis has under key, if it can be trusted.
func (c *Cache) read(ctx context.Context, key string) ([]byte, bool) {
	var entry []byte
	c.call(ctx, func(ctx context.Context) error {
		// As long as the largest entry, a value's or a digest's: no more is read from any key.
		answer, err := c.redis.Do(ctx, "GETRANGE", key, 0, headerSize+max(c.o.MaxValue, 2*sha256.Size)-1)
		text, _ := answer.(string)
		entry = []byte(text)
		return err
	})
	if len(entry) == 0 { // so Redis says that there is none
		return nil, false
	}
	value, err := c.open(ctx, key, entry)
	c.states.turn("corrupt", err != nil,
		"cache: an entry is not what was stored; such entries are ignored", "cache: entries are sound again", err)
	if err != nil {
		c.stats.corrupt.Add(1)
		return nil, false
	}
	return value, true
}

// open verifies an entry and returns its value, from the overflow store if that is where it is.
func (c *Cache) open(ctx context.Context, key string, entry []byte) ([]byte, error) {
	where, payload, err := unseal(c.o.Secrets(), key, entry)
	if err != nil || where == here {
		return payload, err
	}
	if c.o.Overflow == nil {
		return nil, errors.New("cache: a large entry, and no store of large values")
	}
	ctx, cancel := context.WithTimeout(ctx, overflowTimeout)
	defer cancel()
	large, err := c.o.Overflow.Get(ctx, string(payload))
	if err != nil {
		return nil, err
	}
	value, ok := bytes.CutSuffix(large, []byte(key))
	if !ok || digest.Of(large) != string(payload) {
		return nil, errEntry
	}
	return value, nil
}

// Put stores value under key, here and in Redis, unless there is one that can be trusted: the first
// wins, so that all workers have the same. It returns the one that is kept. A value that cannot be
// stored is dropped.
func (c *Cache) Put(ctx context.Context, key string, value []byte) []byte {
	if first, ok := c.add(ctx, key, value); ok {
		value = first
	}
	c.hot.put(key, value)
	return value
}

// add stores value in Redis; where there was one already, it returns that.
func (c *Cache) add(ctx context.Context, key string, value []byte) (first []byte, there bool) {
	if c.redis == nil {
		return nil, false
	}
	entry := []byte(nil)
	switch {
	case len(value) <= c.o.MaxValue:
		entry = seal(c.o.Secrets(), key, here, value)
	case c.o.Overflow == nil:
		c.stats.tooLarge.Add(1)
		return nil, false
	default:
		// With the key behind it, so that the store has it under no other key: an owner's is there for nobody else.
		large := slices.Concat(value, []byte(key))
		name := digest.Of(large)
		ctx, cancel := context.WithTimeout(ctx, overflowTimeout)
		defer cancel()
		if err := c.o.Overflow.Put(ctx, name, large); err != nil {
			c.stats.errors.Add(1)
			return nil, false
		}
		c.stats.overflowed.Add(1)
		entry = seal(c.o.Secrets(), key, elsewhere, []byte(name))
	}
	stored := false
	done := c.call(ctx, func(ctx context.Context) (err error) {
		stored, err = c.setNew(ctx, key, entry, c.ttl())
		return err
	})
	if done && !stored {
		if first, there = c.read(ctx, key); there {
			return first, true
		}
		// over one that nobody can use
		stored = c.call(ctx, func(ctx context.Context) error {
			_, err := c.redis.Do(ctx, "SET", key, entry, "PX", c.ttl().Milliseconds())
			return err
		})
	}
	if stored {
		c.stats.stored.Add(1)
		c.states.turn("refusing", false, "", "cache: Redis takes entries again", nil)
	}
	return nil, false
}

// setNew stores what is under no key yet, and reports whether it did.
func (c *Cache) setNew(ctx context.Context, key string, value any, ttl time.Duration) (stored bool, err error) {
	answer, err := c.redis.Do(ctx, "SET", key, value, "PX", ttl.Milliseconds(), "NX")
	return answer != nil && err == nil, err
}

// Forget drops the value under key everywhere: for a caller that finds it verified but unreadable.
func (c *Cache) Forget(ctx context.Context, key string) {
	c.hot.Remove(key)
	c.call(ctx, func(ctx context.Context) error {
		_, err := c.redis.Do(ctx, "DEL", key)
		return err
	})
}

// ttl is TTL·(1 ± Jitter), at least a millisecond.
func (c *Cache) ttl() time.Duration {
	if c.o.Jitter < 0 {
		return c.o.TTL
	}
	return max(time.Millisecond, time.Duration(float64(c.o.TTL)*(1+c.o.Jitter*(2*c.o.Random()-1))))
}

// withCluster says how a cluster is addressed.
const withCluster = "add cluster=true to its URL (redis://HOST:PORT?cluster=true)"

// ofCluster reports whether Redis answered that a key is on another node: it was addressed as one server.
func ofCluster(reply connect.RedisError) bool {
	return strings.HasPrefix(reply.Error(), "MOVED ") || strings.HasPrefix(reply.Error(), "ASK ")
}

// call makes one call to Redis within Timeout, if the breaker lets it, and reports whether Redis has done it. A key that is
// not there counts as done.
func (c *Cache) call(ctx context.Context, f func(context.Context) error) bool {
	if c.redis == nil || ctx.Err() != nil {
		return false
	}
	if !c.breaker.allow() {
		c.stats.skipped.Add(1)
		return false
	}
	inner, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	err := f(inner)
	var reply connect.RedisError // errors of Redis itself: out of memory, no permission, wrong type
	switch {
	case err == nil:
		c.breaker.succeed()
		c.states.turn("down", false, "", "cache: Redis answers again", nil)
		return true
	case errors.As(err, &reply):
		c.breaker.succeed()
		c.stats.refused.Add(1)
		if ofCluster(reply) {
			c.states.turn("of a cluster", true,
				"cache: Redis at "+c.address+" is a node of a cluster, and other nodes have most entries: "+withCluster, "", err)
			return false
		}
		c.states.turn("refusing", true, "cache: Redis refuses a command; going on without", "", err)
		return false
	case ctx.Err() != nil: // the caller has left: says nothing about Redis
		c.breaker.abandon()
		return false
	}
	c.breaker.fail()
	c.stats.errors.Add(1)
	c.states.turn("down", true, "cache: Redis at "+c.address+" does not answer: answers are the same, and nothing is remembered", "", err)
	return false
}
