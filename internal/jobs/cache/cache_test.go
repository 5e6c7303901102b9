package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/basetensor/basetensor/internal/base/digest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logs collects the log of the cache.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logs) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// open returns a cache; without hot entries unless asked, so that Redis answers.
func open(t *testing.T, url string, o Options) *Cache {
	t.Helper()
	if o.Hot == 0 {
		o.Hot = -1
	}
	if o.Timeout == 0 {
		o.Timeout = time.Minute // a Redis that answers late, on a busy machine, is no Redis that is away
	}
	if o.Logger == nil {
		o.Logger = new(logs).logger()
	}
	c, err := Open(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func mini(t *testing.T) *miniredis.Miniredis {
	t.Helper()
	return miniredis.RunT(t)
}

var ctx = context.Background()

// keyOf is a key as the planner makes them.
func keyOf(version, what string) string {
	return "btn:v1:decomposition:" + version + ":" + digest.HexOf([]byte(what))
}

func TestPutAndGet(t *testing.T) {
	r := mini(t)
	c := open(t, "redis://"+r.Addr(), Options{TTL: time.Hour, Random: func() float64 { return 0.75 }})
	if _, ok := c.Get(ctx, "k"); ok {
		t.Fatal("a value before any was put")
	}
	c.Put(ctx, "k", []byte("value"))
	got, ok := c.Get(ctx, "k")
	if !ok || string(got) != "value" {
		t.Fatalf("%q, %v", got, ok)
	}
	if ttl, want := r.TTL("k"), time.Duration(1.05*float64(time.Hour)); ttl.Round(time.Second) != want.Round(time.Second) {
		t.Errorf("lives %v, want %v", ttl, want)
	}
	r.FastForward(2 * time.Hour)
	if _, ok := c.Get(ctx, "k"); ok {
		t.Error("outlives its TTL")
	}
	c.Put(ctx, "k", nil)
	if got, ok := c.Get(ctx, "k"); !ok || len(got) != 0 {
		t.Error("an empty value is a value")
	}
	c.Forget(ctx, "k")
	if _, ok := c.Get(ctx, "k"); ok {
		t.Error("still there")
	}
	if s := c.Stats(); s.Hits != 2 || s.Misses != 3 || s.Stored != 2 || s.Corrupt != 0 {
		t.Errorf("%+v", s)
	}
}

// Every single-bit change of an entry, every cut, and an entry of another key are misses.
func TestCorruptEntriesAreMisses(t *testing.T) {
	r := mini(t)
	var l logs
	c := open(t, "redis://"+r.Addr(), Options{Logger: l.logger()})
	c.Put(ctx, "k", []byte("value"))
	good, err := r.Get("k")
	if err != nil {
		t.Fatal(err)
	}
	bad := []string{"x", good[:len(good)-1], good + "x", strings.Repeat("\x00", 100)}
	for i := range 8 * len(good) {
		b := []byte(good)
		b[i/8] ^= 1 << (i % 8)
		bad = append(bad, string(b))
	}
	for i, entry := range bad {
		r.Set("k", entry)
		if value, ok := c.Get(ctx, "k"); ok {
			t.Fatalf("corrupt entry %d gives %q", i, value)
		}
	}
	r.Set("other", good)
	if value, ok := c.Get(ctx, "other"); ok {
		t.Errorf("the entry of another key gives %q", value)
	}
	if s := c.Stats(); s.Corrupt != int64(len(bad)+1) {
		t.Errorf("%d corrupt entries counted, %d met", s.Corrupt, len(bad)+1)
	}
	if n := l.count("an entry is not what was stored"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	r.Set("k", good)
	if _, ok := c.Get(ctx, "k"); !ok || l.count("entries are sound again") != 1 {
		t.Error("the good entry is not found, or not logged")
	}
	r.Set("k", "")
	if _, ok := c.Get(ctx, "k"); ok {
		t.Error("an empty entry is a value")
	}
	c.Put(ctx, "large", make([]byte, 101))
	c.Put(ctx, "largest", make([]byte, 100))
	small := open(t, "redis://"+r.Addr(), Options{MaxValue: 100})
	if _, ok := small.Get(ctx, "large"); ok || small.Stats().Corrupt != 1 {
		t.Error("took an entry larger than any this cache writes")
	}
	if _, ok := small.Get(ctx, "largest"); !ok {
		t.Error("the largest entry is cut")
	}
	r.Lpush("list", "x")
	if _, ok := c.Get(ctx, "list"); ok || c.Stats().Refused != 1 {
		t.Error("a key of another type", c.Stats())
	}
}

func TestSecretKeepsForgersOut(t *testing.T) {
	r := mini(t)
	url := "redis://" + r.Addr()
	for name, forger := range map[string]Options{
		"another key":   {Secrets: secrets("theirs")},
		"the empty key": {Secrets: secrets("")},
		"no key":        {},
	} {
		r.FlushAll()
		open(t, url, forger).Put(ctx, "k", []byte("forged"))
		c := open(t, url, Options{Secrets: secrets("ours")})
		if v, ok := c.Get(ctx, "k"); ok || c.Stats().Corrupt != 1 {
			t.Errorf("%s: took %q, %+v", name, v, c.Stats())
		}
		// A true entry takes its place.
		c.Put(ctx, "k", []byte("true"))
		if v, ok := open(t, url, Options{Secrets: secrets("ours")}).Get(ctx, "k"); !ok || string(v) != "true" {
			t.Errorf("%s: %q, %v", name, v, ok)
		}
	}
}

// The first secret seals, all of them open: entries outlive a change of keys.
func TestSecretsRotate(t *testing.T) {
	r := mini(t)
	url := "redis://" + r.Addr()
	open(t, url, Options{Secrets: secrets("new", "old")}).Put(ctx, "k", []byte("v"))
	for _, c := range []struct {
		with  []string
		opens bool
	}{{[]string{"new"}, true}, {[]string{"old", "new"}, true}, {[]string{"old"}, false}} {
		v, ok := open(t, url, Options{Secrets: secrets(c.with...)}).Get(ctx, "k")
		if ok != c.opens || ok && string(v) != "v" {
			t.Errorf("with %v: %q, %v", c.with, v, ok)
		}
	}
}

func secrets(of ...string) func() [][]byte {
	var all [][]byte
	for _, s := range of {
		all = append(all, []byte(s))
	}
	return func() [][]byte { return all }
}

// store is an overflow store in memory.
type store struct {
	values map[string][]byte
	fail   error
}

func (s *store) Put(_ context.Context, d string, v []byte) error {
	s.values[d] = v
	return s.fail
}

func (s *store) Get(_ context.Context, d string) ([]byte, error) {
	v, ok := s.values[d]
	if !ok {
		return nil, errors.New("not there")
	}
	return v, s.fail
}

func TestLargeValuesGoElsewhere(t *testing.T) {
	r := mini(t)
	url := "redis://" + r.Addr()
	large := bytes.Repeat([]byte("x"), 1001)
	without := open(t, url, Options{MaxValue: 1000})
	without.Put(ctx, "k", large)
	if r.Exists("k") || without.Stats().TooLarge != 1 {
		t.Error("stored without an overflow store", without.Stats())
	}
	s := &store{values: map[string][]byte{}}
	c := open(t, url, Options{MaxValue: 1000, Overflow: s})
	c.Put(ctx, "k", large)
	if entry, err := r.Get("k"); err != nil || len(entry) > 200 {
		t.Errorf("Redis has %d bytes, %v", len(entry), err)
	}
	if got, ok := c.Get(ctx, "k"); !ok || !bytes.Equal(got, large) {
		t.Error("not found")
	}
	if _, ok := without.Get(ctx, "k"); ok {
		t.Error("found without the store")
	}
	c.Put(ctx, KeyOf(Owner("acme"), "k"), large)
	if len(s.values) != 2 {
		t.Errorf("%d values of an owner and of everybody", len(s.values))
	}
	for name, value := range s.values {
		s.values[name] = value[1:]
	}
	if _, ok := c.Get(ctx, "k"); ok {
		t.Error("a changed value was taken")
	}
	s.fail = errors.New("away")
	c.Put(ctx, "k2", large)
	if r.Exists("k2") {
		t.Error("an entry whose value was not stored")
	}
	c.Put(ctx, "small", large[:1000])
	if got, ok := c.Get(ctx, "small"); !ok || len(got) != 1000 {
		t.Error("MaxValue itself still fits")
	}
}

func TestHotEntries(t *testing.T) {
	r := mini(t)
	c := open(t, "redis://"+r.Addr(), Options{Hot: 4000})
	value := make([]byte, 700)
	for i := range 6 {
		c.Put(ctx, fmt.Sprint(i), value)
	}
	r.FlushAll()
	found := ""
	for i := range 6 {
		if _, ok := c.Get(ctx, fmt.Sprint(i)); ok {
			found += fmt.Sprint(i)
		}
	}
	if found != "2345" { // 901 bytes each with key and overhead: four fit, the last four
		t.Errorf("hot: %s", found)
	}
	c.Get(ctx, "2")
	c.Put(ctx, "6", value)
	if _, ok := c.hot.Get("2"); !ok {
		t.Error("the entry used last was dropped")
	}
	if _, ok := c.hot.Get("3"); ok {
		t.Error("the entry not used longest was kept")
	}
	c.Put(ctx, "2", make([]byte, 1000)) // more than a quarter: not kept, and the old value must not be either
	if _, ok := c.hot.Get("2"); ok {
		t.Error("an old value stayed")
	}
	if entries, bytes := c.hot.Size(); bytes != 901*int64(entries) || bytes > 4000 {
		t.Errorf("%d entries of %d bytes", entries, bytes)
	}
	alone, err := Open("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	alone.Put(ctx, "k", value)
	if _, ok := alone.Get(ctx, "k"); !ok {
		t.Error("without Redis the process remembers")
	}
}

func TestOpenRefusesOnlyBadURLs(t *testing.T) {
	if _, err := Open("http://x", Options{}); err == nil || !strings.Contains(err.Error(), "connect: Redis") {
		t.Error(err)
	}
}

func TestComputesOnceInAProcess(t *testing.T) {
	c := open(t, "redis://"+mini(t).Addr(), Options{})
	var computed, hits atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			v, hit, err := c.GetOrCompute(ctx, "k", func(context.Context) ([]byte, error) {
				computed.Add(1)
				time.Sleep(20 * time.Millisecond)
				return []byte("v"), nil
			})
			if err != nil || string(v) != "v" {
				t.Error(string(v), err)
			}
			if hit {
				hits.Add(1)
			}
		})
	}
	wg.Wait()
	if computed.Load() != 1 || hits.Load() != 19 {
		t.Errorf("computed %d times, %d hits", computed.Load(), hits.Load())
	}
}

func TestComputesOnceAcrossWorkers(t *testing.T) {
	r := mini(t)
	var computed, hits atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		c := open(t, "redis://"+r.Addr(), Options{})
		wg.Go(func() {
			v, hit, err := c.GetOrCompute(ctx, "k", func(context.Context) ([]byte, error) {
				computed.Add(1)
				time.Sleep(60 * time.Millisecond)
				return []byte("v"), nil
			})
			if err != nil || string(v) != "v" {
				t.Error(string(v), err)
			}
			if hit {
				hits.Add(1)
			}
		})
	}
	wg.Wait()
	if computed.Load() != 1 || hits.Load() != 3 {
		t.Errorf("computed %d times, %d hits", computed.Load(), hits.Load())
	}
	if r.Exists("k:lock") {
		t.Error("the lock was not given back")
	}
}

