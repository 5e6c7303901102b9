package faults

// Faults of Redis: answers are the same under all of them.

import (
	"context"
	"crypto/rand"
	"time"
)

// onRedis strikes Redis, or all connections to it: all jobs that are under way before the end are held up.
func onRedis(draw func(b *batch, p process) blow) func(context.Context, *batch) error {
	return func(ctx context.Context, b *batch) error {
		x := draw(b, b.s.redis)
		s := b.begin("%s", x.what)
		x.begin()
		pause(ctx, x.lasts)
		b.l.during(s, s.at, time.Now())
		if x.end != nil {
			return x.end()
		}
		return nil
	}
}

// eachRedis is an action on every worker's way to Redis.
func (b *batch) eachRedis(f func(*gate)) func() {
	return func() {
		for _, w := range b.s.workers {
			f(w.redis)
		}
	}
}

func redisSlow(b *batch, _ process) blow {
	by, length := b.between(20*time.Millisecond, 300*time.Millisecond), b.between(time.Second, 3*time.Second)
	set := func(by time.Duration) func() {
		return b.eachRedis(func(g *gate) { g.set(func(g *gate) { g.delay = by }) })
	}
	return blow{"by " + rounded(by) + " for " + rounded(length), set(by), length, without(set(0))}
}

func redisBound(policy string) func(context.Context, *batch) error {
	return func(ctx context.Context, b *batch) error {
		length := b.between(time.Second, 3*time.Second)
		s := b.begin("for %s", rounded(length))
		was, err := b.s.cache.ConfigGet(ctx, "maxmemory*").Result()
		if err != nil {
			return err
		}
		if err := b.s.cache.ConfigSet(ctx, "maxmemory-policy", policy).Err(); err != nil {
			return err
		}
		if err := b.s.cache.ConfigSet(ctx, "maxmemory", "1500kb").Err(); err != nil {
			return err
		}
		pause(ctx, length)
		b.l.during(s, s.at, time.Now())
		for _, name := range []string{"maxmemory", "maxmemory-policy"} {
			if err := b.s.cache.ConfigSet(ctx, name, was[name]).Err(); err != nil {
				return err
			}
		}
		return nil
	}
}

func redisFlush(ctx context.Context, b *batch) error {
	s := b.begin("flushed")
	err := b.s.cache.FlushAll(ctx).Err()
	b.l.during(s, s.at, time.Now())
	return err
}

// redisPoison damages up to twenty entries.
func redisPoison(ctx context.Context, b *batch) error {
	keys, err := b.s.cache.Keys(ctx, "*").Result()
	if err != nil {
		return err
	}
	s := b.begin("%d of %d entries", min(20, len(keys)), len(keys))
	var last string
	for range min(20, len(keys)) {
		key := keys[b.draw(len(keys))]
		text, err := b.s.cache.Get(ctx, key).Result()
		if err != nil || text == "" {
			continue // gone meanwhile
		}
		value := []byte(text)
		switch b.draw(4) {
		case 0:
			value = value[:b.draw(len(value))]
		case 1:
			value[b.draw(len(value))] ^= 1 << b.draw(8)
		case 2:
			rand.Read(value)
		case 3:
			value = []byte(last)
		}
		last = text
		if err := b.s.cache.Set(ctx, key, value, time.Hour).Err(); err != nil {
			return err
		}
	}
	b.l.during(s, s.at, time.Now())

	// A process that begins has no memory of its own, and reads the entries in Redis.
	w, over := b.victim()
	defer over()
	w.replace(w.command...)
	return nil
}

func redisCut(b *batch, _ process) blow { return blow{what: "all", begin: b.eachRedis((*gate).cut)} }

func redisHole(b *batch, _ process) blow {
	refuse := b.between(0, 2*time.Second)
	return blow{"new connections after " + rounded(refuse), b.eachRedis((*gate).swallow), refuse, without(func() {
		b.eachRedis((*gate).admit)()
		time.Sleep(time.Second)
		b.eachRedis((*gate).bury)()
	})}
}
