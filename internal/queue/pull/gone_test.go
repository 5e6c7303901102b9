package pull_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/pull"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/nats-io/nats.go"
)

// unheardDialer connects like net.Dialer. Questions about consumers get no answer.
type unheardDialer struct{}

func (unheardDialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return unheardConn{c}, err
}

type unheardConn struct{ net.Conn }

func (c unheardConn) Write(b []byte) (int, error) {
	if _, err := c.Conn.Write(bytes.ReplaceAll(b, []byte("$JS.API.CONSUMER.INFO."), []byte("$NO.API.CONSUMER.INFO."))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// While lanes have no leader, so that nobody says whether their consumers are there, the messages of another are worked on.
func TestLanesWithoutALeaderHoldUpNoOther(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	s, err := embedded.Start(ctx, embedded.Options{NoRedis: true, Listen: true})
	must(t, err)
	defer s.Close()
	nc, err := s.Connect("test")
	must(t, err)
	var asked atomic.Int64
	_, err = nc.Subscribe("$NO.API.>", func(*nats.Msg) { asked.Add(1) })
	must(t, err)
	must(t, nc.Flush())
	b, err := bus.New(nc, bus.Options{})
	must(t, err)

	theirs, err := nats.Connect(s.NATSURL(), nats.SetCustomDialer(unheardDialer{}))
	must(t, err)
	defer theirs.Close()
	own, err := bus.New(theirs, bus.Options{})
	must(t, err)
	consumers := []string{bus.ConsumerTask + "-3"}
	for lane := range 8 {
		consumers = append(consumers, fmt.Sprintf("leaderless-%d", lane))
	}
	var done atomic.Int64
	ended := make(chan error, 1)
	running, end := context.WithCancel(ctx)
	defer end()
	go func() {
		ended <- pull.Run(running, own.Conn, pull.Intake{
			Stream: bus.StreamTask, Name: bus.ConsumerTask, Consumers: consumers, Prefetch: 4, Slots: 2,
			Work: func(d *bus.Delivered, _ func()) bool {
				d.Acknowledge()
				done.Add(1)
				return true
			},
			Heartbeat: time.Second, RequestCtx: ctx, Log: slog.New(slog.DiscardHandler),
		})
	}()

	until(ctx, t, func() bool { return asked.Load() > 0 })
	const sent = 20
	before := asked.Load()
	for k := range sent {
		_, err := b.Log.PutOnce(ctx, bus.StreamTask, msg(message.TaskSubject(3, "job", sent, k), fmt.Sprint(k)))
		must(t, err)
		until(ctx, t, func() bool { return done.Load() == int64(k+1) })
	}
	// One is asked a second; were each waited for, there would be several between two messages.
	if n := asked.Load() - before; n > sent {
		t.Errorf("%d questions without an answer while %d messages were worked on", n, sent)
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
