package pull_test

import (
	"context"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/pull"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/nats-io/nats.go"
)

// A request that ends states the number of messages still missing, so that others of the same
// consumer are not forgotten.
func TestRequestsEndWithWhatIsLeft(t *testing.T) {
	t.Parallel()
	ctx, b := open(t, embedded.Options{})
	into := make(chan *nats.Msg, 16)
	in, err := pull.Open(b.Conn, bus.StreamTask, into)
	must(t, err)
	defer in.Close()
	consumer := bus.ConsumerTask + "-3"
	_, err = b.Log.PutOnce(ctx, bus.StreamTask, msg(message.TaskSubject(3, "job", 1, 0), "task"))
	must(t, err)
	must(t, in.Pull(consumer, 5, 300*time.Millisecond)) // one message comes at once, the request waits for four
	next := func() *pull.Pulled {
		t.Helper()
		for {
			select {
			case m := <-into:
				if p := in.Parse(m); p != nil {
					return p
				}
			case <-ctx.Done():
				t.Fatal("nothing came")
			}
		}
	}
	if p := next(); p.Message == nil || p.Message.Consumer != consumer {
		t.Fatalf("%+v", p)
	}
	if p := next(); p.Message != nil || p.Consumer != consumer || p.Missing != 4 || p.Err != nil {
		t.Errorf("%+v, four of five messages are left", p)
	}
	must(t, in.Pull(consumer, 1, 0))
	if p := next(); p.Consumer != consumer || p.Err != nil {
		t.Errorf("%+v, there is nothing", p)
	}
}

func open(t *testing.T, o embedded.Options) (context.Context, *bus.Bus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	o.NoRedis = true
	s, err := embedded.Start(ctx, o)
	must(t, err)
	t.Cleanup(func() { s.Close(); cancel() })
	nc, err := s.Connect("test")
	must(t, err)
	b, err := bus.New(nc, bus.Options{})
	must(t, err)
	return ctx, b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func msg(subject, data string) *nats.Msg { return &nats.Msg{Subject: subject, Data: []byte(data)} }