// Two workers that both compute, because one did not hear of the other, have the same value in the end: the first one stored.
func TestTheFirstValueWins(t *testing.T) {
	r := mini(t)
	slow, fast := open(t, "redis://"+r.Addr(), Options{LockWait: -1, Hot: 1 << 20}), open(t, "redis://"+r.Addr(), Options{})
	v, hit, err := slow.GetOrCompute(ctx, "k", func(context.Context) ([]byte, error) {
		if kept := fast.Put(ctx, "k", []byte("first")); string(kept) != "first" {
			t.Errorf("the first is %q", kept)
		}
		return []byte("second"), nil
	})
	if err != nil || hit || string(v) != "first" {
		t.Errorf("%q, %v, %v", v, hit, err)
	}
	for _, c := range []*Cache{slow, fast} {
		if v, ok := c.Get(ctx, "k"); !ok || string(v) != "first" {
			t.Errorf("kept %q, %v", v, ok)
		}
	}
	if s := slow.Stats(); s.Stored != 0 {
		t.Errorf("%+v", s)
	}
	r.Set("k", "what nobody can read")
	if kept := fast.Put(ctx, "k", []byte("third")); string(kept) != "third" {
		t.Errorf("over a corrupt entry %q is kept", kept)
	}
	if v, ok := fast.Get(ctx, "k"); !ok || string(v) != "third" {
		t.Errorf("%q, %v", v, ok)
	}
}

