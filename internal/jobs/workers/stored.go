package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"golang.org/x/sync/errgroup"
)

// trail finds out the progress of a job, by its stored messages.
type trail struct{ *hop.Loop }

// begun reports whether anything of a job is stored after reparam.
func (w trail) begun(ctx context.Context, lane int, job string) (bool, error) {
	if busy, err := w.between(ctx, lane, job); err != nil || busy {
		return busy, err
	}
	partials, err := w.partials(ctx, lane, job)
	return len(partials) > 0, err
}

// between reports whether a network or a task of the job waits or is being processed.
func (w trail) between(ctx context.Context, lane int, job string) (bool, error) {
	has, err := w.Bus.Log.Has(ctx, bus.StreamNetwork, message.NetworkSubject(lane, job))
	if err != nil || has {
		return has, err
	}
	tasks, err := w.Bus.Log.Subjects(
		ctx, bus.StreamTask, message.ChunksFilter(message.KindTask, lane, job),
	)
	return len(tasks) > 0, err
}

// partials lists the subjects of a job's stored partials. The stream's leader answers, so all that are acknowledged are in the list.
func (w trail) partials(ctx context.Context, lane int, job string) (map[string]uint64, error) {
	return w.Bus.Log.Subjects(ctx, bus.StreamPartial, message.ChunksFilter(message.KindPartial, lane, job))
}

// chunks identifies the partials of a job that is cut into n chunks.
type chunks struct {
	lane int
	job  string
	n    int
}

// readers is the number of partials fetched at the same time.
const readers = 8

// stored lists which of a job's chunks are stored.
func (w *sums) stored(ctx context.Context, key chunks) (map[int]bool, error) {
	subjects, err := w.partials(ctx, key.lane, key.job)
	ks := make(map[int]bool, len(subjects))
	for s := range subjects {
		if p, err := message.ParseSubject(s); err == nil && p.N == key.n {
			ks[p.K] = true
		}
	}
	return ks, err
}

// fetch reads the first count partials of a job, in the order of their chunks. The error wraps
// bus.ErrNotFound if some are missing.
func (w *sums) fetch(ctx context.Context, key chunks, count int) ([]*message.Partial, error) {
	subjects := make([]string, count)
	for k := range subjects {
		subjects[k] = message.PartialSubject(key.lane, key.job, key.n, k)
	}
	partials, err := w.read(ctx, subjects)
	if err == nil && slices.Contains(partials, nil) {
		err = fmt.Errorf("%w: chunks of %d", bus.ErrNotFound, key.n)
	}
	return partials, err
}

// read reads partials; nil is in the place of one that is missing. All are looked at, so that none that is forged is listed any more.
func (w *sums) read(ctx context.Context, subjects []string) ([]*message.Partial, error) {
	partials := make([]*message.Partial, len(subjects))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i, subject := range subjects {
		g.Go(func() error {
			m, err := w.Bus.Log.Get(ctx, bus.StreamPartial, subject)
			if errors.Is(err, bus.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}

			p := &message.Partial{Header: m.Header, Sequence: m.Sequence}
			if err := wire.Decode(m.Data, p); err != nil {
				return err
			}
			if of, err := message.ParseSubject(subject); err != nil || p.Job != of.Job || p.N != of.N || p.K != of.K {
				return fault.New(fault.BadInput, "pipeline: %s holds chunk %d of %d of job %s", subject, p.K, p.N, p.Job)
			}
			partials[i] = p
			return nil
		})
	}
	return partials, g.Wait()
}

// followed has the request and the plan of a network, a task or a partial, and the blobs that it names.
type followed struct {
	request, digest string
	inline          []byte
	blobs           []string
}

// follows decodes a network, a task or a partial.
func follows(subject string, data []byte) (f followed, err error) {
	switch message.KindOf(subject) {
	case message.KindNetwork:
		var m message.Network
		err = wire.Decode(data, &m)
		f = followed{m.Digest, "", nil, []string{m.Blob}}
	case message.KindFirst: // it names nothing
	case message.KindTask:
		var m message.Task
		err = wire.Decode(data, &m)
		f = followed{m.Digest, m.JobBlob, m.Plan, []string{m.NetworkBlob}}
	default:
		var m message.Partial
		err = wire.Decode(data, &m)
		f = followed{m.Digest, m.JobBlob, m.Plan, nil}
	}
	if f.digest != "" && len(f.inline) == 0 { // else the plan is no blob
		f.blobs = append(f.blobs, f.digest)
	}
	return f, err
}

// storedAt returns the time that messages carry in Unix milliseconds; zero where they carry none.
func storedAt(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
