package workers

import (
	"context"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

// here says that this worker is there, for people, at once and every message.HereEvery until ctx ends, and at the end that it is gone.
func (w *Worker) here(ctx context.Context) error {
	m := &message.Here{Process: nuid.Next(), Stage: w.loop.Stage, Version: telemetry.ThisBuild().Version}
	return every(ctx, message.HereEvery, func(over bool) {
		m.Gone = over
		m.Messages = w.loop.Meter.Done()
		m.Time = w.loop.Bus.Now().UnixMilli()
		if b, err := wire.Encode(m); err == nil {
			w.loop.Bus.NC.PublishMsg(&nats.Msg{Subject: message.HereSubject, Header: message.Headers(m, "", "", ""), Data: b})
		}
	})
}

// every calls do at once, at every interval until ctx ends, and then a last time.
func every(ctx context.Context, interval time.Duration, do func(over bool)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		over := ctx.Err() != nil
		if do(over); over {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
