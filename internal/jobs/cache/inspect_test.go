package cache

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/internal/testing/testserver"
)

// exerciseInspection is the same for a Redis of either kind. idle says whether it knows when a key was last asked for.
func exerciseInspection(t *testing.T, url string, idle bool) {
	s := &store{values: map[string][]byte{}}
	c := open(t, url, Options{MaxValue: 1000, Overflow: s, TTL: time.Hour, Jitter: -1})
	model, other := strings.Repeat("a", 64), strings.Repeat("b", 64)
	keys := []string{
		keyOf("1", "small"), keyOf("1", "large"), NetworkKey("1", model, "x"), NetworkKey("1", other, "x"),
		NetworkKey("1", model, "y"),
	}
	for i, k := range keys {
		value := []byte(fmt.Sprint("value ", i))
		if i == 1 {
			value = bytes.Repeat([]byte("large"), 1000)
		}
		c.Put(ctx, k, value)
	}
	c.redis.Do(ctx, "SET", "btn:v1:never", "not ours, and never expires")
	c.redis.Do(ctx, "SET", "btn:v1:n*twork:", "a key like a pattern")
	for i := range 3000 { // more than one step of the walk
		c.redis.Do(ctx, "SET", fmt.Sprint("elsewhere:", i), "x")
	}
	all, err := c.Entries(ctx, Prefix)
	if err != nil || len(all) != 7 {
		t.Fatalf("%+v %v", all, err)
	}
	for i, e := range all {
		want := "decomposition"
		switch {
		case strings.HasPrefix(e.Key, "btn:v1:network:"):
			want = "network"
		case e.Key == "btn:v1:never":
			want = "other"
		case strings.Contains(e.Key, "*"):
			want = "n*twork"
		}
		if e.Kind != want || e.Bytes < 10 || i > 0 && all[i-1].Key >= e.Key || idle && (e.Idle < 0 || e.Idle > time.Minute) {
			t.Errorf("%+v", e)
		}
		if ours := want == "decomposition" || want == "network"; ours && (e.TTL > time.Hour || e.TTL < 59*time.Minute) || !ours && e.TTL >= 0 {
			t.Errorf("%+v", e)
		}
	}
	if some, err := c.Entries(ctx, "btn:v1:n*"); err != nil || len(some) != 1 {
		t.Errorf("a prefix that is a pattern: %+v %v", some, err)
	}
	e, value, blob, err := c.Show(ctx, keys[0])
	if err != nil || string(value) != "value 0" || blob != "" || e.Bytes != headerSize+7 {
		t.Errorf("%+v %q %v", e, value, err)
	}
	if _, value, blob, err = c.Show(ctx, keys[1]); err != nil || len(value) != 5000 || blob != digest.HexOf(append(value, keys[1]...)) {
		t.Errorf("%d bytes, %q, %v", len(value), blob, err)
	}
	without := open(t, url, Options{})
	if _, value, blob, err = without.Show(ctx, keys[1]); err != nil || value != nil || len(blob) != 64 {
		t.Errorf("%d bytes, %q, %v", len(value), blob, err)
	}
	if e, _, _, err = c.Show(ctx, "btn:v1:never"); !errors.Is(err, errEntry) || e.Key == "" {
		t.Errorf("what was never stored by a cache: %+v %v", e, err)
	}
	if _, _, _, err = c.Show(ctx, "btn:v1:nothing"); !errors.Is(err, ErrNoEntry) {
		t.Error(err)
	}
	if n, err := c.Remove(ctx, keys[2], keys[4], "btn:v1:nothing"); n != 2 || err != nil {
		t.Error(n, err)
	}
	if _, ok := c.Get(ctx, keys[2]); ok {
		t.Error("removed, and there")
	}
	if _, ok := c.Get(ctx, keys[3]); !ok {
		t.Error("another model's is gone too")
	}
}

func TestInspection(t *testing.T) { exerciseInspection(t, "redis://"+mini(t).Addr(), false) }

func TestInspectionOfARealRedis(t *testing.T) {
	exerciseInspection(t, testserver.Redis(t, testserver.RedisOptions{Config: config}).URL, true)
}

func TestNothingToLookInto(t *testing.T) {
	c := open(t, "", Options{})
	_, err := c.Entries(ctx, Prefix)
	_, removeErr := c.Remove(ctx, "x")
	_, _, _, showErr := c.Show(ctx, "x")
	if !errors.Is(err, errNoRedis) || !errors.Is(removeErr, errNoRedis) || !errors.Is(showErr, errNoRedis) {
		t.Error(err, removeErr, showErr)
	}
	r := mini(t)
	gone := open(t, "redis://"+r.Addr(), Options{})
	r.Close()
	if _, err := gone.Entries(ctx, Prefix); err == nil || !strings.Contains(err.Error(), "cache: Redis: ") {
		t.Error(err)
	}
}

// Every kind has its own counts, and the process states its own entries.
func TestStatsByKind(t *testing.T) {
	c := open(t, "redis://"+mini(t).Addr(), Options{Hot: 1 << 20})
	a, b := keyOf("1", "a"), NetworkKey("1", "m", "s")
	c.Get(ctx, a)
	c.Put(ctx, a, []byte("value"))
	c.Get(ctx, a)
	c.Get(ctx, b)
	c.hot.Remove(a)
	c.Get(ctx, a)
	s := c.Stats()
	if s.Kinds["decomposition"] != (KindStats{2, 1, 1}) || s.Kinds["network"] != (KindStats{0, 0, 1}) || s.Hits != 2 || s.Misses != 2 {
		t.Errorf("%+v", s)
	}
	if s.HotEntries != 1 || s.HotBytes != int64(len(a)+5)+entryOverhead {
		t.Errorf("%d entries, %d bytes", s.HotEntries, s.HotBytes)
	}
}