// A worker that died with the lock costs LockWait at most, and it does not take the lock from its next holder.
func TestDeadWorkersLock(t *testing.T) {
	r := mini(t)
	c := open(t, "redis://"+r.Addr(), Options{LockWait: 50 * time.Millisecond})
	r.Set("k:lock", "somebody")
	start := time.Now()
	v, hit, err := c.GetOrCompute(ctx, "k", func(context.Context) ([]byte, error) { return []byte("v"), nil })
	if err != nil || hit || string(v) != "v" {
		t.Error(string(v), hit, err)
	}
	if d := time.Since(start); d < 50*time.Millisecond {
		t.Errorf("waited %v", d)
	}
	if holder, _ := r.Get("k:lock"); holder != "somebody" {
		t.Errorf("the lock is now %q", holder)
	}
}

func TestErrorsAndPanicsOfCompute(t *testing.T) {
	r := mini(t)
	c := open(t, "redis://"+r.Addr(), Options{})
	want := errors.New("no")
	if _, _, err := c.GetOrCompute(ctx, "k", func(context.Context) ([]byte, error) { return nil, want }); err != want {
		t.Error(err)
	}
	func() {
		defer func() {
			if recover() != "oops" {
				t.Error("the panic was lost")
			}
		}()
		c.GetOrCompute(ctx, "k", func(context.Context) ([]byte, error) { panic("oops") })
	}()
	v, hit, err := c.GetOrCompute(ctx, "k", func(context.Context) ([]byte, error) { return []byte("v"), nil })
	if err != nil || hit || string(v) != "v" {
		t.Error("after a panic:", string(v), hit, err)
	}
}

