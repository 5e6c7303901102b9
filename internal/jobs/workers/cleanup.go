package workers

// Making room in the streams: messages that will not be delivered are removed, and the messages of a job that takes
// long are moved to the end of the streams, so that the messages of later jobs can be purged.

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

const (
	tidyEvery    = 10 * time.Second // the interval of tidyQueues
	restoreEvery = 4 * time.Second  // the interval of restoreStreams
)

// tidyQueues removes acknowledged messages from work queues at intervals, until ctx ends. If a server was killed, it
// may have lost their removal, and they count as backlog although no consumer will deliver them. tidyQueues also
// removes old large messages of tenants near their quota.
func (w *Aggregate) tidyQueues(ctx context.Context) error {
	return runEvery(ctx, tidyEvery, func(bool) {
		for _, stream := range []string{bus.StreamControl, bus.StreamNetwork, bus.StreamTask} {
			if err := w.tidyQueue(ctx, stream); err != nil && ctx.Err() == nil {
				w.Log.Debug("cannot look at a work queue", "stream", stream, "error", err)
			}
		}
		if err := w.Bus.Quotas.RemoveOldMessages(ctx); err != nil && ctx.Err() == nil {
			w.Log.Debug("cannot make room for a tenant", "error", err)
		}
	})
}

// tidyQueue removes from a work queue the messages that its consumers take for acknowledged. It does so only if the
// queue holds more messages than its consumers will deliver or have in work.
func (w *Aggregate) tidyQueue(ctx context.Context, stream string) error {
	s, err := w.Bus.Conn.JS.Stream(ctx, stream)
	if err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	surplus := s.CachedInfo().State.Msgs // messages that no consumer will deliver or has in work
	if surplus == 0 {
		return nil
	}

	// Subtract the messages of each consumer from the surplus.
	var consumers []*jetstream.ConsumerInfo
	list := s.ListConsumers(ctx)
	for c := range list.Info() {
		consumers = append(consumers, c)
		surplus -= min(surplus, c.NumPending+uint64(c.NumAckPending))
	}
	if err := list.Err(); err != nil && !errors.Is(err, jetstream.ErrEndOfData) {
		return fault.Wrap(fault.Infrastructure, err)
	}
	if surplus == 0 {
		return nil
	}

	// Purge each consumer's messages up to its acknowledgement floor.
	for _, c := range consumers {
		if c.AckFloor.Stream == 0 {
			continue
		}
		if err := w.Bus.Log.Purge(ctx, stream, c.Config.FilterSubject, c.AckFloor.Stream+1); err != nil {
			return err
		}
	}
	return nil
}

// restoreStreams makes the streams of blobs and of registered models again if they were deleted, until ctx ends.
// Clients need them and cannot make them.
func (w *Aggregate) restoreStreams(ctx context.Context) error {
	return runEvery(ctx, restoreEvery, func(bool) {
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

// moveToEnd moves the messages of a job without an answer to the end of their streams if the job keeps a full stream
// from being purged, and reports whether it did. d is the job's model. Streams are purged up to the oldest model
// without an answer, so the model moves last.
func (w *Aggregate) moveToEnd(ctx context.Context, d *hop.Message) (hasMoved bool, err error) {
	crowd := w.keeper.Crowded()
	if !d.Raw.Stored.Before(crowd.Before) {
		return false, nil
	}

	// All moves have to be done within the margin: the message that moves first must not be older than the model by more
	// than that. A third of the margin is left for the last request.
	ctx, cancel := context.WithTimeout(ctx, crowd.Times.Margin*2/3)
	defer cancel()

	lane, job := d.Subject.Lane, d.Subject.Job
	model, err := w.Bus.Log.GetRaw(ctx, bus.StreamModel, wire.ModelSubject(lane, job))
	isGone := errors.Is(err, bus.ErrNotFound) || err == nil && model.Sequence != d.Raw.Sequence
	if isGone { // another aggregator has moved it
		return true, nil
	}
	if err != nil {
		return false, err
	}

	// Renew and move what belongs to the job, and the model last.
	if err := w.Bus.Blobs.RenewPayload(ctx, message.Owner(job), model.Header); err != nil {
		return false, err
	}
	if err := w.moveStored(ctx, lane, job); err != nil {
		return false, err
	}
	if _, err := w.Bus.Log.MoveToEnd(ctx, model); err != nil {
		return false, err
	}

	w.Log.Debug("a job that takes long made room", "job", job, "lane", lane)
	w.host.Metrics.Sweep(metrics.SweptCarried)
	return true, nil
}

// moveStored renews the blobs that the job's messages after the model name, and moves its partials and its first answer
// to the end of their stream. Its network and its tasks stay where they are.
func (w *Aggregate) moveStored(ctx context.Context, lane int, job string) error {
	owner := message.Owner(job)
	for _, messages := range []struct{ stream, filter string }{
		{bus.StreamNetwork, message.NetworkSubject(lane, job)},
		{bus.StreamTask, message.ChunksFilter(message.KindTask, lane, job)},
		{bus.StreamPartial, message.ChunksFilter(message.KindPartial, lane, job)},
		{bus.StreamPartial, message.FirstSubject(job)},
	} {
		if err := w.moveMatching(ctx, owner, messages.stream, messages.filter); err != nil {
			return err
		}
	}
	return nil
}

// moveMatching is moveStored for the job's messages of one kind, which all name the same blobs. It renews these blobs
// once, and the blob with the payload of each message that has one. Only partials are moved to the end of their stream.
func (w *Aggregate) moveMatching(ctx context.Context, owner, stream, filter string) error {
	subjects, err := w.Bus.Log.Subjects(ctx, stream, filter)
	if err != nil {
		return err
	}
	hasRenewed := false // whether the blobs that the messages name are renewed
	for subject := range subjects {
		m, err := w.Bus.Log.GetRaw(ctx, stream, subject)
		if errors.Is(err, bus.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if err := w.Bus.Blobs.RenewPayload(ctx, owner, m.Header); err != nil {
			return err
		}
		if !hasRenewed {
			if hasRenewed, err = w.renewBlobs(ctx, owner, m); err != nil {
				return err
			}
		}
		if stream == bus.StreamPartial {
			if _, err := w.Bus.Log.MoveToEnd(ctx, m); err != nil {
				return err
			}
		} else if hasRenewed && !bus.HasBlob(m.Header) {
			return nil // the remaining messages are not moved either, and none has a payload in a blob
		}
	}
	return nil
}

// renewBlobs renews the blobs that a message names, as far as they are stored. It returns false if the message cannot be
// read.
func (w *Aggregate) renewBlobs(ctx context.Context, owner string, m *jetstream.RawStreamMsg) (ok bool, err error) {
	data, err := w.Bus.Blobs.Payload(ctx, owner, m.Header, m.Data)
	if bus.IsUnreadable(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	refs, err := decodeReferences(m.Subject, data)
	if err != nil {
		return false, nil
	}
	for _, digest := range refs.blobs {
		if _, err := w.Bus.Blobs.HasAndRenew(ctx, digest); err != nil {
			return false, err
		}
	}
	return true, nil
}
