package cache

// Looking into Redis, and removing from it: for people. Unlike all else here it returns errors.

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

// store returns the client, if it is one that can be looked into.
func (c *Cache) store() (connect.Store, error) {
	if store, ok := c.redis.(connect.Store); ok {
		return store, nil
	}
	return nil, errNoRedis
}

func (c *Cache) keys(ctx context.Context, prefix string) ([]string, error) {
	store, err := c.store()
	if err != nil {
		return nil, err
	}
	keys, err := store.Keys(ctx, globEscape.Replace(prefix)+"*")
	keys = slices.DeleteFunc(keys, func(k string) bool { return !strings.HasPrefix(k, prefix) })
	slices.Sort(keys)
	return slices.Compact(keys), failed(err) // a key may come twice
}

var globEscape = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`)

// describe asks for sizes and ages in one round trip. Keys that have gone meanwhile are left out.
func (c *Cache) describe(ctx context.Context, keys []string) ([]Entry, error) {
	store, err := c.store()
	if err != nil {
		return nil, err
	}
	var commands [][]any
	for _, k := range keys {
		commands = append(commands, []any{"STRLEN", k}, []any{"PTTL", k}, []any{"OBJECT", "IDLETIME", k})
	}
	replies, err := store.All(ctx, commands)
	if err != nil {
		return nil, failed(err)
	}
	var entries []Entry
	for i, k := range keys {
		size, ttl, idle := replies[3*i], replies[3*i+1], replies[3*i+2]
		if size.Err != nil || size.Int() == 0 {
			continue
		}
		e := Entry{Key: k, Kind: KindOf(k), Bytes: size.Int(), TTL: time.Duration(ttl.Int()) * time.Millisecond, Idle: -1}
		if idle.Err == nil && idle.Value != nil {
			e.Idle = time.Duration(idle.Int()) * time.Second
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
	answer, err := c.redis.Do(ctx, "GET", key)
	if err != nil {
		return e, nil, "", failed(err)
	}
	text, there := answer.(string)
	if !there {
		return e, nil, "", fmt.Errorf("%w: %s", ErrNoEntry, key)
	}
	raw := []byte(text)
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
	store, err := c.store()
	if err != nil {
		return 0, err
	}
	for batch := range slices.Chunk(keys, 256) {
		var commands [][]any // one by one: a cluster has them on many nodes
		for _, k := range batch {
			commands = append(commands, []any{"DEL", k})
		}
		gone, err := store.All(ctx, commands)
		if err != nil {
			return removed, failed(err)
		}
		for _, n := range gone {
			if n.Err != nil {
				return removed, failed(n.Err)
			}
			removed += n.Int()
		}
		for _, k := range batch {
			c.hot.Remove(k)
		}
	}
	return removed, nil
}

func failed(err error) error {
	var reply connect.RedisError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &reply) && ofCluster(reply):
		return fmt.Errorf("cache: Redis: %w: it is a node of a cluster: "+withCluster, err)
	}
	return fmt.Errorf("cache: Redis: %w", err)
}
