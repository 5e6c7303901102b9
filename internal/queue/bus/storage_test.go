package bus_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// A stream that answers later publishes and passes over earlier ones stores nothing; one that
// answers everything, late and in order, is slow. The two are played by a subscriber, so that
// neither needs a full disk or a loaded machine.
func TestSlowIsNotStalled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	ctx := t.Context()
	nc, _, err := bus.Connect(testserver.NATS(t, testserver.NATSOptions{}).URL, "test", nil)
	must(t, err)
	defer nc.Close()
	b, err := bus.New(nc, bus.Options{})
	must(t, err)
	const refused = `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 0"},"stream":"X","seq":0}`
	play := func(subject string, late time.Duration, storing bool) {
		_, err := b.Conn.NC.Subscribe(subject, func(m *nats.Msg) {
			time.Sleep(late)
			switch {
			case m.Header.Get("Nats-Expected-Last-Sequence") != "":
				m.Respond([]byte(refused))
			case storing:
				m.Respond([]byte(`{"stream":"X","seq":1}`))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	play("btn.v1.slow.>", 2500*time.Millisecond, true)
	play("btn.v1.stalled.>", 0, false)
	play("btn.v1.batch.>", 0, false)
	put := func(kind string) error { return b.Log.Put(ctx, &nats.Msg{Subject: "btn.v1." + kind + ".a"}) }
	if err := put("slow"); err != nil {
		t.Errorf("a slow stream: %v", err)
	}
	began := time.Now()
	if err := put("stalled"); !errors.Is(err, bus.ErrStorage) {
		t.Errorf("a stream that stores nothing, after %v: %v", time.Since(began), err)
	}
	if err := b.Conn.CheckStorage(); !errors.Is(err, bus.ErrStorage) {
		t.Errorf("what is known: %v", err)
	}
	if err := put("slow"); err != nil {
		t.Errorf("another stream meanwhile: %v", err)
	}
	batch := []*nats.Msg{{Subject: "btn.v1.batch.a"}, {Subject: "btn.v1.batch.b"}}
	if _, err := b.Log.PutAllOnce(ctx, "X", batch); !errors.Is(err, bus.ErrStorage) {
		t.Errorf("many at once: %v", err)
	}
}

// tenantOf returns a bus of the tenant acme, and the number of messages that came for the worker that stores them: store answers the nth.
func tenantOf(t *testing.T, store func(n int32, m *nats.Msg)) (b *bus.Bus, came *atomic.Int32) {
	t.Helper()
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	nc, _, err := bus.Connect(testserver.NATS(t, testserver.NATSOptions{}).URL, "test", nil)
	must(t, err)
	t.Cleanup(nc.Close)
	b, err = bus.New(nc, bus.Options{Tenant: "acme"})
	must(t, err)
	came = new(atomic.Int32)
	_, err = nc.Subscribe("btn.v1.blob.acme.>", func(m *nats.Msg) { store(came.Add(1), m) })
	must(t, err)
	return b, came
}

// stored is a worker's answer to a message that it has stored.
func stored(m *nats.Msg) { m.Respond([]byte(`{"stream":"BTN_BLOB","seq":1}`)) }

// Nothing but the message itself is published on a subject that a worker stores for a tenant, however late it answers.
func TestKeptMessagesAreNotQuestioned(t *testing.T) {
	b, came := tenantOf(t, func(_ int32, m *nats.Msg) {
		time.AfterFunc(4*time.Second, func() { stored(m) }) // twice the time that raises suspicion
	})
	must(t, b.Log.Put(t.Context(), &nats.Msg{Subject: message.BlobSubject("acme", wire.Digest(nil))}))
	if n := came.Load(); n != 1 {
		t.Errorf("%d messages were published for one", n)
	}
}

// A question whose answer is lost, as when the server reads other users from its configuration, is asked once more.
func TestALostAnswerIsAskedForAgain(t *testing.T) {
	b, came := tenantOf(t, func(n int32, m *nats.Msg) {
		if n > 1 {
			stored(m)
		}
	})
	for _, ctx := range []context.Context{t.Context(), within(t, time.Minute)} {
		came.Store(0)
		must(t, b.Log.Put(ctx, &nats.Msg{Subject: message.BlobSubject("acme", wire.Digest(nil))}))
		if n := came.Load(); n != 2 {
			t.Errorf("%d messages were published, want two", n)
		}
	}
}

// within returns a context with a deadline.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
