package bus_test

import (
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/nats-io/nats.go"
)

// A request that ends says how many of its messages are still missing, so that others of the same consumer are not forgotten.
func TestRequestsEndWithWhatIsLeft(t *testing.T) {
	ctx, b := open(t, embedded.Options{})
	into := make(chan *nats.Msg, 16)
	in, err := b.Open(bus.StreamTask, into)
	must(t, err)
	defer in.Close()
	consumer := bus.ConsumerTask + "-3"
	must(t, in.Pull(consumer, 5, 300*time.Millisecond))
	_, err = b.Once(ctx, bus.StreamTask, msg(message.TaskSubject(3, "job", 1, 0), "task"))
	must(t, err)
	next := func() *bus.Pulled {
		t.Helper()
		for {
			select {
			case m := <-into:
				if p := in.Read(m); p != nil {
					return p
				}
			case <-time.After(5 * time.Second):
				t.Fatal("nothing came")
			}
		}
	}
	if p := next(); p.Message == nil || p.Message.Consumer != consumer {
		t.Fatalf("%+v", p)
	}
	if p := next(); p.Message != nil || p.Ended != consumer || p.Left != 4 || p.Err != nil {
		t.Errorf("%+v, four of five messages are left", p)
	}
	must(t, in.Pull(consumer, 1, 0))
	if p := next(); p.Ended != consumer || p.Err != nil {
		t.Errorf("%+v, there is nothing", p)
	}
}
