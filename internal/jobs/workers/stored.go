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

// storedJobs finds out how far a job has come, from the stored messages of the job.
type storedJobs struct{ *hop.Loop }

// hasBegun reports whether a network, a task or a partial of the job is stored.
func (w storedJobs) hasBegun(ctx context.Context, lane int, job string) (bool, error) {
	if waits, err := w.hasNetworkOrTask(ctx, lane, job); err != nil || waits {
		return waits, err
	}
	partials, err := w.partialSubjects(ctx, lane, job)
	return len(partials) > 0, err
}

// hasNetworkOrTask reports whether a network or a task of the job waits or is being processed.
func (w storedJobs) hasNetworkOrTask(ctx context.Context, lane int, job string) (bool, error) {
	isStored, err := w.Bus.Log.Has(ctx, bus.StreamNetwork, message.NetworkSubject(lane, job))
	if err != nil || isStored {
		return isStored, err
	}
	tasks, err := w.Bus.Log.Subjects(
		ctx, bus.StreamTask, message.ChunksFilter(message.KindTask, lane, job),
	)
	return len(tasks) > 0, err
}

// partialSubjects returns the subjects of a job's stored partials, with the number of messages on each. The stream's
// leader answers, so every partial that is acknowledged to its publisher is in the list.
func (w storedJobs) partialSubjects(ctx context.Context, lane int, job string) (map[string]uint64, error) {
	return w.Bus.Log.Subjects(ctx, bus.StreamPartial, message.ChunksFilter(message.KindPartial, lane, job))
}

// jobChunks identifies the partials of a job that is cut into n chunks. A job may have partials of several cuts.
type jobChunks struct {
	lane int
	job  string
	n    int
}

// listChunks returns the set of the job's chunks whose partials, the results of their tasks, are stored. It leaves out
// partials of another number of chunks.
func (w *sums) listChunks(ctx context.Context, key jobChunks) (map[int]bool, error) {
	subjects, err := w.partialSubjects(ctx, key.lane, key.job)
	chunks := make(map[int]bool, len(subjects))
	for text := range subjects {
		if s, err := message.ParseSubject(text); err == nil && s.N == key.n {
			chunks[s.K] = true
		}
	}
	return chunks, err
}

// readChunks reads the first count partials of a job, in the order of their chunks. The error wraps bus.ErrNotFound if
// a partial is missing.
func (w *sums) readChunks(ctx context.Context, key jobChunks, count int) ([]*message.Partial, error) {
	subjects := make([]string, count)
	for k := range subjects {
		subjects[k] = message.PartialSubject(key.lane, key.job, key.n, k)
	}
	partials, err := w.readPartials(ctx, subjects)
	if err == nil && slices.Contains(partials, nil) {
		err = fmt.Errorf("%w: chunks of %d", bus.ErrNotFound, key.n)
	}
	return partials, err
}

// parallelReads is the number of partials that readPartials fetches at the same time.
const parallelReads = 8

// readPartials reads the partials on subjects. The result has nil in the place of a partial that is missing. It reads
// all of them even if one is missing, because reading deletes forged ones, so that lists no longer have them.
func (w *sums) readPartials(ctx context.Context, subjects []string) ([]*message.Partial, error) {
	partials := make([]*message.Partial, len(subjects))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
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
			s, err := message.ParseSubject(subject)
			isOfSubject := err == nil && p.Job == s.Job && p.N == s.N && p.K == s.K
			if !isOfSubject {
				return fault.New(fault.BadInput, "pipeline: %s holds chunk %d of %d of job %s", subject, p.K, p.N, p.Job)
			}
			partials[i] = p
			return nil
		})
	}
	return partials, g.Wait()
}

// references are the digests in a network, a task or a partial.
type references struct {
	request string   // of the job's request
	plan    string   // of the job's plan; "": the message has none
	inline  []byte   // the encoded plan; nil unless it is in the message
	blobs   []string // all blobs that the message names, that of the plan among them
}

// decodeReferences returns the digests in a network, a task or a partial: of the request, of the plan, and of the blobs
// that the message needs. The plan is a blob unless it is in the message itself (inline). A first answer has none of these.
func decodeReferences(subject string, data []byte) (refs references, err error) {
	switch message.KindOf(subject) {
	case message.KindNetwork:
		var m message.Network
		err = wire.Decode(data, &m)
		refs = references{request: m.Digest, blobs: []string{m.Blob}}
	case message.KindFirst:
	case message.KindTask:
		var m message.Task
		err = wire.Decode(data, &m)
		refs = references{request: m.Digest, plan: m.JobBlob, inline: m.Plan, blobs: []string{m.NetworkBlob}}
	default:
		var m message.Partial
		err = wire.Decode(data, &m)
		refs = references{request: m.Digest, plan: m.JobBlob, inline: m.Plan}
	}
	if refs.plan != "" && len(refs.inline) == 0 {
		refs.blobs = append(refs.blobs, refs.plan)
	}
	return refs, err
}

// storedAt returns the time of a message's field in Unix milliseconds. It returns the zero time if the message has
// none.
func storedAt(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
