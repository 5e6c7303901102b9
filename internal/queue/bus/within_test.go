package bus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/nats-io/nats.go"
)

// A server in the process is waited for longer than any other: on a busy machine it is slow, and it
// never goes away.
func TestAServerInTheProcessIsWaitedFor(t *testing.T) {
	s, err := embedded.Start(t.Context(), embedded.Options{Listen: true, NoRedis: true})
	must(t, err)
	defer s.Close()
	inside, err := s.Connect("inside")
	must(t, err)
	if d := bus.AnswerWithin(inside, time.Second); d < 30*time.Second {
		t.Errorf("a server in the process is waited for %v", d)
	}
	outside, err := nats.Connect(s.NATSURL())
	must(t, err)
	defer outside.Close()
	if d := bus.AnswerWithin(outside, time.Second); d != time.Second {
		t.Errorf("a server of another process is waited for %v, want a second", d)
	}
}

// A look for the answer that takes too long does not end the wait: the next one follows.
func TestALateLookEndsNoWait(t *testing.T) {
	defer bus.GetWithin(50 * time.Millisecond)()
	s, err := embedded.Start(t.Context(), embedded.Options{Listen: true, NoRedis: true})
	must(t, err)
	defer s.Close()
	nc, err := nats.Connect(s.NATSURL())
	must(t, err)
	defer nc.Close()
	b, err := bus.New(nc, bus.Options{})
	must(t, err)

	// A subscriber takes the requests for the answer, and never replies.
	must(t, b.Conn.JS.DeleteStream(t.Context(), bus.StreamAnswer))
	_, err = nc.Subscribe("$JS.API.DIRECT.GET."+bus.StreamAnswer+".>", func(*nats.Msg) {})
	must(t, err)
	must(t, nc.Flush())

	enough := errors.New("enough")
	looks := 0
	_, err = b.Log.WaitAnswer(t.Context(), "job", func(context.Context) error {
		if looks++; looks == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("after %d looks: %v", looks, err)
	}
}
