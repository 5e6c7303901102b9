package pull_test

// Why this package takes messages itself: the behaviour of the client library's iterator where a
// write returns late.

import (
	"bytes"
	"context"
	"errors"
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
	"github.com/nats-io/nats.go/jetstream"
)

// lateDialer connects like net.Dialer. After it has sent a request for messages, a write of its
// connections returns late, as it does on a machine that is busy: the goroutine that wrote has lost
// its processor.
type lateDialer struct{ late time.Duration }

func (d lateDialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return lateConn{c, d.late}, err
}

type lateConn struct {
	net.Conn
	late time.Duration
}

func (c lateConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if bytes.Contains(b, []byte("$JS.API.CONSUMER.MSG.NEXT.")) {
		time.Sleep(c.late)
	}
	return n, err
}

// lateBus is a bus on a server of its own whose writes return late, and a stream with n tasks in
// lane 3.
func lateBus(t *testing.T, n int) (context.Context, *bus.Bus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	s, err := embedded.Start(ctx, embedded.Options{NoRedis: true, Listen: true})
	must(t, err)
	// every message is a write
	nc, err := nats.Connect(
		s.NATSURL(), nats.SetCustomDialer(lateDialer{20 * time.Millisecond}),
		nats.WriteBufferSize(1),
	)
	must(t, err)
	t.Cleanup(func() { nc.Close(); s.Close(); cancel() })
	b, err := bus.New(nc, bus.Options{})
	must(t, err)
	for k := range n {
		_, err := b.Log.PutOnce(
			ctx, bus.StreamTask, msg(message.TaskSubject(3, "job", n, k), fmt.Sprint(k)),
		)
		must(t, err)
	}
	return ctx, b
}

// stored is the number of messages that wait; patience is how long the library may take for one.
// Its iterator asks again after 30 s.
const (
	stored   = 20
	patience = 3 * time.Second
)

// TestAnIteratorMayForgetToAsk: the library's iterator is given a message while the goroutine that
// asked for it has not returned, takes that for a request still being sent, and asks for no other.
// When this test fails the library has mended it: then this package may go, if the iterator also
// hands back at once the messages that a worker without a free slot has asked for, and serves many
// consumers in turn.
func TestAnIteratorMayForgetToAsk(t *testing.T) {
	t.Parallel()
	ctx, b := lateBus(t, stored)
	c, err := b.Conn.JS.Consumer(ctx, bus.StreamTask, bus.ConsumerTask+"-3")
	must(t, err)
	it, err := c.Messages(jetstream.PullMaxMessages(1))
	must(t, err)
	defer it.Stop()
	got := 0
	for ; got < stored; got++ {
		if _, err = it.Next(jetstream.NextMaxWait(patience)); err != nil {
			break
		}
	}
	if got == stored || !errors.Is(err, nats.ErrTimeout) {
		t.Errorf(
			"%d of %d messages came, %v: the library's iterator asks for every message", got,
			stored, err,
		)
	}
	t.Logf("%d of %d messages came", got, stored)
}

// TestEveryMessageArrives where an iterator forgets to ask.
func TestEveryMessageArrives(t *testing.T) {
	t.Parallel()
	ctx, b := lateBus(t, stored)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var got atomic.Int64
	var none sync.Map
	err := pull.Run(ctx, b.Conn, pull.Intake{
		Stream:    bus.StreamTask,
		Name:      bus.ConsumerTask,
		Consumers: []string{bus.ConsumerTask + "-3"},
		Prefetch:  1,
		Slots:     1,
		Work: func(d *bus.Delivered, _ func()) bool {
			if _, again := none.LoadOrStore(d.Sequence, true); again {
				t.Errorf("message %d came twice", d.Sequence)
			}
			d.Acknowledge()
			if got.Add(1) == stored {
				stop()
			}
			return true
		},
		Heartbeat:  time.Second,
		RequestCtx: ctx,
		Log:        slog.New(slog.DiscardHandler),
	})
	if err != nil || got.Load() != stored {
		t.Errorf("%d of %d messages came, %v", got.Load(), stored, err)
	}
}
