package streams_test

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/memlog"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestSetupOfABusyCluster: a leader that knows of no room for so many seconds, of whatever size, is waited for, and the streams have the
// room that a server has at once; one that knows of none for a minute is refused.
func TestSetupOfABusyCluster(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		given int64
		fails bool
	}{{0, 0, false}, {4 * time.Second, 0, false}, {12 * time.Second, 0, false}, {12 * time.Second, 1 << 30, false}, {time.Minute, 0, true}} {
		for range 2 { // the client library keeps timers in a pool, which must not have one of another clock
			runtime.GC()
		}
		synctest.Test(t, func(t *testing.T) {
			s := memlog.New(memlog.Options{MaxMemory: 8 << 30})
			defer s.Close()
			var sides [2]*nats.Conn
			for k := range sides {
				nc, err := nats.Connect("", nats.InProcessServer(s))
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				sides[k] = nc
			}
			began := time.Now()
			_, err := sides[1].Subscribe("busy.>", func(m *nats.Msg) {
				subject := jetstream.DefaultAPIPrefix + strings.TrimPrefix(m.Subject, "busy.")
				if strings.Contains(subject, ".STREAM.CREATE.") && time.Since(began) < c.after {
					m.Respond([]byte(`{"error":{"code":400,"err_code":10005,` +
						`"description":"no suitable peers for placement, insufficient storage"}}`))
					return
				}
				if err := sides[1].PublishRequest(subject, m.Reply, m.Data); err != nil {
					t.Error(err)
				}
			})
			if err == nil {
				err = sides[1].Flush()
			}
			if err != nil {
				t.Fatal(err)
			}
			err = streams.Setup(t.Context(), sides[0], streams.Config{API: "busy", InMemory: true, MaxBytes: c.given})
			if c.fails != (err != nil) {
				t.Fatalf("%+v: %v after %v", c, err, time.Since(began))
			}
			js, err := jetstream.New(sides[1])
			if err != nil {
				t.Fatal(err)
			}
			var bytes int64
			for s := range js.ListStreams(t.Context()).Info() {
				bytes += s.Config.MaxBytes
			}
			if want := cmp.Or(c.given, 4<<30); !c.fails && (bytes > want || bytes < want/2) {
				t.Errorf("%+v: streams of %d MiB", c, bytes>>20)
			}
		})
	}
}

// Setup goes on where a worker makes a consumer between setup's look at it and its creation, with
// another start.
func TestSetupWhileOthersMend(t *testing.T) {
	b := connected(t)
	stream, err := b.Stream(t.Context(), bus.StreamPartial)
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
	js := meddled{b.JS, func(name string) {
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
