package streams_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/nats-io/nats.go/jetstream"
)

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
