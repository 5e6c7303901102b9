package main

import (
	"testing"

	"github.com/basetensor/basetensor/pkg/pipeline"

	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/nats-io/nats.go/jetstream"
)

// TestInferStartsNineConsumers: setting up takes most of the time of a small model, and one consumer
// for each kind of messages is enough for one job.
func TestInferStartsNineConsumers(t *testing.T) {
	s, err := (&placeFlags{}).startStack(t.Context(), telemetry.Logger(t.Output(), "error", "text"), nil, pipeline.Streams{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	nc, err := s.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	consumers := 0
	streams := js.ListStreams(t.Context())
	for is := range streams.Info() {
		consumers += is.State.Consumers
	}
	if err := streams.Err(); err != nil || consumers != 9 {
		t.Errorf("%d consumers, want 9; %v", consumers, err)
	}
}
