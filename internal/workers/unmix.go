package workers

import (
	"context"
	"errors"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go/jetstream"
)

// mixed reports whether a sum failed because workers of several numeric kinds computed the job, and
// those of one may do it again. It happens where all workers of a kind are gone, and where they do
// not hear of each other.
func (w *sums) mixed(err error, job string) bool {
	return errors.Is(err, ErrNumericKinds) && w.Rebuilds.May(job)
}

// unmix forgets the partials of a job that are of another numeric kind than the youngest, and has
// the job begin anew: what is there is not computed again.
func (w *sums) unmix(ctx context.Context, key chunks, partials []*message.Partial) error {
	s, err := w.Bus.Stream(ctx, bus.StreamPartial)
	if err != nil {
		return err
	}
	kept, others := ofOneKind(partials)
	for _, p := range others {
		if err := s.DeleteMsg(ctx, p.Sequence); err != nil && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
			return fault.New(
				fault.Infrastructure, "pipeline: forget a partial of job %s: %w", key.job, err,
			)
		}
	}
	w.Rebuilds.Count(key.job)
	w.Log.Warn(
		"partials of several numeric kinds", "job", key.job, "lane", key.lane, "kept", len(kept),
		"of", kept[0].NumericKind, "forgotten", len(others),
	)
	_, err = w.StartAgain(ctx, key.lane, key.job, "partials of several numeric kinds")
	return err
}

// ofOneKind returns the partials of the numeric kind of the youngest, and the others.
func ofOneKind(partials []*message.Partial) (kept, others []*message.Partial) {
	kind, last := "", uint64(0)
	for _, p := range partials {
		if p.Sequence >= last {
			kind, last = p.NumericKind, p.Sequence
		}
	}
	for _, p := range partials {
		if p.NumericKind == kind {
			kept = append(kept, p)
		} else {
			others = append(others, p)
		}
	}
	return kept, others
}
