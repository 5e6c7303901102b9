package cache

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/testing/testserver"
)

const config = "../../../deploy/redis.conf"

// With Redis as it may be, the value is the same; only time differs.
func TestAnswersAreTheSameWhateverRedisDoes(t *testing.T) {
	s := testserver.Redis(t, testserver.RedisOptions{Config: config})
	want := bytes.Repeat([]byte("decomposition"), 1000)
	ask := func(c *Cache) (hit bool) {
		t.Helper()
		v, hit, err := c.GetOrCompute(ctx, "k", func(context.Context) ([]byte, error) { return bytes.Clone(want), nil })
		if err != nil || !bytes.Equal(v, want) {
			t.Fatalf("%d bytes, %v", len(v), err)
		}
		return hit
	}
	var l logs
	c := open(t, s.URL, Options{Logger: l.logger(), Timeout: 5 * time.Second})
	if ask(c) || !ask(c) {
		t.Error("miss, then hit")
	}
	s.Pause()
	if ask(c) {
		t.Error("a hit from a paused Redis")
	}
	s.Resume()
	awaitHit(t, c)
	s.Kill()
	if ask(c) {
		t.Error("a hit from a dead Redis")
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * firstPause)
	ask(c) // an empty Redis
	awaitHit(t, c)
	if down, up := l.count("does not answer: answers are the same"), l.count("Redis answers again"); down != 2 || up != 2 {
		t.Errorf("two outages, logged %d times down and %d times up", down, up)
	}
}

// A cluster that is addressed as one server keeps the entries of one node. The log says once which setting mends that, and with it all
// entries are kept.
func TestAClusterAddressedAsOneServer(t *testing.T) {
	var nodes []*testserver.RedisServer
	for range 2 {
		nodes = append(nodes, testserver.Redis(t, testserver.RedisOptions{Args: []string{
			"--cluster-enabled", "yes", "--cluster-port", testserver.FreePort(t),
		}}))
	}
	admin := make([]connect.Store, 2)
	for i, node := range nodes {
		var err error
		if admin[i], err = (connect.Redis{}).Client(node.URL, time.Minute); err != nil {
			t.Fatal(err)
		}
		defer admin[i].Close()
		if _, err := admin[i].Do(ctx, "CLUSTER", "ADDSLOTSRANGE", 8192*i, 8192*i+8191); err != nil {
			t.Fatal(err)
		}
	}
	host, port, err := net.SplitHostPort(nodes[1].Addr)
	if err != nil {
		t.Fatal(err)
	}
	gossip, err := admin[1].Do(ctx, "CONFIG", "GET", "cluster-port")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin[0].Do(ctx, "CLUSTER", "MEET", host, port, gossip.([]any)[1]); err != nil {
		t.Fatal(err)
	}
	for _, node := range admin {
		for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			info, err := node.Do(ctx, "CLUSTER", "INFO")
			text, _ := info.(string)
			if err == nil && strings.Contains(text, "cluster_state:ok") && strings.Contains(text, "cluster_known_nodes:2") {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("no cluster: %v %v", info, err)
			}
		}
	}
	for url, want := range map[string]int{nodes[0].URL: 0, nodes[0].URL + "?cluster=true": 100} {
		var l logs
		c := open(t, url, Options{Logger: l.logger(), Timeout: 5 * time.Second})
		for i := range 100 {
			c.Put(ctx, fmt.Sprintf("btn:v1:test:%d:%d", want, i), []byte("value"))
		}
		found := 0
		for i := range 100 {
			if _, ok := c.Get(ctx, fmt.Sprintf("btn:v1:test:%d:%d", want, i)); ok {
				found++
			}
		}
		said := l.count("?cluster=true")
		if want == 100 && (found != 100 || said != 0) {
			t.Errorf("as a cluster: %d of 100 entries, said %d times", found, said)
		}
		if want == 0 && (found == 0 || found == 100 || said != 1 || l.count("refuses") != 0) {
			t.Errorf("as one server: %d of 100 entries, the setting named %d times", found, said)
		}
	}
}

// A user of Redis with exactly the permissions in docs/reference/settings.md may do all that a cache does.
func TestWhatTheUserOfRedisMayDo(t *testing.T) {
	s := testserver.Redis(t, testserver.RedisOptions{Config: config, Args: []string{
		"--user", "worker", "on", ">s3cret", "~btn:*", "-@all",
		"+get", "+getrange", "+set", "+del", "+exists", "+eval", "+ping", "+scan", "+strlen", "+pttl", "+object",
	}})
	var l logs
	c := open(t, "redis://worker:s3cret@"+s.Addr, Options{Logger: l.logger(), Timeout: 5 * time.Second})
	if err := c.Probe(ctx); err != nil {
		t.Fatal(err)
	}
	key := "btn:v1:test"
	compute := func(context.Context) ([]byte, error) { return []byte("value"), nil }
	for i, want := range []bool{false, true} {
		if _, hit, err := c.GetOrCompute(ctx, key, compute); err != nil || hit != want {
			t.Errorf("call %d: hit %v, want %v: %v", i, hit, want, err)
		}
	}
	if entries, err := c.Entries(ctx, "btn:"); err != nil || len(entries) != 1 || entries[0].Idle < 0 {
		t.Errorf("entries: %+v, %v", entries, err)
	}
	if _, value, _, err := c.Show(ctx, key); err != nil || string(value) != "value" {
		t.Errorf("show: %q, %v", value, err)
	}
	if n, err := c.Remove(ctx, key); err != nil || n != 1 {
		t.Errorf("removed %d, %v", n, err)
	}
	if n := l.count("NOPERM"); n > 0 {
		t.Errorf("refused %d times", n)
	}
	if c.Put(ctx, "other", []byte("value")); l.count("NOPERM") == 0 {
		t.Error("a key of somebody else was written, or nobody was told that it was not")
	}
}

