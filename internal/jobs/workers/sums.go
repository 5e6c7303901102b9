package workers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"golang.org/x/sync/errgroup"
)

var (
	// ErrNumericKinds: the partials of a job were computed by processors whose arithmetic differs
	// in the last bits.
	ErrNumericKinds = errors.New("pipeline: partials of different numeric kinds")
	// ErrDigests: the partials under one job's id belong to different requests.
	ErrDigests = errors.New("pipeline: partials of different requests")
	// ErrPlans: the partials of a job follow different decompositions.
	ErrPlans = errors.New("pipeline: partials of different decompositions")
)

// sums turns the partials of jobs into answers.
type sums struct {
	trail
	host *Host
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

// sum turns the partials of a whole job into its answer (Lemma 5) and stores it.
func (w *sums) sum(ctx context.Context, partials []*message.Partial) error {
	first := partials[0]
	job, err := w.plan(ctx, partials)
	if err != nil {
		return err
	}

	began := time.Now()
	return w.finish(
		ctx, partials, began, stage.Aggregate(first.Job, job, valuesOf(partials)),
	)
}

// settled reports whether the first partials of a job suffice for its answer.
func (w *sums) settled(ctx context.Context, partials []*message.Partial) (bool, error) {
	job, err := w.plan(ctx, partials)
	if err != nil {
		return false, err
	}
	return stage.Settled(job, valuesOf(partials)), nil
}

// reached is the number of a job's tasks that were contracted when its deadline came. of is 0 where
// none was.
type reached struct{ tasks, of int }

// soFar answers a job whose estimates grow with the partials that are stored when its deadline
// comes. It returns false where they are no answer: none are stored, the job does not grow, or no
// estimate is complete; then it returns the progress of the job.
func (w *sums) soFar(ctx context.Context, lane int, jobID, digest string) (answered bool, at reached, err error) {
	subjects, err := w.partials(ctx, lane, jobID)
	if err != nil {
		return false, at, err
	}
	stored, err := w.read(ctx, slices.Collect(maps.Keys(subjects)))
	if err != nil {
		return false, at, err
	}

	for _, p := range stored {
		switch {
		case p == nil:
			continue
		case p.Digest != digest: // another request
			return false, reached{}, nil
		}
		if at = (reached{len(subjects), p.N}); len(p.Ends) == 0 { // not a job that grows
			return false, at, nil
		}
	}
	partials, _ := ofOneRun(slices.DeleteFunc(stored, func(p *message.Partial) bool { return p == nil }))
	if len(partials) == 0 {
		return false, at, nil
	}

	slices.SortFunc(partials, func(a, b *message.Partial) int { return a.K - b.K })
	job, err := w.plan(ctx, partials)
	if err != nil {
		return false, at, err
	}

	began := time.Now()
	results := stage.AggregateNow(jobID, job, valuesOf(partials))
	for _, r := range results {
		if r.Status == query.StatusOK {
			return true, at, w.finish(ctx, partials, began, results)
		}
	}
	return false, at, nil
}

// valuesOf returns the values of all partials, in their order.
func valuesOf(partials []*message.Partial) []btn.UnitValue {
	var values []btn.UnitValue
	for _, p := range partials {
		values = append(values, p.Values...)
	}
	return values
}

// finish stores the results of a job as its answer.
func (w *sums) finish(
	ctx context.Context, partials []*message.Partial, began time.Time, results []query.Result,
) error {
	first := partials[0]
	if first.Header != nil {
		ctx = hop.WithHeaders(ctx, first.Header)
	}
	ctx, span := w.summing(ctx, partials)
	defer span.End()

	// Another worker may compute the sum, of a job that was started again.
	timings := timings(partials)
	timings[query.StageAggregate] = milliseconds(began)
	if first.Stored > 0 {
		timings["total"] = max(0, milliseconds(time.UnixMilli(first.Stored)))
	}
	names, err := message.DecodeNames(first.Names)
	if err != nil {
		return err
	}
	for i := range results {
		results[i].TimingsMS = timings
		results[i].Name(names)
	}

	if first.N > 1 {
		w.Progress(first.Job, w.Stage, 1, 1)
	}
	a := &wire.Answer{
		Job:     first.Job,
		Tenant:  first.Tenant,
		Digest:  first.Digest,
		Status:  wire.StatusOK,
		Results: results,
	}
	return w.WithRoom(ctx, func() error { return w.Answer(ctx, a, storedAt(first.Stored)) })
}

// summing begins the span of the sum over several partials, below the work on the one that came
// last here, or else on the first, with a link to the work on each.
func (w *sums) summing(
	ctx context.Context, partials []*message.Partial,
) (context.Context, trace.Span) {
	if w.Tracer == nil || partials[0].Header == nil {
		return ctx, noop.Span{}
	}
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = tracing.From(ctx, partials[0].Header)
	}
	var links []trace.Link
	for _, p := range partials {
		if of := tracing.Of(p.Header); of.IsValid() {
			links = append(links, trace.Link{
				SpanContext: of, Attributes: []attribute.KeyValue{tracing.Chunk.Int(p.K)},
			})
		}
	}
	return w.Tracer.Start(ctx, "sum", trace.WithLinks(links...), trace.WithAttributes(
		tracing.Job.String(partials[0].Job), tracing.Stage.String(w.Stage),
		tracing.Chunks.Int(partials[0].N),
	))
}

// storedAt returns the time that messages carry in Unix milliseconds; zero where they carry none.
func storedAt(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// timings returns the milliseconds per stage, the times of contraction summed over the chunks.
func timings(partials []*message.Partial) map[string]float64 {
	t := maps.Clone(partials[0].Timings)
	if t == nil {
		t = map[string]float64{}
	}

	for _, p := range partials[1:] {
		t[query.StageContract] += p.Timings[query.StageContract]
	}
	return t
}

// plan checks that the partials belong together, and returns the assignments that they follow.
func (w *sums) plan(ctx context.Context, partials []*message.Partial) ([]btn.Assignment, error) {
	first := partials[0]
	for _, p := range partials {
		switch {
		case p.Digest != first.Digest:
			return nil, fault.New(fault.BadInput, "%w: chunk %d is of %.16s…, chunk %d of %.16s…",
				ErrDigests, first.K, first.Digest, p.K, p.Digest)
		case p.NumericKind != first.NumericKind:
			return nil, fault.New(
				fault.Unsupported,
				"%w: chunk %d is of kind %s, chunk %d of kind %s; "+
					"let contract-workers of one kind of processor serve a lane",
				ErrNumericKinds,
				first.K,
				first.NumericKind,
				p.K,
				p.NumericKind,
			)
		case p.JobBlob != first.JobBlob:
			return nil, fault.New(
				fault.Unsupported, "%w: %.16s… and %.16s…", ErrPlans, first.JobBlob, p.JobBlob,
			)
		}
	}
	return w.host.plans.of(ctx, w.Bus.Blobs, first.JobBlob, first.Plan)
}
