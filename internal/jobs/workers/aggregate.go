package workers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/pull"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Aggregate sums the partials of jobs, ends those that are cancelled or late, and looks after those
// without answer.
type Aggregate struct {
	*sums
	collector *collector
	ackFloors ackFloors
	keeper    *streams.Keeper // nil: nothing is swept
}

// aggregate gives w the intakes of aggregator: partials, deadlines, cancels, ends, and with SweepAfter
// the stored models.
func (h *Host) setUpAggregate(w *Worker) {
	a := &Aggregate{sums: &sums{storedJobs: storedJobs{w.loop}, host: h}}
	a.collector = newCollector(a.sums)
	w.stop = a.collector.stop

	w.intakes = []*intake{
		{
			Feed:   streams.Partials,
			Intake: hop.Intake{Handler: a.collector.handlePartial, Metered: true},
			pull:   pull.Intake{Prefetch: shortPrefetch, Slots: 4},
		},
		{
			Feed:   streams.Deadlines,
			Intake: hop.Intake{Handler: a.handleDeadline},
			pull:   pull.Intake{Prefetch: shortPrefetch, Slots: 1},
		},
		{
			Feed:   streams.Cancels,
			Intake: hop.Intake{Handler: a.handleCancel},
			pull:   pull.Intake{Prefetch: shortPrefetch, Slots: 1},
		},
		{
			Feed:   streams.Ends,
			Intake: hop.Intake{Handler: a.handleEnd},
			pull:   pull.Intake{Prefetch: shortPrefetch, Slots: 1},
		},
	}

	if h.SweepAfter <= 0 {
		return
	}
	a.keeper = &streams.Keeper{
		Bus:        h.Bus,
		Log:        w.loop.Log,
		SweepAfter: h.SweepAfter,
		Tell:       h.Metrics.Rooms,
	}
	w.background = append(w.background, a.keeper.Watch, a.tidyQueues, a.restoreStreams)
	if h.Metrics != nil {
		backlog := &streams.Backlog{
			Bus:   h.Bus,
			Log:   w.loop.Log,
			Own:   w.loop.Meter.Work,
			Tell:  h.Metrics.Backlog,
			Fills: h.Metrics.Fills,
		}
		w.background = append(w.background, backlog.Watch)
	}
	w.intakes = append(w.intakes, &intake{
		Feed:   streams.Sweeps,
		Intake: hop.Intake{Handler: a.sweep, Headers: streams.Sweeps.Headers, Patient: true},
		pull:   pull.Intake{Prefetch: sweepAhead, Slots: 1},
	})
}

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
	storedJobs
	host *Host
}

// sum turns the partials of a whole job into its answer (Lemma 5) and stores it.
func (w *sums) sum(ctx context.Context, partials []*message.Partial) error {
	first := partials[0]
	job, err := w.commonPlan(ctx, partials)
	if err != nil {
		return err
	}

	began := time.Now()
	return w.storeAnswer(
		ctx, partials, began, stage.Aggregate(first.Job, job, valuesOf(partials)),
	)
}

// settled reports whether the first partials of a job suffice for its answer.
func (w *sums) isSettled(ctx context.Context, partials []*message.Partial) (bool, error) {
	job, err := w.commonPlan(ctx, partials)
	if err != nil {
		return false, err
	}
	return stage.Settled(job, valuesOf(partials)), nil
}

// plan checks that the partials belong together, and returns the assignments that they follow.
func (w *sums) commonPlan(ctx context.Context, partials []*message.Partial) ([]btn.Assignment, error) {
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
	return w.host.plans.get(ctx, w.Bus.Blobs, first.JobBlob, first.Plan)
}

// reached is the number of a job's tasks that were contracted when its deadline came. of is 0 where
// none was.
type taskProgress struct{ contracted, total int }

// soFar answers a job whose estimates grow with the partials that are stored when its deadline
// comes. It returns false where they are no answer: none are stored, the job does not grow, or no
// estimate is complete; then it returns the progress of the job.
func (w *sums) answerSoFar(ctx context.Context, lane int, jobID, digest string) (answered bool, at taskProgress, err error) {
	subjects, err := w.partialSubjects(ctx, lane, jobID)
	if err != nil {
		return false, at, err
	}
	stored, err := w.readPartials(ctx, slices.Collect(maps.Keys(subjects)))
	if err != nil {
		return false, at, err
	}

	for _, p := range stored {
		switch {
		case p == nil:
			continue
		case p.Digest != digest: // another request
			return false, taskProgress{}, nil
		}
		if at = (taskProgress{len(subjects), p.N}); len(p.Ends) == 0 { // not a job that grows
			return false, at, nil
		}
	}
	partials, _ := splitByRun(slices.DeleteFunc(stored, func(p *message.Partial) bool { return p == nil }))
	if len(partials) == 0 {
		return false, at, nil
	}

	slices.SortFunc(partials, func(a, b *message.Partial) int { return a.K - b.K })
	job, err := w.commonPlan(ctx, partials)
	if err != nil {
		return false, at, err
	}

	began := time.Now()
	results := stage.AggregateNow(jobID, job, valuesOf(partials))
	for _, r := range results {
		if r.Status == query.StatusOK {
			return true, at, w.storeAnswer(ctx, partials, began, results)
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
func (w *sums) storeAnswer(
	ctx context.Context, partials []*message.Partial, began time.Time, results []query.Result,
) error {
	first := partials[0]
	if first.Header != nil {
		ctx = hop.WithHeaders(ctx, first.Header)
	}
	ctx, span := w.startSpan(ctx, partials)
	defer span.End()

	// Another worker may compute the sum, of a job that was started again.
	timings := sumTimings(partials)
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

// timings returns the milliseconds per stage, the times of contraction summed over the chunks.
func sumTimings(partials []*message.Partial) map[string]float64 {
	t := maps.Clone(partials[0].Timings)
	if t == nil {
		t = map[string]float64{}
	}

	for _, p := range partials[1:] {
		t[query.StageContract] += p.Timings[query.StageContract]
	}
	return t
}

// summing begins the span of the sum over several partials, below the work on the one that came
// last here, or else on the first, with a link to the work on each.
func (w *sums) startSpan(
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

// mixed reports whether a sum failed on partials of several numeric kinds or plans, and the job may be
// rebuilt. Several kinds meet if all workers of one kind are gone, or workers do not hear of each
// other; several plans, if a plan was lost and made again.
func (w *sums) mayRestartMixed(err error, job string) bool {
	return (errors.Is(err, ErrNumericKinds) || errors.Is(err, ErrPlans)) && w.Rebuilds.May(job)
}

// unmix deletes the partials of a job that do not go with the youngest one, and starts the job again.
// The partials that stay are not computed again.
func (w *sums) restartMixed(ctx context.Context, key jobChunks, partials []*message.Partial) error {
	kept, others := splitByRun(partials)
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
func splitByRun(partials []*message.Partial) (kept, others []*message.Partial) {
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
