package pull_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/pull"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// An intake with AtLeast takes messages while so many of a lane wait, and leaves the rest to others, at whose requests it never queues. It
// ends where the consumers lose their group; one without goes on.
func TestOverflow(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	s, err := embedded.Start(ctx, embedded.Options{NoRedis: true, Listen: true, Setup: pipeline.Config{Overflow: new(true)}})
	must(t, err)
	defer s.Close()
	nc, err := s.Connect("test")
	must(t, err)
	b, err := bus.New(nc, "")
	must(t, err)

	const least, lane = 4, bus.ConsumerTask + "-3"
	var asked [2]atomic.Int64 // requests of lane, of all workers and of those with a least number
	_, err = nc.Subscribe("$JS.API.CONSUMER.MSG.NEXT."+bus.StreamTask+"."+lane, func(m *nats.Msg) {
		var q struct {
			Group string
			Least int  `json:"min_pending"`
			Looks bool `json:"no_wait"`
		}
		if err := json.Unmarshal(m.Data, &q); err != nil || q.Group == "" || q.Least > 0 && !q.Looks {
			t.Errorf("%s: %v", m.Data, err)
		}
		asked[0].Add(1)
		if q.Least == least {
			asked[1].Add(1)
		}
	})
	must(t, err)
	sent := 0
	send := func(n int) {
		for range n {
			_, err := b.Once(ctx, bus.StreamTask, msg(message.TaskSubject(3, "job", 100, sent), fmt.Sprint(sent)))
			must(t, err)
			sent++
		}
	}
	var done [2]atomic.Int64
	var seen sync.Map
	run := func(kind, least int) <-chan error {
		ended := make(chan error, 1)
		go func() {
			ended <- pull.Run(ctx, b, pull.Intake{
				Stream: bus.StreamTask, Name: bus.ConsumerTask, Consumers: []string{lane}, Prefetch: 1, Slots: 2, AtLeast: least,
				Work: func(d *bus.Delivered, _ func()) bool {
					if _, again := seen.LoadOrStore(d.Sequence, true); again {
						t.Errorf("message %d was worked on twice", d.Sequence)
					}
					d.Done()
					done[kind].Add(1)
					return true
				},
				Heartbeat: time.Second, Hard: ctx, Log: slog.New(slog.DiscardHandler),
			})
		}()
		return ended
	}
	info := func() *jetstream.ConsumerInfo {
		c, err := b.JS.Consumer(ctx, bus.StreamTask, lane)
		must(t, err)
		return c.CachedInfo()
	}
	// settled waits until the second group has asked twice more, and found nothing.
	settled := func(want int64) {
		t.Helper()
		until(ctx, t, func() bool { return done[1].Load() >= want })
		before := asked[1].Load()
		until(ctx, t, func() bool { return asked[1].Load() >= before+2 })
		if got, is := done[1].Load(), info(); got != want || is.NumPending != least-1 || is.NumAckPending != 0 {
			t.Errorf("%d taken, %d wait, %d in work; want %d taken and %d waiting", got, is.NumPending, is.NumAckPending, want, least-1)
		}
	}

	send(least - 1)
	second := run(1, least)
	settled(0)
	send(1)
	settled(1)
	send(3 * least)
	settled(1 + 3*least)

	run(0, 0)
	until(ctx, t, func() bool { return done[0].Load() == least-1 })
	send(20 * least)
	until(ctx, t, func() bool { return done[0].Load()+done[1].Load() == int64(sent) })

	created := info().Created
	must(t, pipeline.Setup(ctx, nc, pipeline.Config{InMemory: true, Overflow: new(false)}))
	if err := <-second; !errors.Is(err, bus.ErrGone) {
		t.Errorf("without a group the second group ends with %v", err)
	}
	for _, on := range []bool{false, true, false} {
		must(t, pipeline.Setup(ctx, nc, pipeline.Config{InMemory: true, Overflow: &on}))
		send(5)
		until(ctx, t, func() bool { return done[0].Load()+done[1].Load() == int64(sent) })
	}
	if is := info(); !is.Created.Equal(created) || is.NumPending != 0 {
		t.Errorf("the consumer is another one, or has messages left: %+v", is)
	}
}
