package workers

import (
	"context"
	"errors"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go/jetstream"
)

// Intervals at which work queues are looked at, and the streams of large bytes.
const (
	tidyEvery  = 10 * time.Second
	storeEvery = 4 * time.Second
)

// stores makes the streams of large bytes again that were deleted: clients need them, and cannot create them. It returns when ctx ends.
func (w *Aggregate) stores(ctx context.Context) error {
	return every(ctx, storeEvery, func(bool) {
		for _, name := range []string{bus.StreamBlob, bus.StreamGraph} {
			if _, err := w.Bus.Conn.JS.Stream(ctx, name); !errors.Is(err, jetstream.ErrStreamNotFound) {
				continue
			}
			if err := w.Mend(ctx); err != nil && ctx.Err() == nil {
				w.Bus.Conn.Trouble.Warn(w.Log, "cannot make what is missing", "error", err)
			}
		}
	})
}

// tidy removes acknowledged messages from work queues: a server that was killed may have lost their
// removal. Nobody would be given them, and they would count as backlog. It removes old large messages of tenants who need the room. It
// returns when ctx ends.
func (w *Aggregate) tidy(ctx context.Context) error {
	return every(ctx, tidyEvery, func(bool) {
		for _, stream := range []string{bus.StreamControl, bus.StreamNetwork, bus.StreamTask} {
			if err := w.tidyQueue(ctx, stream); err != nil && ctx.Err() == nil {
				w.Log.Debug("cannot look at a work queue", "stream", stream, "error", err)
			}
		}
		if err := w.Bus.Quotas.Spare(ctx); err != nil && ctx.Err() == nil {
			w.Log.Debug("cannot make room for a tenant", "error", err)
		}
	})
}

// tidyQueue removes from a work queue the messages that its consumers take for acknowledged, if it
// holds more than they will deliver.
func (w *Aggregate) tidyQueue(ctx context.Context, stream string) error {
	s, err := w.Bus.Conn.JS.Stream(ctx, stream)
	if err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	held := s.CachedInfo().State.Msgs
	if held == 0 {
		return nil
	}

	var all []*jetstream.ConsumerInfo
	list := s.ListConsumers(ctx)
	for c := range list.Info() {
		all = append(all, c)
		held -= min(held, c.NumPending+uint64(c.NumAckPending))
	}
	if err := list.Err(); err != nil && !errors.Is(err, jetstream.ErrEndOfData) {
		return fault.Wrap(fault.Infrastructure, err)
	}
	if held == 0 {
		return nil
	}

	for _, c := range all {
		if c.AckFloor.Stream == 0 {
			continue
		}
		if err := w.Bus.Log.Purge(ctx, stream, c.Config.FilterSubject, c.AckFloor.Stream+1); err != nil {
			return err
		}
	}
	return nil
}
