// Package cache remembers learned results: decompositions in Redis, the hot ones in the process too.
//
// Redis only saves time. If it is down, slow, evicts entries or returns wrong ones, answers take longer and have the
// same content, because every failure is a miss. No method for workers returns an error of the cache's own. Stats and
// the log tell how it fares.
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
	// Secrets returns the keys of the entries' HMACs, which detect entries of other writers to Redis. The first makes them, and
	// all of them verify. If it is nil or returns none, entries have a plain checksum.
	Secrets  func() [][]byte
	LockTTL  time.Duration // after this without a sign of it, a worker that computes is taken for dead; default 1 s
	LockWait time.Duration // longest wait for another worker's result, default 5 s, negative: never wait
	Logger   *slog.Logger  // default slog.Default()
}

// Overflow stores values that are too large for Redis, under the SHA-256 of their bytes in hexadecimal digits. A value
// that Get returns is checked against its digest.
type Overflow interface {
	Get(ctx context.Context, digest string) ([]byte, error)
	Put(ctx context.Context, digest string, value []byte) error
}

// overflowTimeout bounds a call to the overflow store: large values take their time, but not for ever.
const overflowTimeout = 5 * time.Second

// Redis is a client of Redis: Do sends a command and returns the answer, a string, an int64, or nil where there is
// nothing. An error that Redis answers, as opposed to a failure to reach it, is a connect.RedisError.
type Redis interface {
	Do(ctx context.Context, command ...any) (any, error)
	Close() error
}

// Cache is safe for concurrent use. Values are shared: callers must not change values that they put
// in or get.
type Cache struct {
	options Options
	redis   Redis      // nil: in the process only
	address string     // of Redis, without a password
	breaker breaker    // skips calls while Redis does not answer
	hot     *hot       // the entries in the process
	flights flights    // computations under way in the process
	stats   counters   // for Stats
	states  troubleLog // logs the beginning and the end of trouble
	closing sync.Once
}

// Open returns a cache on the Redis at a URL in the form of connect.Redis, without connecting. If url is "", the cache
// remembers in the process only. The only error is a url that cannot be parsed.
func Open(url string, options Options) (*Cache, error) {
	if url == "" {
		return NewOn(nil, "", options), nil
	}
	client, err := connect.Redis{}.Client(url, options.Timeout)
	if err != nil {
		return nil, err
	}
	return NewOn(client, url, options), nil
}

// NewOn returns a cache on a client, whose calls should end within Timeout. The cache's Close closes the client. url
// stands for the client in the log. If client is nil, the cache remembers in the process only.
func NewOn(client Redis, url string, options Options) *Cache {
	options = options.withDefaults()
	connect.LogRedis(debugLogger{options.Logger}.Printf)
	return &Cache{
		options: options,
		hot:     newHot(options.Hot),
		states:  troubleLog{log: options.Logger},
		breaker: breaker{clock: time.Now},
		redis:   client,
		address: redact.URL(url),
	}
}

// withDefaults returns o with the defaults in the place of zeros.
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
		o.MaxValue = 4 << 20 // bytes
	}
	o.Hot = cmp.Or(o.Hot, 64<<20) // bytes
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

