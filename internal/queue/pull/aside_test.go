package pull_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/pull"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// TestSmallOnesComePastLargeOnes: a small message begins although a tenant's large ones are ahead of it in its lane,
// more than are held, and the first of them is in work without end; and all large ones are worked on in the end, one at
// a time.
func TestSmallOnesComePastLargeOnes(t *testing.T) {
	t.Parallel()
	const large = 60
	ctx, b := lateBus(t, 0)
	for k := range large + 1 {
		m := msg(message.TaskSubject(3, fmt.Sprint("job", k), 1, 0), fmt.Sprint(k))
		m.Header = nats.Header{wire.HeaderTenant: {"loud"}}
		if k == large {
			m.Header[wire.HeaderTenant] = []string{"quiet"}
		}
		_, err := b.Log.PutOnce(ctx, bus.StreamTask, m)
		must(t, err)
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	small, worked := make(chan struct{}), make(chan bool, large)
	ended := make(chan error, 1)
	go func() {
		ended <- pull.Run(ctx, b.Conn, pull.Intake{
			Stream:    bus.StreamTask,
			Name:      bus.ConsumerTask,
			Consumers: []string{bus.ConsumerTask + "-3"},
			Prefetch:  1,
			Slots:     4,
			IsHeavy:   func(d *bus.Delivered) bool { return d.Header[wire.HeaderTenant][0] == "loud" },
			Work: func(d *bus.Delivered, _ func()) bool {
				defer d.Acknowledge()
				if d.Header[wire.HeaderTenant][0] == "quiet" {
					close(small)
					return true
				}
				select {
				case <-small:
					worked <- true
				case <-ctx.Done():
					worked <- false
				}
				return true
			},
			Heartbeat:  100 * time.Millisecond,
			RequestCtx: ctx,
			Log:        slog.New(slog.DiscardHandler),
		})
	}()
	for k := range large {
		if !<-worked {
			t.Fatalf("%d of %d large messages were worked on", k, large)
		}
	}
	stop()
	must(t, <-ended)
}
