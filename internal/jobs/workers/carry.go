package workers

// A job that takes long does not hold the room of all later ones: its stored messages move to the
// end of the streams.

import (
	"context"
	"errors"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

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
	model, err := w.Bus.Raw(ctx, bus.StreamModel, wire.ModelSubject(lane, job))
	if errors.Is(err, bus.ErrNotFound) || err == nil && model.Sequence != d.Raw.Sequence {
		return true, nil // another sweeper moved it
	}
	if err != nil {
		return false, err
	}

	if err := w.Bus.RenewPayload(ctx, message.Owner(job), model.Header); err != nil {
		return false, err
	}
	if err := w.carryQueued(ctx, lane, job); err != nil {
		return false, err
	}
	if err := w.carryPartials(ctx, lane, job); err != nil {
		return false, err
	}
	if _, err := w.Bus.MoveToEnd(ctx, model); err != nil {
		return false, err
	}

	w.Log.Debug("a job that takes long made room", "job", job, "lane", lane)
	w.metrics.Sweep(metrics.SweptCarried)
	return true, nil
}

// carryQueued renews the blobs that the job's waiting messages name. All tasks of a job name the
// same network and plan.
func (w *Aggregate) carryQueued(ctx context.Context, lane int, job string) error {
	// The network message, if learn-worker has not taken it yet, names the network.
	m, err := w.Bus.Get(ctx, bus.StreamNetwork, message.NetworkSubject(lane, job))
	var network message.Network
	if err == nil && wire.Decode(m.Data, &network) == nil {
		if err := w.renew(ctx, message.Owner(job), m.Header, network.Blob); err != nil {
			return err
		}
	}

	if err != nil && !errors.Is(err, bus.ErrNotFound) && !bus.Unreadable(err) {
		return err
	}

	// The tasks name network and plan. A plan that is in the message itself is no blob.
	tasks, err := w.Bus.Subjects(
		ctx, bus.StreamTask, message.ChunksFilter(message.KindTask, lane, job),
	)
	if err != nil {
		return err
	}
	for subject := range tasks {
		m, err := w.Bus.Get(ctx, bus.StreamTask, subject)
		if errors.Is(err, bus.ErrNotFound) || bus.Unreadable(err) {
			continue // done since, or lost
		}
		if err != nil {
			return err
		}

		var task message.Task
		if wire.Decode(m.Data, &task) != nil {
			continue
		}

		blobs := []string{task.NetworkBlob, task.JobBlob}
		if len(task.Plan) > 0 {
			blobs = blobs[:1]
		}
		if err := w.renew(ctx, message.Owner(job), m.Header, blobs...); err != nil {
			return err
		}
		if !bus.Apart(m.Header) {
			return nil // the other tasks name the same blobs
		}
	}
	return nil
}

// renew renews the blob that holds a message's payload, if one does, and the blobs of the given
// digests. HasBlob renews the blobs that it finds.
func (w *Aggregate) renew(ctx context.Context, owner string, h nats.Header, blobs ...string) error {
	if err := w.Bus.RenewPayload(ctx, owner, h); err != nil {
		return err
	}

	for _, digest := range blobs {
		if _, err := w.Bus.HasBlob(ctx, digest); err != nil {
			return err
		}
	}
	return nil
}

// carryPartials moves the job's partials to the end of their stream, and renews the plan that they
// name.
func (w *Aggregate) carryPartials(ctx context.Context, lane int, job string) error {
	subjects, err := w.partials(ctx, lane, job)
	if err != nil {
		return err
	}

	// The partials of a job name the same plan, so the first that can be read is enough.
	first := true
	for subject := range subjects {
		m, err := w.Bus.Raw(ctx, bus.StreamPartial, subject)
		if errors.Is(err, bus.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}

		if err := w.Bus.RenewPayload(ctx, message.Owner(job), m.Header); err != nil {
			return err
		}
		if first && !bus.Apart(m.Header) {
			var p message.Partial
			if wire.Decode(m.Data, &p) == nil && len(p.Plan) == 0 {
				if err := w.renew(ctx, "", nil, p.JobBlob); err != nil {
					return err
				}
			}
			first = false
		}

		if _, err := w.Bus.MoveToEnd(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// begun reports whether anything of a job is stored after reparam.
func (w trail) begun(ctx context.Context, lane int, job string) (bool, error) {
	if busy, err := w.between(ctx, lane, job); err != nil || busy {
		return busy, err
	}
	partials, err := w.partials(ctx, lane, job)
	return len(partials) > 0, err
}
