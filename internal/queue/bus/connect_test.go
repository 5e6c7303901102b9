package bus_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/nats-io/nats.go"
)

// holeDialer connects like net.Dialer. Its first connection may become a black hole.
type holeDialer struct {
	dialled atomic.Int64
	hole    atomic.Bool
}

func (d *holeDialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	if err == nil && d.dialled.Add(1) == 1 {
		return holeConn{c, d}, nil
	}
	return c, err
}

type holeConn struct {
	net.Conn
	d *holeDialer
}

func (c holeConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.d.hole.Load() {
			return n, err
		}
	}
}

func (c holeConn) Write(b []byte) (int, error) {
	if c.d.hole.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// A connection that has become a black hole is left for another one, though neither side is notified.
func TestALostConnectionIsLeft(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := embedded.Start(ctx, embedded.Options{NoRedis: true, Listen: true})
	must(t, err)
	defer s.Close()
	d := &holeDialer{}
	nc, _, err := bus.Connect(s.NATSURL(), "test", nil, nats.SetCustomDialer(d))
	must(t, err)
	defer nc.Close()

	d.hole.Store(true)
	for began := time.Now(); nc.Stats().Reconnects == 0; time.Sleep(10 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("the same connection after %v", time.Since(began))
		}
	}
	must(t, nc.FlushWithContext(ctx))
}

// cutDialer connects like net.Dialer. The connection over which a text is sent next ends in its place.
type cutDialer struct{ at atomic.Pointer[string] }

func (d *cutDialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return cutConn{c, d}, err
}

type cutConn struct {
	net.Conn
	d *cutDialer
}

func (c cutConn) Write(b []byte) (int, error) {
	if at := c.d.at.Load(); at != nil && bytes.Contains(b, []byte(*at)) {
		c.d.at.Store(nil)
		c.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// Requests and publishes on a connection that was lost are repeated on the next one.
func TestALostQuestionIsAskedAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := embedded.Start(ctx, embedded.Options{NoRedis: true, Listen: true})
	must(t, err)
	defer s.Close()
	d := &cutDialer{}
	nc, _, err := bus.Connect(s.NATSURL(), "test", nil, nats.SetCustomDialer(d))
	must(t, err)
	defer nc.Close()
	b, err := bus.New(nc, bus.Options{})
	must(t, err)
	lose := func(text string) { d.at.Store(&text) }
	of := func(k int) *nats.Msg { return msg(message.TaskSubject(0, "job", 9, k), "data") }

	lose("PUB btn.v1.task.")
	if earlier, err := b.Log.PutOnce(ctx, bus.StreamTask, of(0)); err != nil || earlier != nil {
		t.Errorf("publish: %v, %v", earlier, err)
	}
	lose("PUB btn.v1.task.")
	if _, err := b.Log.PutAllOnce(ctx, bus.StreamTask, []*nats.Msg{of(1), of(2), of(3)}); err != nil {
		t.Errorf("publish many: %v", err)
	}
	for k := range 4 {
		lose("DIRECT.GET")
		if has, err := b.Log.Has(ctx, bus.StreamTask, of(k).Subject); err != nil || !has {
			t.Errorf("ask for %d: %v, %v", k, has, err)
		}
	}
	if n := nc.Stats().Reconnects; n != 6 {
		t.Errorf("%d connections were lost, not 6", n)
	}
}

// hastyDialer has connections that end in the middle of their handshakes, as a server ends them that changes its users.
type hastyDialer struct{ left atomic.Int64 }

func (d *hastyDialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	if left := d.left.Add(-1); err == nil && left >= 0 {
		return hastyConn{c, left%2 == 1}, nil
	}
	return c, err
}

type hastyConn struct {
	net.Conn
	deaf bool // it has ended before the client writes
}

func (c hastyConn) Write(b []byte) (int, error) {
	if c.deaf {
		return 0, &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)}
	}
	return c.Conn.Write(b)
}

// Read ends after the server's first words.
func (c hastyConn) Read(b []byte) (int, error) {
	if n, err := c.Conn.Read(b); err != nil || bytes.HasPrefix(b[:n], []byte("INFO ")) {
		return n, err
	}
	return 0, io.EOF
}

// TestHandshakesAreTriedAgain: what the server ends in the middle of a handshake is tried again, and not for ever.
func TestHandshakesAreTriedAgain(t *testing.T) {
	t.Parallel()
	s, err := embedded.Start(t.Context(), embedded.Options{NoRedis: true, Listen: true})
	must(t, err)
	defer s.Close()
	d := &hastyDialer{}
	d.left.Store(2)
	nc, _, err := bus.Dial(s.NATSURL(), nats.SetCustomDialer(d))
	must(t, err)
	nc.Close()
	d.left.Store(1 << 20)
	if nc, _, err = bus.Dial(s.NATSURL(), nats.SetCustomDialer(d)); err == nil {
		nc.Close()
		t.Error("a connection over a handshake that never ended")
	}
	if tries := 1<<20 - d.left.Load(); tries < 2 || tries > 10 {
		t.Errorf("%d tries", tries)
	}
}