// The leader's cancellation is its own: a follower takes over.
func TestFollowerTakesOverFromCancelledLeader(t *testing.T) {
	c := open(t, "redis://"+mini(t).Addr(), Options{})
	leading, cancel := context.WithCancel(ctx)
	started := make(chan bool)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _, err := c.GetOrCompute(leading, "k", func(ctx context.Context) ([]byte, error) {
			close(started)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	<-started
	wg.Go(func() {
		v, _, err := c.GetOrCompute(ctx, "k", func(context.Context) ([]byte, error) { return []byte("v"), nil })
		if err != nil || string(v) != "v" {
			t.Error(string(v), err)
		}
	})
	impatient, stop := context.WithTimeout(ctx, 20*time.Millisecond)
	defer stop()
	if _, _, err := c.GetOrCompute(impatient, "k", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	cancel()
	wg.Wait()
}

func TestBreaker(t *testing.T) {
	now := time.Unix(0, 0)
	b := &breaker{clock: func() time.Time { return now }}
	passing := func(calls int) (passed int) {
		for range calls {
			if b.allow() {
				passed++
			}
		}
		return passed
	}
	if passing(3) != 3 {
		t.Fatal("a closed breaker lets calls pass")
	}
	b.fail()
	b.fail() // the second call under way must not double the pause
	pause := firstPause
	for range 8 {
		now = now.Add(pause - 1)
		if b.allow() {
			t.Fatalf("passes before %v are over", pause)
		}
		now = now.Add(1)
		if passing(3) != 1 {
			t.Fatalf("after %v exactly one call may try", pause)
		}
		b.fail()
		pause = min(2*pause, longestPause)
	}
	now = now.Add(longestPause)
	if !b.allow() {
		t.Fatal("may try")
	}
	b.abandon()
	if !b.allow() {
		t.Fatal("may try again after a call that showed nothing")
	}
	b.succeed()
	if passing(3) != 3 {
		t.Fatal("closed after a success")
	}
}

// TestProbe: a Redis that is not there is said once, with its address and without its password.
func TestProbe(t *testing.T) {
	server, l := mini(t), new(logs)
	there := open(t, "redis://"+server.Addr(), Options{Logger: l.logger()})
	if err := there.Probe(ctx); err != nil || l.count("answer") != 0 {
		t.Errorf("%v, %s", err, &l.buf)
	}
	address := server.Addr()
	server.Close()
	gone := open(t, "redis://:secret@"+address+"/0", Options{Logger: l.logger()})
	err := gone.Probe(ctx)
	gone.Get(ctx, keyOf("1", ""))
	if err == nil || !strings.Contains(err.Error(), address) || strings.Contains(err.Error(), "secret") || l.count("secret") != 0 ||
		l.count("does not answer: answers are the same, and nothing is remembered") != 1 {
		t.Errorf("%v, %s", err, &l.buf)
	}
	if err := open(t, "", Options{}).Probe(ctx); err != nil {
		t.Errorf("without a Redis: %v", err)
	}
}
