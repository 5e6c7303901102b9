package workers

import (
	"context"
	"errors"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/nats-io/nats.go/jetstream"
)

// mixed reports whether a sum failed on partials of several numeric kinds or plans, and the job may be
// rebuilt. Several kinds meet if all workers of one kind are gone, or workers do not hear of each
// other; several plans, if a plan was lost and made again.
func (w *sums) mixed(err error, job string) bool {
	return (errors.Is(err, ErrNumericKinds) || errors.Is(err, ErrPlans)) && w.Rebuilds.May(job)
}

// unmix deletes the partials of a job that do not go with the youngest one, and starts the job again.
// The partials that stay are not computed again.
func (w *sums) unmix(ctx context.Context, key chunks, partials []*message.Partial) error {
	kept, others := ofOneRun(partials)
	for _, p := range others {
		if err := w.Bus.Log.Delete(ctx, bus.StreamPartial, p.Sequence); err != nil && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
			return err
		}
	}
	w.Rebuilds.Count(key.job)
	w.Log.Warn(
		"partials of several numeric kinds or plans", "job", key.job, "lane", key.lane, "kept",
		len(kept), "of", kept[0].NumericKind, "forgotten", len(others),
	)
	_, err := w.StartAgain(ctx, key.lane, key.job, "partials of several numeric kinds or plans")
	return err
}

// ofOneRun returns the partials with the youngest one's numeric kind, plan and number of chunks, and
// the others.
func ofOneRun(partials []*message.Partial) (kept, others []*message.Partial) {
	youngest := &message.Partial{}
	for _, p := range partials {
		if p.Sequence >= youngest.Sequence {
			youngest = p
		}
	}
	for _, p := range partials {
		if p.N == youngest.N && p.NumericKind == youngest.NumericKind && p.JobBlob == youngest.JobBlob {
			kept = append(kept, p)
		} else {
			others = append(others, p)
		}
	}
	return kept, others
}
