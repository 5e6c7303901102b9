package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// seen is a writer that ends a command when it has printed a text.
type seen struct {
	mu   sync.Mutex
	all  bytes.Buffer
	text string
	end  func()
}

func (s *seen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Write(p)
	if strings.Contains(s.all.String(), s.text) {
		s.end()
	}
	return len(p), nil
}

// Commands do not wait in silence: that nobody works, that a job is unknown, that nothing is set up,
// is said.
func TestNoSilentWait(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := embedded.Start(ctx, embedded.Options{
		Listen:  true,
		Host:    "127.0.0.1",
		NoRedis: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	model := write(t, t.TempDir(), "pair.uai", pair)
	says := func(text string, args ...string) {
		t.Helper()
		inner, end := context.WithCancel(ctx)
		defer end()
		var out bytes.Buffer
		w := &seen{text: text, end: end}
		run(inner, append(args, "--nats", s.NATSURL()), &out, w)
		if !strings.Contains(w.all.String(), text) {
			t.Errorf("btn %v says\n%s\nnot %q", args, w.all.String(), text)
		}
	}
	says("no reparam-worker is running", "infer", model)
	says("unknown", "watch", "nobody")
	if code, _, said := command(t, "submit", model, "--job", "monday", "--nats", s.NATSURL()); code != 0 {
		t.Fatal(said)
	}
	says("btn: monday: no answer yet\n", "watch", "monday")
	nc, err := s.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	unset(t, nc)
	says("btn setup", "watch", "nobody")
	says("btn setup", "infer", model)
}

// unset removes all streams, as if nobody had run btn setup.
func unset(t *testing.T, nc *nats.Conn) {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	names := js.StreamNames(t.Context())
	for name := range names.Name() {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
}
