package embedded_test

import (
	"context"
	"errors"
	"math"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model has Z = 1 + 2 + 3 + 4.
const model = "MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 4\n"

func ask(t *testing.T, c *client.Client, job string) *wire.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if _, err := c.Submit(ctx, wire.Request{Job: job, Text: model, Queries: []query.Query{{}}}); err != nil {
		t.Fatal(err)
	}
	a, err := c.Wait(ctx, job)
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != wire.StatusOK || math.Abs(*a.Results[0].LogZ-math.Log(10)) > 1e-14 {
		t.Fatalf("job %s: %s %v %v", job, a.Status, a.Error, a.Results)
	}
	return a
}

func TestMoreRoomThanUsual(t *testing.T) {
	const room = 10 << 30
	s, err := embedded.Start(t.Context(), embedded.Options{Setup: pipeline.Streams{MaxBytes: room}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.MemoryLimit(); got != room {
		t.Errorf("the server's limit is %d bytes, want %d", got, room)
	}
}

// start starts a stack and its workers. The returned function waits for the end of both.
func start(t *testing.T, o embedded.Options) (*embedded.Stack, func()) {
	t.Helper()
	s, err := embedded.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background(), pipeline.Config{}) }()
	return s, func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("workers: %v", err)
			}
		case <-time.After(2 * time.Minute):
			t.Error("the workers outlive the stack")
		}
	}
}

func inProcess(t *testing.T, s *embedded.Stack) *client.Client {
	t.Helper()
	nc, err := s.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// In memory no NATS port is open, and no folder is left.
func TestInMemory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, stop := start(t, embedded.Options{})
	if s.NATSURL() != "" || s.RedisURL() != "" {
		t.Errorf("listens at %q and %q", s.NATSURL(), s.RedisURL())
	}
	c := inProcess(t, s)
	if cache := ask(t, c, "one").Results[0].Cache; cache != "miss" {
		t.Errorf("cache %s", cache)
	}
	if cache := ask(t, c, "two").Results[0].Cache; cache != "hit" {
		t.Errorf("cache %s of the second job", cache)
	}
	stop()
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if err := s.Run(t.Context(), pipeline.Config{}); err == nil {
		t.Error("a closed stack runs workers")
	}
	if err := s.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

// With a folder answers outlive the process, and others connect by URL.
func TestListeningWithAFolder(t *testing.T) {
	o := embedded.Options{Dir: t.TempDir(), Listen: true}
	s, stop := start(t, o)
	for _, at := range []string{s.NATSURL(), s.RedisURL()} {
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		if host, _, err := net.SplitHostPort(u.Host); err != nil || host != "127.0.0.1" {
			t.Errorf("listens at %s", at)
		}
	}
	c, err := client.Connect(s.NATSURL(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first := ask(t, c, "kept")
	c.Close()
	stop()

	s, stop = start(t, o)
	defer stop()
	a, err := inProcess(t, s).Answer(t.Context(), "kept")
	if err != nil || *a.Results[0].LogZ != *first.Results[0].LogZ {
		t.Errorf("after a restart: %v %v", a, err)
	}
	ask(t, inProcess(t, s), "new")
}

// A job submitted before a restart is answered after it.
func TestUnfinishedJobSurvivesRestart(t *testing.T) {
	o := embedded.Options{Dir: t.TempDir()}
	s, err := embedded.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c := inProcess(t, s)
	if _, err := c.Submit(t.Context(), wire.Request{Job: "waiting", Text: model, Queries: []query.Query{{}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, stop := start(t, o)
	defer stop()
	ask(t, inProcess(t, s), "waiting")
}

func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	if s, err := embedded.Start(t.Context(), embedded.Options{Listen: true, RedisPort: port}); err == nil {
		s.Close()
		t.Error("Redis on a taken port: no error")
	}
	if s, err := embedded.Start(t.Context(), embedded.Options{Listen: true, Port: port}); err == nil {
		s.Close()
		t.Error("NATS on a taken port: no error")
	}
}

// A port that other machines reach needs a token, or Insecure. Redis is on 127.0.0.1 in any case.
func TestOpenToOthers(t *testing.T) {
	for _, host := range []string{"0.0.0.0", "::", "192.0.2.1", "a.host"} {
		s, err := embedded.Start(t.Context(), embedded.Options{Listen: true, Host: host})
		if err == nil {
			s.Close()
		}
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), host) {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, o := range []embedded.Options{
		{Listen: true, Host: "0.0.0.0", Token: "s3cret"},
		{Listen: true, Host: "0.0.0.0", Insecure: true},
		{Listen: true, Host: "localhost"},
	} {
		s, stop := start(t, o)
		if !strings.HasPrefix(s.RedisURL(), "redis://127.0.0.1:") {
			t.Errorf("%+v: Redis at %s", o, s.RedisURL())
		}
		ask(t, inProcess(t, s), "job")
		stranger, err := client.Connect(s.NATSURL(), client.Options{})
		if (err != nil) != (o.Token != "") {
			t.Errorf("%+v: a client without a token: %v", o, err)
		}
		if err == nil {
			stranger.Close()
		}
		if o.Token != "" {
			known, err := client.Connect(s.NATSURL(), client.Options{}, nats.Token(o.Token))
			if err != nil {
				t.Fatal(err)
			}
			ask(t, known, "another")
			known.Close()
		}
		stop()
	}
}

// TestEntriesExpire: what the embedded Redis holds with a time to live is gone after it, and the rest is not.
func TestEntriesExpire(t *testing.T) {
	s, err := embedded.Start(t.Context(), embedded.Options{Listen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	options, err := redis.ParseURL(s.RedisURL())
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(options)
	defer c.Close()
	if err := errors.Join(
		c.Set(t.Context(), "short", 1, 200*time.Millisecond).Err(), c.Set(t.Context(), "long", 1, time.Hour).Err(),
	); err != nil {
		t.Fatal(err)
	}
	for c.Exists(t.Context(), "short").Val() == 1 {
		time.Sleep(10 * time.Millisecond)
	}
	if c.Exists(t.Context(), "long").Val() != 1 {
		t.Error("an entry that lives for an hour is gone")
	}
}
