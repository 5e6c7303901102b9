package cache

// Listing, showing and removing entries of Redis, for people. Unlike the rest of this package it returns errors.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/connect"
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

// ErrNoEntry means that there is nothing under the key.
var ErrNoEntry = errors.New("cache: no such entry")

// errNoRedis means that the cache is in this process only.
var errNoRedis = errors.New("cache: there is no Redis to look into")

// KindOf returns the kind of the entry under a key, which is the third part of the key: "decomposition", "network" and
// so on.
func KindOf(key string) string {
	rest, ok := strings.CutPrefix(key, Prefix)
	kind, _, more := strings.Cut(rest, ":")
	if !ok || !more || kind == "" {
		return "other"
	}
	return kind
}

// Entries lists the entries whose key begins with prefix, sorted by key. It goes through all keys of Redis, in steps
// that do not hold up others. Entries that come or go meanwhile may be missing or listed.
func (c *Cache) Entries(ctx context.Context, prefix string) ([]Entry, error) {
	keys, err := c.keysWithPrefix(ctx, prefix)
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

// inspectable returns the client, if it can list keys.
func (c *Cache) inspectable() (connect.Store, error) {
	if store, ok := c.redis.(connect.Store); ok {
		return store, nil
	}
	return nil, errNoRedis
}

// keysWithPrefix returns the keys in Redis that begin with prefix, sorted.
func (c *Cache) keysWithPrefix(ctx context.Context, prefix string) ([]string, error) {
	store, err := c.inspectable()
	if err != nil {
		return nil, err
	}
	keys, err := store.Keys(ctx, globEscape.Replace(prefix)+"*")
	keys = slices.DeleteFunc(keys, func(k string) bool { return !strings.HasPrefix(k, prefix) })
	slices.Sort(keys)
	return slices.Compact(keys), redisError(err) // a key may come twice
}

// globEscape escapes the wildcards of Redis's patterns.
var globEscape = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`)

// describe returns sizes and ages of the entries under keys, asked for in one round trip. Keys that are gone meanwhile
// are left out.
func (c *Cache) describe(ctx context.Context, keys []string) ([]Entry, error) {
	store, err := c.inspectable()
	if err != nil {
		return nil, err
	}
	var commands [][]any
	for _, k := range keys {
		commands = append(commands, []any{"STRLEN", k}, []any{"PTTL", k}, []any{"OBJECT", "IDLETIME", k})
	}
	replies, err := store.All(ctx, commands)
	if err != nil {
		return nil, redisError(err)
	}

	// There are three replies for each key.
	var entries []Entry
	for i, k := range keys {
		size, ttl, idle := replies[3*i], replies[3*i+1], replies[3*i+2]
		if size.Err != nil || size.Int() == 0 {
			continue
		}
		e := Entry{Key: k, Kind: KindOf(k), Bytes: size.Int(), TTL: time.Duration(ttl.Int()) * time.Millisecond, Idle: -1} // −1: not known
		if idle.Err == nil && idle.Value != nil {
			e.Idle = time.Duration(idle.Int()) * time.Second
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Show returns one entry and its value. If the value is in the overflow store, elsewhere is its digest there, and value
// is nil if this cache has no overflow store. The error wraps ErrNoEntry if there is no entry. It says so if the entry
// differs from the one that was stored.
func (c *Cache) Show(ctx context.Context, key string) (e Entry, value []byte, elsewhere string, err error) {
	if c.redis == nil {
		return e, nil, "", errNoRedis
	}
	entries, err := c.describe(ctx, []string{key})
	if err != nil {
		return e, nil, "", err
	}
	if len(entries) == 0 {
		return e, nil, "", fmt.Errorf("%w: %s", ErrNoEntry, key)
	}
	e = entries[0]
	answer, err := c.redis.Do(ctx, "GET", key)
	if err != nil {
		return e, nil, "", redisError(err)
	}
	text, exists := answer.(string)
	if !exists {
		return e, nil, "", fmt.Errorf("%w: %s", ErrNoEntry, key)
	}

	// The value is in the entry, or its digest is.
	raw := []byte(text)
	where, payload, err := unsealEntry(c.options.Secrets(), key, raw)
	switch {
	case err != nil:
		return e, nil, "", err
	case where == inEntry:
		return e, payload, "", nil
	case c.options.Overflow == nil:
		return e, nil, string(payload), nil
	}
	value, err = c.openEntry(ctx, key, raw)
	return e, value, string(payload), err
}

// Remove removes keys from Redis and from this process, and returns the number removed from Redis. Other processes keep
// their hot entries.
func (c *Cache) Remove(ctx context.Context, keys ...string) (removed int64, err error) {
	store, err := c.inspectable()
	if err != nil {
		return 0, err
	}
	for batch := range slices.Chunk(keys, 256) {
		var commands [][]any // one by one: a cluster has them on many nodes
		for _, k := range batch {
			commands = append(commands, []any{"DEL", k})
		}
		replies, err := store.All(ctx, commands)
		if err != nil {
			return removed, redisError(err)
		}
		for _, n := range replies {
			if n.Err != nil {
				return removed, redisError(n.Err)
			}
			removed += n.Int()
		}
		for _, k := range batch {
			c.hot.Remove(k)
		}
	}
	return removed, nil
}

// redisError returns an error of Redis as one of this package, with advice if Redis is a node of a cluster.
func redisError(err error) error {
	var reply connect.RedisError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &reply) && isMoved(reply):
		return fmt.Errorf("cache: Redis: %w: it is a node of a cluster: "+clusterAdvice, err)
	}
	return fmt.Errorf("cache: Redis: %w", err)
}
