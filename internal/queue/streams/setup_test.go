package streams_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/memlog"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestSetupOfABusyCluster: a leader that knows of no room for so many seconds, of whatever size, is waited for, and the streams have the
// room that a server has at once; one that knows of none for a minute is refused. So it is with a server that removes its folder.
func TestSetupOfABusyCluster(t *testing.T) {
	const (
		room   = `{"error":{"code":400,"err_code":10005,"description":"no suitable peers for placement, insufficient storage"}}`
		server = `{"error":{"code":400,"err_code":10005,"description":"no suitable peers for placement, peer offline"}}`
		folder = `{"error":{"code":500,"err_code":10049,"description":"error creating store for stream"}}`
	)
	for _, c := range []struct {
		says  string
		after time.Duration
		given int64
		fails bool
	}{
		{room, 0, 0, false}, {room, 4 * time.Second, 0, false}, {room, 12 * time.Second, 0, false}, {room, 12 * time.Second, 1 << 30, false},
		{room, time.Minute, 0, true}, {server, 12 * time.Second, 0, false}, {server, 12 * time.Second, 1 << 30, false},
		{server, time.Minute, 0, true}, {folder, time.Second, 0, false}, {folder, time.Minute, 0, true},
	} {
		for range 2 { // the client library keeps timers in a pool, which must not have one of another clock
			runtime.GC()
		}
		synctest.Test(t, func(t *testing.T) {
			sides := inMemory(t)
			began := time.Now()
			between(t, sides[1], func(m *nats.Msg) (reply string, err error) {
				if strings.Contains(m.Subject, ".STREAM.CREATE.") && time.Since(began) < c.after {
					return "", m.Respond([]byte(c.says))
				}
				return m.Reply, nil
			})
			var log bytes.Buffer
			err := streams.Setup(t.Context(), sides[0], streams.Config{
				API: "busy", InMemory: true, MaxBytes: c.given, Log: slog.New(slog.NewTextHandler(&log, nil)),
			})
			if says := c.after > 0; strings.Contains(log.String(), c.says[strings.LastIndex(c.says, ":")+2:len(c.says)-3]) != says {
				t.Errorf("%+v: it says %q", c, log.String())
			}
			if lines := strings.Count(log.String(), "\n"); lines > 12 {
				t.Errorf("%+v: it says %d times what it waits for", c, lines)
			}
			if c.fails != (err != nil) {
				t.Fatalf("%+v: %v after %v", c, err, time.Since(began))
			}
			js, err := jetstream.New(sides[1])
			if err != nil {
				t.Fatal(err)
			}
			var all int64
			for s := range js.ListStreams(t.Context()).Info() {
				all += s.Config.MaxBytes
			}
			if want := cmp.Or(c.given, 4<<30); !c.fails && (all > want || all < want/2) {
				t.Errorf("%+v: streams of %d MiB", c, all>>20)
			}
		})
	}
}

// dialer connects to a server in memory as to one elsewhere, which may lose answers.
type dialer struct{ *memlog.Server }

func (d dialer) Dial(string, string) (net.Conn, error) { return d.InProcessConn() }

// inMemory returns two connections to a server in memory, which end with the test.
func inMemory(t *testing.T) (sides [2]*nats.Conn) {
	t.Helper()
	s := memlog.New(memlog.Options{MaxMemory: 8 << 30})
	for k := range sides {
		nc, err := nats.Connect("nats://127.0.0.1", nats.SetCustomDialer(dialer{s}), nats.NoReconnect())
		if err != nil {
			t.Fatal(err)
		}
		sides[k] = nc
	}
	t.Cleanup(func() {
		sides[0].Close()
		sides[1].Close()
		s.Close()
	})
	return sides
}

