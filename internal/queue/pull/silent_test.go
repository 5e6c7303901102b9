package pull_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/pull"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/nats-io/nats.go"
)

// silentDialer connects like net.Dialer. Once silent, its connections stay open, and nothing passes.
type silentDialer struct{ silent atomic.Bool }

func (d *silentDialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return silentConn{c, d}, err
}

type silentConn struct {
	net.Conn
	d *silentDialer
}

func (c silentConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.d.silent.Load() {
			return n, err
		}
	}
}

func (c silentConn) Write(b []byte) (int, error) {
	if c.d.silent.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// A worker that has fallen silent, and has requests open, takes a message once: when that is delivered
// again its requests are gone.
func TestASilentWorkerTakesAMessageOnce(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	s, err := embedded.Start(ctx, embedded.Options{NoRedis: true, Listen: true})
	must(t, err)
	defer s.Close()

	const sent = 4
	var running sync.WaitGroup
	defer running.Wait()
	worker := func(ctx context.Context, nc *nats.Conn, work func(*bus.Delivered)) {
		b, err := bus.New(nc, bus.Options{})
		must(t, err)
		running.Go(func() {
			if err := pull.Run(ctx, b.Conn, pull.Intake{
				Stream:    bus.StreamTask,
				Name:      bus.ConsumerTask,
				Consumers: []string{bus.ConsumerTask + "-3"},
				Prefetch:  4 * sent,
				Slots:     1,
				Work: func(d *bus.Delivered, _ func()) bool {
					work(d)
					return true
				},
				Heartbeat:  time.Second,
				RequestCtx: ctx,
				Log:        slog.New(slog.DiscardHandler),
			}); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}

	dialer := &silentDialer{}
	quiet, err := nats.Connect(s.NATSURL(), nats.SetCustomDialer(dialer), nats.NoReconnect())
	must(t, err)
	defer quiet.Close()
	ended, end := context.WithCancel(ctx)
	defer end()
	worker(ended, quiet, func(*bus.Delivered) { t.Error("the silent worker was given a message") })

	nc, err := s.Connect("test")
	must(t, err)
	b, err := bus.New(nc, bus.Options{})
	must(t, err)
	waiting := func(pending int) bool {
		c, err := b.Conn.JS.Consumer(ctx, bus.StreamTask, bus.ConsumerTask+"-3")
		must(t, err)
		return c.CachedInfo().NumWaiting > 0 && c.CachedInfo().NumAckPending == pending
	}
	until(ctx, t, func() bool { return waiting(0) })
	dialer.silent.Store(true)
	for k := range sent {
		_, err := b.Log.PutOnce(ctx, bus.StreamTask, msg(message.TaskSubject(3, "job", sent, k), fmt.Sprint(k)))
		must(t, err)
	}
	until(ctx, t, func() bool { return waiting(sent) })

	var done atomic.Int64
	worker(ended, nc, func(d *bus.Delivered) {
		if d.Attempt > 2 {
			t.Errorf("message %d was delivered %d times", d.Sequence, d.Attempt)
		}
		d.Acknowledge()
		done.Add(1)
	})
	until(ctx, t, func() bool { return done.Load() == sent })
	end()
}

// A consumer that does not answer, as one without a leader, is asked again sooner than one that
// does.
func TestWhoDoesNotAnswerIsAskedMoreOften(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	s, err := embedded.Start(ctx, embedded.Options{NoRedis: true, Listen: true})
	must(t, err)
	defer s.Close()
	nc, err := nats.Connect(s.NATSURL()) // from outside: a server in the process is waited for longer
	must(t, err)
	defer nc.Close()
	b, err := bus.New(nc, bus.Options{})
	must(t, err)

	asked := make(chan time.Duration, 64)
	_, err = nc.Subscribe("$JS.API.CONSUMER.MSG.NEXT.NOBODY.nobody", func(m *nats.Msg) {
		var request struct{ Expires time.Duration }
		if err := json.Unmarshal(m.Data, &request); err != nil {
			t.Error(err)
		}
		asked <- request.Expires
	})
	must(t, err)
	var running sync.WaitGroup
	defer running.Wait()
	ended, end := context.WithCancel(ctx)
	defer end()
	running.Go(func() {
		must(t, pull.Run(ended, b.Conn, pull.Intake{
			Stream: "NOBODY", Name: "nobody", Consumers: []string{"nobody"}, Prefetch: 4, Slots: 1, Heartbeat: time.Second, RequestCtx: ctx,
			Log: slog.New(slog.DiscardHandler),
		}))
	})
	first := <-asked
	for {
		select {
		case next := <-asked:
			if 4*next <= first {
				return
			}
		case <-ctx.Done():
			t.Fatalf("it is asked for %v each time", first)
		}
	}
}

// until waits for a condition.
func until(ctx context.Context, t *testing.T, f func() bool) {
	t.Helper()
	for !f() {
		if ctx.Err() != nil {
			t.Fatal("not in time")
		}
		time.Sleep(10 * time.Millisecond)
	}
}
