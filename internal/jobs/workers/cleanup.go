package workers

// A job that takes long does not hold the room of all later ones: its stored messages move to the
// end of the streams.

import (
	"context"
	"errors"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// Intervals at which work queues are looked at, and the streams of large bytes.
const (
	tidyEvery  = 10 * time.Second
	storeEvery = 4 * time.Second
)

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

// carry moves a job without an answer to the end of the streams if it is in the way of the purge,
// and reports whether it did. The inputs of the job move first and the model last, because streams
// are purged up to the oldest model without an answer.
func (w *Aggregate) carry(ctx context.Context, d *hop.Message) (bool, error) {
	c := w.keeper.Crowded()
	if !d.Raw.Stored.Before(c.Before) {
		return false, nil
	}

	// All moves have to be done within the margin: the first moved must not be older than the model by
	// more than that.
	ctx, cancel := context.WithTimeout(ctx, c.Times.Margin*2/3)
	defer cancel()

	lane := d.Subject.Lane
	job := d.Subject.Job
	model, err := w.Bus.Log.GetRaw(ctx, bus.StreamModel, wire.ModelSubject(lane, job))
	if errors.Is(err, bus.ErrNotFound) || err == nil && model.Sequence != d.Raw.Sequence {
		return true, nil // another sweeper moved it
	}
	if err != nil {
		return false, err
	}

	if err := w.Bus.Blobs.RenewPayload(ctx, message.Owner(job), model.Header); err != nil {
		return false, err
	}
	if err := w.carryStored(ctx, lane, job); err != nil {
		return false, err
	}
	if _, err := w.Bus.Log.MoveToEnd(ctx, model); err != nil {
		return false, err
	}

	w.Log.Debug("a job that takes long made room", "job", job, "lane", lane)
	w.host.Metrics.Sweep(metrics.SweptCarried)
	return true, nil
}

// carryStored renews the blobs that the job's stored messages name, and moves its partials and its first answer to the end of their stream.
func (w *Aggregate) carryStored(ctx context.Context, lane int, job string) error {
	owner := message.Owner(job)
	for _, of := range []struct{ stream, filter string }{
		{bus.StreamNetwork, message.NetworkSubject(lane, job)},
		{bus.StreamTask, message.ChunksFilter(message.KindTask, lane, job)},
		{bus.StreamPartial, message.ChunksFilter(message.KindPartial, lane, job)},
		{bus.StreamPartial, message.FirstSubject(job)},
	} {
		subjects, err := w.Bus.Log.Subjects(ctx, of.stream, of.filter)
		if err != nil {
			return err
		}
		named := false // all tasks name the same blobs, and all partials
		for subject := range subjects {
			m, err := w.Bus.Log.GetRaw(ctx, of.stream, subject)
			if errors.Is(err, bus.ErrNotFound) {
				continue
			}
			if err == nil {
				err = w.Bus.Blobs.RenewPayload(ctx, owner, m.Header)
			}
			if err == nil && !named {
				named, err = w.renewNamed(ctx, owner, m)
			}
			if err == nil && of.stream == bus.StreamPartial {
				_, err = w.Bus.Log.MoveToEnd(ctx, m)
			} else if err == nil && named && !bus.HasBlob(m.Header) {
				break
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// renewNamed renews the blobs that a message names, and reports whether it can be read. HasBlob renews the blobs that it finds.
func (w *Aggregate) renewNamed(ctx context.Context, owner string, m *jetstream.RawStreamMsg) (bool, error) {
	data, err := w.Bus.Blobs.Payload(ctx, owner, m.Header, m.Data)
	if bus.Unreadable(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	of, err := follows(m.Subject, data)
	if err != nil {
		return false, nil
	}
	for _, digest := range of.blobs {
		if _, err := w.Bus.Blobs.Has(ctx, digest); err != nil {
			return false, err
		}
	}
	return true, nil
}