// between passes requests under the API prefix busy on to the server. pass says where the reply goes; "": the request is not passed on.
func between(t *testing.T, nc *nats.Conn, pass func(m *nats.Msg) (reply string, err error)) {
	t.Helper()
	_, err := nc.Subscribe("busy.>", func(m *nats.Msg) {
		reply, err := pass(m)
		if err == nil && reply != "" {
			err = nc.PublishRequest(jetstream.DefaultAPIPrefix+strings.TrimPrefix(m.Subject, "busy."), reply, m.Data)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestLostAnswers: setup ends soon whichever of its requests has no answer, also under a context of an hour, and where consumers are moved
// nothing acknowledged is delivered again.
func TestLostAnswers(t *testing.T) {
	requests := math.MaxInt
	for lost := -1; lost < requests; lost++ { // -1: none
		for range 2 { // see TestSetupOfABusyCluster
			runtime.GC()
		}
		synctest.Test(t, func(t *testing.T) {
			sides := inMemory(t)
			count := 0
			between(t, sides[1], func(m *nats.Msg) (string, error) {
				if count++; count-1 == lost {
					return "nobody", nil
				}
				return m.Reply, nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatalf("the answer of request %d is lost: %v", lost, err)
				}
			}
			began := time.Now()
			c := streams.Config{API: "busy", InMemory: true, OneConsumer: true}
			must(streams.Setup(ctx, sides[0], c))
			b, err := bus.New(sides[1], bus.Options{})
			must(err)
			for _, job := range []string{"first", "second"} {
				must(b.Log.Put(ctx, &nats.Msg{Subject: wire.ModelSubject(3, job), Data: []byte("a model")}))
			}
			deliver := func(want string) {
				t.Helper()
				models, err := b.Conn.JS.Consumer(ctx, bus.StreamModel, streams.Models.Name)
				must(err)
				m, err := models.Next(jetstream.FetchMaxWait(time.Second))
				must(err)
				if m.Subject() != wire.ModelSubject(3, want) {
					t.Errorf("the answer of request %d is lost: %s is delivered, want %s", lost, m.Subject(), want)
				}
				must(m.DoubleAck(ctx))
			}
			models, err := b.Conn.JS.Consumer(ctx, bus.StreamModel, streams.Models.Name)
			must(err)
			inMemory := models.CachedInfo().Config
			inMemory.MemoryStorage = true // it is moved
			must(b.Conn.JS.DeleteConsumer(ctx, bus.StreamModel, inMemory.Durable))
			_, err = b.Conn.JS.CreateConsumer(ctx, bus.StreamModel, inMemory)
			must(err)
			deliver("first")
			must(streams.Setup(ctx, sides[0], c))
			deliver("second")
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("the answer of request %d is lost: %v", lost, took)
			}
			requests = min(requests, count)
		})
	}
	if requests < 50 {
		t.Errorf("%d requests", requests)
	}
}

// Setup goes on where a worker makes a consumer between setup's look at it and its creation, with
// another start.
func TestSetupWhileOthersMend(t *testing.T) {
	b := connected(t)
	stream, err := b.Conn.Stream(t.Context(), bus.StreamPartial)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(name string) (*jetstream.ConsumerConfig, error) {
		c, err := stream.Consumer(t.Context(), name)
		if err != nil {
			return nil, err
		}
		return &c.CachedInfo().Config, nil
	}

	var mu sync.Mutex // setup makes sixteen at a time
	mended := 0
	js := meddled{b.Conn.JS, func(name string) {
		mu.Lock()
		defer mu.Unlock()
		if mended == 3 {
			return
		}
		mended++
		one := streams.Partials.Consumers(streams.Config{OneConsumer: true})
		for _, cc := range append(one, streams.Partials.Consumers(streams.Config{})...) {
			if cc.Durable != name {
				continue
			}
			cc.DeliverPolicy = jetstream.DeliverByStartSequencePolicy
			cc.OptStartSeq = 7
			cc.MaxAckPending = 7
			if _, err := stream.CreateConsumer(t.Context(), cc); err != nil {
				t.Errorf("the other one: %v", err)
			}
		}
	}}
	// the one; then sixteen, two made elsewhere
	for i, c := range []streams.Config{{OneConsumer: true}, {}} {
		if err := streams.SetupConsumers(
			t.Context(), js, streams.Partials, c.WithDefaults(),
		); err != nil {
			t.Fatalf("setup %d: %v", i, err)
		}
	}
	if mended != 3 {
		t.Errorf("%d consumers were made meanwhile, want 3", mended)
	}
	late := 0
	for _, name := range streams.Partials.ConsumerNames(streams.AllLanes()) {
		cc, err := begin(name)
		if err != nil {
			t.Fatalf("consumer %s: %v", name, err)
		}
		if cc.OptStartSeq == 7 {
			late++
		}
		if cc.MaxAckPending < 1000 {
			t.Errorf(
				"consumer %s was not brought up to date: %d may be pending", name, cc.MaxAckPending,
			)
		}
	}
	if _, err := begin(streams.Partials.Name); !errors.Is(err, jetstream.ErrConsumerNotFound) {
		t.Errorf("the consumer of the other split: %v", err)
	}
	if late != 2 {
		t.Errorf("%d consumers begin where the others let them begin, want 2", late)
	}
}

// meddled is a JetStream where something happens before a consumer is made.
type meddled struct {
	jetstream.JetStream
	before func(name string)
}

func (m meddled) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	s, err := m.JetStream.Stream(ctx, name)
	return meddledStream{s, m.before}, err
}

type meddledStream struct {
	jetstream.Stream
	before func(name string)
}

func (m meddledStream) CreateConsumer(ctx context.Context, c jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	m.before(c.Durable)
	return m.Stream.CreateConsumer(ctx, c)
}