// awaitHit asks until the breaker has let a call try.
func awaitHit(t *testing.T, c *Cache) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if _, ok := c.Get(ctx, "k"); ok {
			return
		}
		c.Put(ctx, "k", bytes.Repeat([]byte("decomposition"), 1000))
	}
	t.Fatal("Redis is back, the cache is not")
}

// A paused Redis costs one timeout; the calls after it are instant.
func TestPausedRedisCostsOneTimeout(t *testing.T) {
	s := testserver.Redis(t, testserver.RedisOptions{Config: config})
	for _, warm := range []bool{true, false} { // with a connection in the pool, and with none
		c := open(t, s.URL, Options{Timeout: 100 * time.Millisecond})
		for warm && c.Stats().Stored == 0 { // a busy machine may take longer than a call may
			c.Put(ctx, "k", []byte("v"))
		}
		before := c.Stats().Errors
		s.Pause()
		start := time.Now()
		c.Get(ctx, "k")
		first := time.Since(start)
		for range 100 { // the breaker is open: they do not call
			c.Get(ctx, "k")
		}
		s.Resume()
		if first < 90*time.Millisecond { // it waited for 100 ms
			t.Errorf("the first call took %v", first)
		}
		if st := c.Stats(); st.Errors != before+1 || st.Skipped < 100 {
			t.Errorf("%+v", st)
		}
	}
}

// A host that swallows packets, unlike a dead process, does not even refuse the connection.
func TestUnreachableRedis(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never says a word
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, url := range []string{"redis://" + l.Addr().String(), "redis://127.0.0.1:1"} {
		c := open(t, url, Options{Timeout: 100 * time.Millisecond})
		if _, ok := c.Get(ctx, "k"); ok {
			t.Fatal("a value from nowhere")
		}
		if st := c.Stats(); st.Errors != 1 {
			t.Errorf("%s: %+v", url, st)
		}
	}
}

func TestEvictionByMaxmemory(t *testing.T) {
	s := testserver.Redis(t, testserver.RedisOptions{Config: config, Args: []string{"--maxmemory", "3mb"}})
	c := open(t, s.URL, Options{})
	value := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 100_000) }
	for i := range 60 {
		c.Put(ctx, fmt.Sprint(i), value(i))
	}
	found := 0
	for i := range 60 {
		v, ok := c.Get(ctx, fmt.Sprint(i))
		if ok && !bytes.Equal(v, value(i)) {
			t.Fatalf("entry %d is another's", i)
		}
		if ok {
			found++
		}
	}
	if found == 0 || found > 30 {
		t.Errorf("%d of 60 entries of 100 kB in 3 MB", found)
	}
	if st := c.Stats(); st.Stored != 60 || st.Corrupt != 0 || st.Misses != int64(60-found) {
		t.Errorf("%+v", st)
	}
}

// A Redis that refuses writes is not down: reads go on, and the refusal is logged once.
func TestRefusingRedis(t *testing.T) {
	var l logs
	s := testserver.Redis(t, testserver.RedisOptions{Args: []string{"--maxmemory", "3mb", "--maxmemory-policy", "noeviction"}})
	c := open(t, s.URL, Options{Logger: l.logger()})
	for i := range 60 {
		c.Put(ctx, fmt.Sprint(i), make([]byte, 100_000))
	}
	st := c.Stats()
	if st.Refused == 0 || st.Stored == 0 || st.Stored+st.Refused != 60 || st.Errors != 0 {
		t.Errorf("%+v", st)
	}
	if _, ok := c.Get(ctx, "0"); !ok {
		t.Error("reads must go on")
	}
	if n := l.count("Redis refuses a command"); n != 1 {
		t.Errorf("logged %d times", n)
	}
}

// An entry changed or copied inside a real Redis.
func TestTamperedEntriesInRealRedis(t *testing.T) {
	s := testserver.Redis(t, testserver.RedisOptions{Config: config})
	c := open(t, s.URL, Options{})
	c.Put(ctx, "a", []byte("value of a"))
	if _, err := c.redis.Do(ctx, "COPY", "a", "b", "REPLACE"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.redis.Do(ctx, "SETRANGE", "a", headerSize+2, "X"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b"} {
		v, hit, err := c.GetOrCompute(ctx, key, func(context.Context) ([]byte, error) { return []byte("computed"), nil })
		if hit || err != nil || string(v) != "computed" {
			t.Errorf("%s: %q, hit %v, %v", key, v, hit, err)
		}
		if v, ok := c.Get(ctx, key); !ok || string(v) != "computed" {
			t.Errorf("%s: the bad entry was not replaced: %q", key, v)
		}
	}
}
