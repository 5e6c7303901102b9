package streams_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// connected is a connection to an embedded server with all streams, which ends with the test.
func connected(t *testing.T) *bus.Bus {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Options{NoRedis: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	nc, err := s.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.New(nc, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Where the acknowledgement floor of the sweeper stands still, answered jobs above it are passed up
// to the first without answer, and only those that should have been swept.
func TestStandingFloorIsPassed(t *testing.T) {
	b := connected(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	const answered = 5
	for i := range answered + 1 {
		job := fmt.Sprintf("job-%d", i)
		_, err := b.Log.PutOnce(
			t.Context(), bus.StreamModel,
			&nats.Msg{Subject: wire.ModelSubject(3, job), Data: []byte("a model")},
		)
		must(err)
		if i < answered {
			_, err := b.Log.PutOnce(
				t.Context(), bus.StreamAnswer,
				&nats.Msg{Subject: wire.AnswerSubject(job), Data: []byte("an answer")},
			)
			must(err)
		}
	}

	for _, c := range []struct {
		sweepAfter  time.Duration
		floor, want uint64
	}{
		{time.Nanosecond, 0, answered},
		{time.Nanosecond, 3, answered},
		{time.Hour, 0, 0},
		{time.Hour, 3, 3},
		{-1, 0, 0},
	} {
		k := &streams.Keeper{Bus: b, SweepAfter: c.sweepAfter}
		if got, err := k.Answered(t.Context(), c.floor); err != nil || got != c.want {
			t.Errorf(
				"swept after %v, floor %d: answered up to %d, want %d: %v", c.sweepAfter, c.floor,
				got, c.want, err,
			)
		}
	}
}

// The answered models that a keeper has found say nothing about a recreated stream, whose sequences
// begin again: they would be purged without answer.
func TestWatermarkOfAStreamMadeAnew(t *testing.T) {
	b := connected(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	store := func(job string, answered bool) {
		model := &nats.Msg{Subject: wire.ModelSubject(3, job), Data: []byte("a model")}
		_, err := b.Log.PutOnce(t.Context(), bus.StreamModel, model)
		must(err)
		if answered {
			answer := &nats.Msg{Subject: wire.AnswerSubject(job), Data: []byte("an answer")}
			_, err := b.Log.PutOnce(t.Context(), bus.StreamAnswer, answer)
			must(err)
		}
	}

	k := &streams.Keeper{Bus: b, SweepAfter: time.Nanosecond}
	for i := range 3 {
		store(fmt.Sprintf("before-%d", i), true)
	}
	store("before-last", false)
	if got, err := k.Answered(t.Context(), 0); err != nil || got != 3 {
		t.Fatalf("answered up to %d, want 3: %v", got, err)
	}

	must(b.Conn.JS.DeleteStream(t.Context(), bus.StreamModel))
	must(streams.NewMender(b, slog.New(slog.DiscardHandler), streams.Models, streams.Sweeps).Mend(t.Context()))
	for i := range 5 {
		store(fmt.Sprintf("after-%d", i), i == 0)
	}
	if got, err := k.Answered(t.Context(), 0); err != nil || got != 1 {
		t.Errorf("after the stream was made anew: answered up to %d, want 1: %v", got, err)
	}
}

// Headers by which a model says that it is another one, answered and far ahead, move no floor.
func TestForgedHeadersMoveNoFloor(t *testing.T) {
	b := connected(t)
	store := func(stream string, m *nats.Msg) {
		t.Helper()
		if _, err := b.Log.PutOnce(t.Context(), stream, m); err != nil {
			t.Fatal(err)
		}
	}
	answered := wire.ModelSubject(3, "answered")
	store(bus.StreamModel, &nats.Msg{Subject: answered, Data: []byte("a model")})
	store(bus.StreamAnswer, &nats.Msg{Subject: wire.AnswerSubject("answered"), Data: []byte("an answer")})
	store(bus.StreamModel, &nats.Msg{
		Subject: wire.ModelSubject(3, "forged"), Data: []byte("a model"),
		Header: nats.Header{
			"Nats-Subject": {answered}, "Nats-Sequence": {"4000000"}, "Nats-Time-Stamp": {"2001-01-01T00:00:00Z"},
		},
	})
	store(bus.StreamModel, &nats.Msg{Subject: wire.ModelSubject(3, "other"), Data: []byte("a model")})

	k := &streams.Keeper{Bus: b, SweepAfter: time.Nanosecond}
	if got, err := k.Answered(t.Context(), 0); err != nil || got != 1 {
		t.Errorf("answered up to %d, want 1: %v", got, err)
	}
}
