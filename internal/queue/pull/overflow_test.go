package pull_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/memlog"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/pull"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// An intake with AtLeast takes messages while so many of a lane wait, those included that others have put aside, and leaves the rest to
// them. Once nobody else asks it takes all, which is waited for by a server's clock of its own, and every night by the real one.
func TestOverflow(t *testing.T) {
	t.Parallel()
	ctx, b := open(t, embedded.Options{Listen: true})
	overflow(ctx, t, b, nightly.On())
}

func TestOverflowInMemory(t *testing.T) {
	empty := func() { // the client library keeps timers in a pool, which must not have one of another clock
		runtime.GC()
		runtime.GC()
	}
	empty()
	defer empty()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
		defer stop()
		s := memlog.New(memlog.Options{MaxMemory: 8 << 30})
		defer s.Close()
		nc, err := nats.Connect("nats://127.0.0.1", nats.InProcessServer(s), nats.NoReconnect())
		must(t, err)
		defer nc.Close()
		must(t, streams.Setup(ctx, nc, streams.Config{InMemory: true}))
		b, err := bus.New(nc, "")
		must(t, err)
		overflow(ctx, t, b, true)
	})
}

// overflow runs both intakes on a server; alone: until the one with AtLeast has nobody beside it.
func overflow(ctx context.Context, t *testing.T, b *bus.Bus, alone bool) {
	const least, lane = 4, bus.ConsumerTask + "-3"
	sent := 0
	send := func(n int) {
		for range n {
			_, err := b.Once(ctx, bus.StreamTask, msg(message.TaskSubject(3, "job", 100, sent), fmt.Sprint(sent)))
			must(t, err)
			sent++
		}
	}
	var begun, done [2]atomic.Int64
	var seen sync.Map
	gate := make(chan struct{}) // the first group works when it is closed
	run := func(kind, least int) (end func()) {
		ctx, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			ended <- pull.Run(ctx, b, pull.Intake{
				Stream: bus.StreamTask, Name: bus.ConsumerTask, Consumers: []string{lane}, Prefetch: 1, Slots: 2, AtLeast: least,
				Heavy: func(*bus.Delivered) bool { return true },
				Work: func(d *bus.Delivered, _ func()) bool {
					if _, again := seen.LoadOrStore(d.Sequence, true); again {
						t.Errorf("message %d was worked on twice", d.Sequence)
					}
					begun[kind].Add(1)
					for open := kind == 1; !open; {
						select {
						case <-gate:
							open = true
						case <-time.After(100 * time.Millisecond):
							d.Working()
						}
					}
					d.Done()
					done[kind].Add(1)
					return true
				},
				Heartbeat: time.Second, Hard: ctx, Log: slog.New(slog.DiscardHandler),
			})
		}()
		return func() { stop(); must(t, <-ended) }
	}
	info := func() *jetstream.ConsumerInfo {
		c, err := b.JS.Consumer(ctx, bus.StreamTask, lane)
		must(t, err)
		return c.CachedInfo()
	}

	// The first of them all is in work, and all others are put aside.
	first := run(0, 0)
	send(least)
	until(ctx, t, func() bool { return begun[0].Load() == 1 && info().NumPending == 0 })
	second := run(1, least+1)
	send(3 * least)
	until(ctx, t, func() bool { return done[1].Load() > 0 })
	there := func() int { is := info(); return int(is.NumPending) + is.NumAckPending }
	until(ctx, t, func() bool { return there() <= least+1 }) // the first is in work
	time.Sleep(3 * time.Second)
	if n := there(); n < least {
		t.Errorf("%d are left, want %d", n, least)
	}
	close(gate)
	until(ctx, t, func() bool { return done[0].Load()+done[1].Load() == int64(sent) })

	first()
	if !alone {
		second()
		return
	}
	send(least - 1)
	until(ctx, t, func() bool { return done[0].Load()+done[1].Load() == int64(sent) })
	second()
	if n := there(); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}