// Probe asks Redis whether it answers, within Timeout, and returns an error if not. Without a Redis it returns nil. A
// failure is logged too.
func (c *Cache) Probe(ctx context.Context) error {
	if c.redis == nil {
		return nil
	}
	var err error
	c.callRedis(ctx, func(ctx context.Context) error {
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
	value, ok := c.lookUp(ctx, key)
	if !ok {
		c.stats.miss(key)
	}
	return value, ok
}

// lookUp is Get without counting a miss, because GetOrCompute looks twice.
func (c *Cache) lookUp(ctx context.Context, key string) ([]byte, bool) {
	ctx, span := tracing.Child(ctx, "cache")
	value, where := c.findValue(ctx, key)
	if span.IsRecording() {
		span.SetAttributes(
			tracing.Kind.String(KindOf(key)), tracing.Where.String(where), tracing.Hit.Bool(where != ""),
		)
	}
	span.End()
	return value, where != ""
}

// findValue returns the value under key and where it was: "process" or "redis", or "" if there is none.
func (c *Cache) findValue(ctx context.Context, key string) (value []byte, where string) {
	if value, ok := c.hot.Get(key); ok {
		c.stats.hit(key, true)
		return value, "process"
	}
	value, ok := c.readRedis(ctx, key)
	if !ok {
		return nil, ""
	}
	c.stats.hit(key, false)
	c.hot.put(key, value)
	return value, "redis"
}

// readRedis returns the value that Redis has under key, if it can be trusted.
func (c *Cache) readRedis(ctx context.Context, key string) ([]byte, bool) {
	var entry []byte
	c.callRedis(ctx, func(ctx context.Context) error {
		// At most the size of the largest entry, with a value or with a digest, is read.
		answer, err := c.redis.Do(ctx, "GETRANGE", key, 0, headerSize+max(c.options.MaxValue, 2*sha256.Size)-1)
		text, _ := answer.(string)
		entry = []byte(text)
		return err
	})
	if len(entry) == 0 { // the reply of Redis if there is no entry
		return nil, false
	}
	value, err := c.openEntry(ctx, key, entry)
	c.states.set("corrupt", err != nil,
		"cache: an entry is not what was stored; such entries are ignored", "cache: entries are sound again", err)
	if err != nil {
		c.stats.corrupt.Add(1)
		return nil, false
	}
	return value, true
}

// openEntry verifies an entry and returns its value, fetched from the overflow store if it is there.
func (c *Cache) openEntry(ctx context.Context, key string, entry []byte) ([]byte, error) {
	where, payload, err := unsealEntry(c.options.Secrets(), key, entry)
	if err != nil || where == inEntry {
		return payload, err
	}
	if c.options.Overflow == nil {
		return nil, errors.New("cache: a large entry, and no store of large values")
	}

	// payload is the digest of the value followed by the key.
	ctx, cancel := context.WithTimeout(ctx, overflowTimeout)
	defer cancel()
	large, err := c.options.Overflow.Get(ctx, string(payload))
	if err != nil {
		return nil, err
	}
	value, ok := bytes.CutSuffix(large, []byte(key))
	if !ok || digest.HexOf(large) != string(payload) {
		return nil, errEntry
	}
	return value, nil
}

// Put stores value under key, in the process and in Redis, and returns it. If Redis has a value under key that can be
// trusted, that one stays and is returned, so that all workers have the same. A value that cannot be stored in Redis is
// dropped there.
func (c *Cache) Put(ctx context.Context, key string, value []byte) []byte {
	if first, ok := c.putRedis(ctx, key, value); ok {
		value = first
	}
	c.hot.put(key, value)
	return value
}

// putRedis stores value in Redis. If there is a value under key already that can be used, it returns that, and exists
// is true.
func (c *Cache) putRedis(ctx context.Context, key string, value []byte) (earlier []byte, exists bool) {
	if c.redis == nil {
		return nil, false
	}
	entry, ok := c.makeEntry(ctx, key, value)
	if !ok {
		return nil, false
	}

	isStored := false
	isAnswered := c.callRedis(ctx, func(ctx context.Context) (err error) {
		isStored, err = c.setIfAbsent(ctx, key, entry, c.randomTTL())
		return err
	})
	if isAnswered && !isStored { // there is an entry: use it, or replace it
		if earlier, exists = c.readRedis(ctx, key); exists {
			return earlier, true
		}
		isStored = c.callRedis(ctx, func(ctx context.Context) error {
			_, err := c.redis.Do(ctx, "SET", key, entry, "PX", c.randomTTL().Milliseconds())
			return err
		})
	}
	if isStored {
		c.stats.stored.Add(1)
		c.states.set("refusing", false, "", "cache: Redis takes entries again", nil)
	}
	return nil, false
}

// makeEntry returns the entry for a value, or the entry with the digest of a value that is too large for Redis, after
// it has put that value into the overflow store. ok is false if the overflow store does not take the value, or there is
// no overflow store.
func (c *Cache) makeEntry(ctx context.Context, key string, value []byte) (entry []byte, ok bool) {
	switch {
	case len(value) <= c.options.MaxValue:
		return sealEntry(c.options.Secrets(), key, inEntry, value), true
	case c.options.Overflow == nil:
		c.stats.tooLarge.Add(1)
		return nil, false
	}

	// The key is added to the stored bytes, so that equal values under other keys have other digests: an owner's value
	// cannot be found by anybody else.
	large := slices.Concat(value, []byte(key))
	name := digest.HexOf(large)
	ctx, cancel := context.WithTimeout(ctx, overflowTimeout)
	defer cancel()
	if err := c.options.Overflow.Put(ctx, name, large); err != nil {
		c.stats.errors.Add(1)
		return nil, false
	}
	c.stats.overflowed.Add(1)
	return sealEntry(c.options.Secrets(), key, inOverflow, []byte(name)), true
}

// setIfAbsent stores a value under a key that has none, and reports whether it did.
func (c *Cache) setIfAbsent(ctx context.Context, key string, value any, ttl time.Duration) (stored bool, err error) {
	answer, err := c.redis.Do(ctx, "SET", key, value, "PX", ttl.Milliseconds(), "NX")
	return answer != nil && err == nil, err
}

// Forget drops the value under key in the process and in Redis. It is for a caller that cannot decode a value although
// it is verified.
func (c *Cache) Forget(ctx context.Context, key string) {
	c.hot.Remove(key)
	c.callRedis(ctx, func(ctx context.Context) error {
		_, err := c.redis.Do(ctx, "DEL", key)
		return err
	})
}

// randomTTL returns TTL·(1 ± Jitter), at least a millisecond.
func (c *Cache) randomTTL() time.Duration {
	if c.options.Jitter < 0 { // no jitter
		return c.options.TTL
	}
	deviation := c.options.Jitter * (2*c.options.Random() - 1) // from −Jitter to Jitter
	return max(time.Millisecond, time.Duration(float64(c.options.TTL)*(1+deviation)))
}

// clusterAdvice says how a cluster is addressed.
const clusterAdvice = "add cluster=true to its URL (redis://HOST:PORT?cluster=true)"

// isMoved reports whether Redis answered that a key is on another node of its cluster, which means that the cluster was
// addressed as one server.
func isMoved(reply connect.RedisError) bool {
	return strings.HasPrefix(reply.Error(), "MOVED ") || strings.HasPrefix(reply.Error(), "ASK ")
}

// callRedis makes one call to Redis within Timeout, unless the breaker skips it, and reports whether Redis has executed
// the command. A key that does not exist counts as executed.
func (c *Cache) callRedis(ctx context.Context, command func(context.Context) error) bool {
	if c.redis == nil || ctx.Err() != nil {
		return false
	}
	if !c.breaker.allow() {
		c.stats.skipped.Add(1)
		return false
	}
	callCtx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	err := command(callCtx)
	var reply connect.RedisError // errors of Redis itself: out of memory, no permission, wrong type
	switch {
	case err == nil:
		c.breaker.succeed()
		c.states.set("down", false, "", "cache: Redis answers again", nil)
		return true
	case errors.As(err, &reply):
		c.breaker.succeed() // Redis is there, although it refuses
		c.stats.refused.Add(1)
		if isMoved(reply) {
			c.states.set("of a cluster", true,
				"cache: Redis at "+c.address+" is a node of a cluster, and other nodes have most entries: "+clusterAdvice, "", err)
			return false
		}
		c.states.set("refusing", true, "cache: Redis refuses a command; going on without", "", err)
		return false
	case ctx.Err() != nil: // the caller does not wait any more, which says nothing about Redis
		c.breaker.abandon()
		return false
	}
	c.breaker.fail()
	c.stats.errors.Add(1)
	c.states.set("down", true, "cache: Redis at "+c.address+" does not answer: answers are the same, and nothing is remembered", "", err)
	return false
}
