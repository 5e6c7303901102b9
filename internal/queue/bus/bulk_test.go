package bus_test

import (
	"bytes"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/nats-io/nats.go"
)

// strayDialer connects like net.Dialer. The next write with a text is sent with another one of the same length in its place.
type strayDialer struct{ from, to atomic.Pointer[[]byte] }

func (d *strayDialer) next(from, to string) {
	f, t := []byte(from), []byte(to)
	d.to.Store(&t)
	d.from.Store(&f)
}

func (d *strayDialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return strayConn{c, d}, err
}

type strayConn struct {
	net.Conn
	d *strayDialer
}

func (c strayConn) Write(b []byte) (int, error) {
	if from := c.d.from.Load(); from != nil && bytes.Contains(b, *from) && c.d.from.CompareAndSwap(from, nil) {
		_, err := c.Conn.Write(bytes.Replace(b, *from, *c.d.to.Load(), 1))
		return len(b), err
	}
	return c.Conn.Write(b)
}

// Large bytes are written and read in a cluster though the leader is not there for one of the messages that takes: a piece that finds none
// is published again, behind those that followed, and the leader that serves a reader may die before it answers.
func TestPiecesInACluster(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts three nats-servers")
	}
	servers, all := cluster(t, 3)
	dialer := &strayDialer{}
	nc, err := nats.Connect(servers.URL, nats.SetCustomDialer(dialer), nats.WriteBufferSize(1)) // every message is a write
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	b, err := bus.New(nc, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 3<<20)
	rand.NewChaCha8([32]byte{}).Read(data)

	dialer.next("PUB btn.v1.blob.", "PUB btx.v1.blob.")
	digest, err := b.Blobs.Put(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := all[0].Blobs.Get(t.Context(), digest); !bytes.Equal(got, data) {
		t.Errorf("a piece was published again: %d of %d bytes, %v", len(got), len(data), err)
	}

	unheard := make(chan *nats.Msg, 64)
	for _, reader := range all { // one of each server: whichever the reader asks has a subscriber of its own
		if _, err := reader.Conn.NC.ChanSubscribe("$NO.API.>", unheard); err != nil {
			t.Fatal(err)
		}
		if err := reader.Conn.NC.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	dialer.next("$JS.API.DIRECT.GET.BTN_BLOB.", "$NO.API.DIRECT.GET.BTN_BLOB.")
	if got, err := b.Blobs.Get(t.Context(), digest); !bytes.Equal(got, data) {
		t.Errorf("a reader was not heard: %d of %d bytes, %v", len(got), len(data), err)
	}
	select {
	case <-unheard:
	case <-time.After(30 * time.Second):
		t.Error("no reader was unheard")
	}
}

// Large payloads pass over a connection of their own, which ends with that for messages.
func TestPiecesHaveAConnection(t *testing.T) {
	ctx, b := open(t, embedded.Options{MaxPayload: 32 << 10, Listen: true})
	large := bytes.Repeat([]byte("large"), 1<<18)
	digest, err := b.Blobs.Put(ctx, large)
	must(t, err)
	if got, err := b.Blobs.Get(ctx, digest); err != nil || !bytes.Equal(got, large) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if s := b.Conn.NC.Stats(); s.OutBytes > 1<<18 || s.InBytes > 1<<18 {
		t.Errorf("%d bytes left by the connection for messages, %d came", s.OutBytes, s.InBytes)
	}
	b.Conn.NC.Close()
	if _, err := b.Blobs.Put(ctx, append(large, "other"...)); err == nil {
		t.Error("stored after the end")
	}
}
