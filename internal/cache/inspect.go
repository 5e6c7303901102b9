package cache

// Looking into Redis, and removing from it: for people. Unlike all else here it returns errors.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Prefix begins every key.
const Prefix = "btn:v1:"

// Entry is the content of Redis under a key.
type Entry struct {
	Key   string
	Kind  string        // the kind of the entry: the third part of the key
	Bytes int64         // in Redis
	TTL   time.Duration // until it expires, negative: never
	Idle  time.Duration // since somebody asked for it, negative: Redis does not tell
}

// ErrNoEntry: there is nothing under the key.
var ErrNoEntry = errors.New("cache: no such entry")

// errNoRedis: the cache is in this process only.
var errNoRedis = errors.New("cache: there is no Redis to look into")

// KindOf returns the kind of the entry under a key: "decomposition", "network" and so on.
func KindOf(key string) string {
	rest, ok := strings.CutPrefix(key, Prefix)
	kind, _, more := strings.Cut(rest, ":")
	if !ok || !more || kind == "" {
		return "other"
	}
	return kind
}

// Entries lists the entries whose key begins with prefix, sorted by key. It walks over all keys of
// Redis, in steps that do not hold up others; entries that come and go meanwhile may or may not be
// there.
func (c *Cache) Entries(ctx context.Context, prefix string) ([]Entry, error) {
	keys, err := c.keys(ctx, prefix)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(keys))
	for batch := range slices.Chunk(keys, 256) {
		more, err := c.describe(ctx, batch)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	return entries, nil
}

func (c *Cache) keys(ctx context.Context, prefix string) ([]string, error) {
	if c.redis == nil {
		return nil, errNoRedis
	}
	var mu sync.Mutex // the nodes of a cluster are asked at the same time
	var keys []string
	scan := func(ctx context.Context, node redis.Cmdable) error {
		it := node.Scan(ctx, 0, globEscape.Replace(prefix)+"*", 1000).Iterator()
		for it.Next(ctx) {
			if k := it.Val(); strings.HasPrefix(k, prefix) {
				mu.Lock()
				keys = append(keys, k)
				mu.Unlock()
			}
		}
		return it.Err()
	}

	var err error
	if cluster, ok := c.redis.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return scan(ctx, node) })
	} else {
		err = scan(ctx, c.redis)
	}
	slices.Sort(keys)
	return slices.Compact(keys), failed(err) // a key may come twice
}

var globEscape = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`)

// describe asks for sizes and ages in one round trip. Keys that have gone meanwhile are left out.
func (c *Cache) describe(ctx context.Context, keys []string) ([]Entry, error) {
	sizes, ttls, idles := make([]*redis.IntCmd, len(keys)), make([]*redis.DurationCmd, len(keys)), make([]*redis.DurationCmd, len(keys))
	_, err := c.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, k := range keys {
			sizes[i], ttls[i], idles[i] = p.StrLen(ctx, k), p.PTTL(ctx, k), p.ObjectIdleTime(ctx, k)
		}
		return nil
	})
	var reply redis.Error // of a single command: the others have their results
	if err != nil && !errors.As(err, &reply) && !errors.Is(err, redis.Nil) {
		return nil, failed(err)
	}
	var entries []Entry
	for i, k := range keys {
		if sizes[i].Err() != nil || sizes[i].Val() == 0 {
			continue
		}
		e := Entry{Key: k, Kind: KindOf(k), Bytes: sizes[i].Val(), TTL: ttls[i].Val(), Idle: -1}
		if idles[i].Err() == nil {
			e.Idle = idles[i].Val()
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Show returns one entry and its value; where the value is in the overflow store and this cache has
// none, the digest of it. The error wraps ErrNoEntry if there is none, and says so if the entry
// differs from the stored one.
func (c *Cache) Show(ctx context.Context, key string) (e Entry, value []byte, elsewhere string, err error) {
	if c.redis == nil {
		return e, nil, "", errNoRedis
	}
	found, err := c.describe(ctx, []string{key})
	if err != nil {
		return e, nil, "", err
	}
	if len(found) == 0 {
		return e, nil, "", fmt.Errorf("%w: %s", ErrNoEntry, key)
	}
	e = found[0]
	raw, err := c.redis.Get(ctx, key).Bytes()
	if err != nil {
		return e, nil, "", failed(err)
	}
	where, payload, err := unseal(c.o.Secrets(), key, raw)
	switch {
	case err != nil:
		return e, nil, "", err
	case where == here:
		return e, payload, "", nil
	case c.o.Overflow == nil:
		return e, nil, string(payload), nil
	}
	value, err = c.open(ctx, key, raw)
	return e, value, string(payload), err
}

// Remove removes keys from Redis, and returns the number removed. Workers keep the hot entries of their process.
func (c *Cache) Remove(ctx context.Context, keys ...string) (removed int64, err error) {
	if c.redis == nil {
		return 0, errNoRedis
	}
	for batch := range slices.Chunk(keys, 256) {
		gone := make([]*redis.IntCmd, len(batch))
		_, err := c.redis.Pipelined(ctx, func(p redis.Pipeliner) error { // one by one: a cluster has them on many nodes
			for i, k := range batch {
				gone[i] = p.Del(ctx, k)
			}
			return nil
		})
		for _, n := range gone {
			removed += n.Val()
		}
		if err != nil {
			return removed, failed(err)
		}
		for _, k := range batch {
			c.hot.Remove(k)
		}
	}
	return removed, nil
}

func failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cache: Redis: %w", err)
}
