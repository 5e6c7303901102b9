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
	tick := time.NewTicker(message.HereEvery)
	defer tick.Stop()
	for {
		m.Gone = ctx.Err() != nil
		m.Messages = w.loop.Meter.Done()
		m.Time = w.loop.Bus.Now().UnixMilli()
		if b, err := wire.Encode(m); err == nil {
			w.loop.Bus.NC.PublishMsg(&nats.Msg{Subject: message.HereSubject, Header: message.Headers(m, "", "", ""), Data: b})
		}
		if m.Gone {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
