package bus_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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

// Large bytes are written and read in a cluster though the leader is not there for one of the
// messages that takes: a chunk that finds none is published again, behind those that followed, and
// the leader that serves a reader may die before it answers.
func TestObjectsInACluster(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts three nats-servers")
	}
	servers, all := cluster(t, 1)
	dialer := &strayDialer{}
	nc, err := nats.Connect(servers.URL, nats.SetCustomDialer(dialer), nats.WriteBufferSize(1)) // every message is a write
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	b, err := bus.New(nc, "")
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 3<<20)
	rand.NewChaCha8([32]byte{}).Read(data)

	dialer.next("$O.BTN_BLOB.C.", "$X.BTN_BLOB.C.")
	digest, err := b.PutBlob(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := all[0].GetBlob(t.Context(), digest); !bytes.Equal(got, data) {
		t.Errorf("a chunk was published again: %d of %d bytes, %v", len(got), len(data), err)
	}

	unheard, err := all[0].NC.SubscribeSync("$NO.API.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := all[0].NC.Flush(); err != nil {
		t.Fatal(err)
	}
	dialer.next("$JS.API.DIRECT.GET.OBJ_BTN_BLOB _", "$NO.API.DIRECT.GET.OBJ_BTN_BLOB _")
	if got, err := b.GetBlob(t.Context(), digest); !bytes.Equal(got, data) {
		t.Errorf("a reader was not heard: %d of %d bytes, %v", len(got), len(data), err)
	}
	if _, err := unheard.NextMsg(0); err == nats.ErrTimeout {
		t.Error("no reader was unheard")
	}
}

// Large payloads pass over a connection of their own, which ends with that for messages.
func TestObjectsHaveAConnection(t *testing.T) {
	ctx, b := open(t, embedded.Options{MaxPayload: 32 << 10, Listen: true})
	large := bytes.Repeat([]byte("large"), 1<<18)
	digest, err := b.PutBlob(ctx, large)
	must(t, err)
	if got, err := b.GetBlob(ctx, digest); err != nil || !bytes.Equal(got, large) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if s := b.NC.Stats(); s.OutBytes > 1<<18 || s.InBytes > 1<<18 {
		t.Errorf("%d bytes left by the connection for messages, %d came", s.OutBytes, s.InBytes)
	}
	b.NC.Close()
	if _, err := b.PutBlob(ctx, append(large, "other"...)); err == nil {
		t.Error("stored after the end")
	}
}

// chunks returns the number of subjects of chunks.
func chunks(t *testing.T, b *bus.Bus) int {
	t.Helper()
	there, err := b.Subjects(t.Context(), bus.ObjectsBlob, "$O.BTN_BLOB.C.>")
	must(t, err)
	return len(there)
}

// Of large bytes whose writer gives up nothing stays.
func TestGivingUpAnObjectLeavesNothing(t *testing.T) {
	ctx, b := open(t, embedded.Options{MaxPayload: 32 << 10, Listen: true})
	giving, cancel := context.WithCancel(ctx)
	first, err := b.NC.Subscribe("$O.BTN_BLOB.C.>", func(*nats.Msg) { cancel() })
	must(t, err)
	must(t, first.AutoUnsubscribe(1))
	must(t, b.NC.Flush())
	if _, err := b.PutBlob(giving, make([]byte, 32<<20)); !errors.Is(err, context.Canceled) {
		t.Fatalf("it was not given up: %v", err)
	}
	for chunks(t, b) > 0 {
		if ctx.Err() != nil {
			t.Fatal("chunks stay")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Old chunks whose writer died are removed, and the chunks of objects stay.
func TestChunksOfNobodyGo(t *testing.T) {
	ctx, b := open(t, embedded.Options{MaxPayload: 32 << 10, Listen: true})
	large := bytes.Repeat([]byte("large"), 1<<15)
	digest, err := b.PutBlob(ctx, large)
	must(t, err)
	must(t, b.NC.Publish("$O.BTN_BLOB.C.nobody", make([]byte, 1000)))
	must(t, b.NC.Flush())
	long := time.Now().Add(-time.Hour)
	must(t, b.DropObjects(ctx, long, 0))
	if n := chunks(t, b); n != 2 {
		t.Errorf("young ones: %d subjects of chunks, 2 were written", n)
	}

	defer func() { bus.Clock = time.Now }()
	bus.Clock = func() time.Time { return time.Now().Add(2 * time.Minute) }
	must(t, b.DropObjects(ctx, long, 0))
	if n := chunks(t, b); n != 1 {
		t.Errorf("old ones: %d subjects of chunks, 1 is an object's", n)
	}
	if got, err := b.GetBlob(ctx, digest); err != nil || !bytes.Equal(got, large) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// An object whose chunks are gone makes no room when it goes, and goes from a full store all the same; then the others do.
func TestAFullStoreIsEmptied(t *testing.T) {
	ctx, b := open(t, embedded.Options{MaxPayload: 32 << 10, Listen: true})
	s, err := b.JS.Stream(ctx, bus.ObjectsBlob)
	must(t, err)
	o, err := b.JS.ObjectStore(ctx, bus.BucketBlob)
	must(t, err)
	for i := range 3 {
		_, err := b.PutBlob(ctx, bytes.Repeat([]byte{byte(i)}, 100_000))
		must(t, err)
	}
	all, err := o.List(ctx)
	must(t, err)
	slices.SortFunc(all, func(x, y *jetstream.ObjectInfo) int { return x.ModTime.Compare(y.ModTime) })
	must(t, s.Purge(ctx, jetstream.WithPurgeSubject("$O.BTN_BLOB.C."+all[0].NUID)))
	info, err := s.Info(ctx)
	must(t, err)
	full := info.Config
	full.MaxBytes = int64(info.State.Bytes)
	_, err = b.JS.UpdateStream(ctx, full)
	must(t, err)

	must(t, b.DropObjects(ctx, time.Now().Add(time.Hour), 0))
	info, err = s.Info(ctx)
	must(t, err)
	if info.State.Msgs > 0 {
		t.Errorf("%d messages stay", info.State.Msgs)
	}
	_, err = b.PutBlob(ctx, bytes.Repeat([]byte{9}, 100_000))
	must(t, err)
}
