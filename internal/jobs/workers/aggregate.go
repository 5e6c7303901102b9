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

// Aggregate sums the partials of jobs, ends jobs that are cancelled or late, and looks after jobs without an answer.
type Aggregate struct {
	*sums
	collector *collector
	ackFloors ackFloors
	keeper    *streams.Keeper // watches the room in the streams; nil: nothing is swept
}

// setUpAggregate gives worker the intakes of aggregator, each a source of messages with their handler: partials,
// deadlines, cancels, ends and, if SweepAfter is positive, the stored models. With SweepAfter the worker also looks after
// the streams.
func (h *Host) setUpAggregate(worker *Worker) {
	aggregate := &Aggregate{sums: &sums{storedJobs: storedJobs{worker.loop}, host: h}}
	aggregate.collector = newCollector(aggregate.sums)
	worker.stop = aggregate.collector.stop

	// shortIntake returns the intake of messages about a job's end, which are few and quick.
	shortIntake := func(feed streams.Feed, handler hop.Handler) *intake {
		return &intake{Feed: feed, Intake: hop.Intake{Handler: handler}, pull: pull.Intake{Prefetch: shortPrefetch, Slots: 1}}
	}
	worker.intakes = []*intake{
		{
			Feed:   streams.Partials,
			Intake: hop.Intake{Handler: aggregate.collector.handlePartial, MeasuresCost: true},
			pull:   pull.Intake{Prefetch: shortPrefetch, Slots: 4},
		},
		shortIntake(streams.Deadlines, aggregate.handleDeadline),
		shortIntake(streams.Cancels, aggregate.handleCancel),
		shortIntake(streams.Ends, aggregate.handleEnd),
	}
	if h.SweepAfter > 0 {
		h.setUpSweeper(worker, aggregate)
	}
}

// setUpSweeper gives worker the intake of stored models, which sweepModel looks at, and the goroutines that look after
// the streams and measure the backlog.
func (h *Host) setUpSweeper(worker *Worker, aggregate *Aggregate) {
	aggregate.keeper = &streams.Keeper{
		Bus:        h.Bus,
		Log:        worker.loop.Log,
		SweepAfter: h.SweepAfter,
		Tell:       h.Metrics.Rooms,
	}
	worker.background = append(worker.background, aggregate.keeper.Watch, aggregate.tidyQueues, aggregate.restoreStreams)
	if h.Metrics != nil {
		backlog := &streams.Backlog{
			Bus:   h.Bus,
			Log:   worker.loop.Log,
			Own:   worker.loop.Meter.Work,
			Tell:  h.Metrics.Backlog,
			Fills: h.Metrics.Fills,
		}
		worker.background = append(worker.background, backlog.Watch)
	}
	worker.intakes = append(worker.intakes, &intake{
		Feed:   streams.Sweeps,
		Intake: hop.Intake{Handler: aggregate.sweepModel, HeadersOnly: streams.Sweeps.HeadersOnly, Unlimited: true},
		pull:   pull.Intake{Prefetch: sweepAhead, Slots: 1},
	})
}

var (
	// ErrNumericKinds means that the partials of a job were computed by processors whose arithmetic differs in the last bits.
	ErrNumericKinds = errors.New("pipeline: partials of different numeric kinds")
	// ErrDigests means that the partials under one job's id belong to different requests.
	ErrDigests = errors.New("pipeline: partials of different requests")
	// ErrPlans means that the partials of a job follow different decompositions.
	ErrPlans = errors.New("pipeline: partials of different decompositions")
)

// sums turns the partials of jobs into answers.
type sums struct {
	storedJobs
	host *Host
}

// sumJob turns the partials of a whole job into its answer (Lemma 5) and stores it.
func (w *sums) sumJob(ctx context.Context, partials []*message.Partial) error {
	assignments, err := w.commonPlan(ctx, partials)
	if err != nil {
		return err
	}

	began := time.Now()
	return w.storeAnswer(
		ctx, partials, began, stage.Aggregate(partials[0].Job, assignments, valuesOf(partials)),
	)
}

// isSettledBy reports whether partials, the first ones of a job, suffice for its answer.
func (w *sums) isSettledBy(ctx context.Context, partials []*message.Partial) (bool, error) {
	assignments, err := w.commonPlan(ctx, partials)
	if err != nil {
		return false, err
	}
	return stage.Settled(assignments, valuesOf(partials)), nil
}

// commonPlan returns the assignments that all partials follow. It returns ErrDigests, ErrNumericKinds or ErrPlans if
// the partials do not belong together.
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

// taskProgress has the number of a job's tasks that were contracted when its deadline came, and their total, 0 if that
// is unknown because no task was contracted.
type taskProgress struct{ contracted, total int }

// answerSoFar answers a job whose deadline has come with the best estimate of its stored partials. answered is false if
// there is none: no partial is stored, no estimate is complete, or the job has one estimate for which all its chunks
// are needed.
func (w *sums) answerSoFar(ctx context.Context, lane int, job, digest string) (answered bool, progress taskProgress, err error) {
	// Read the stored partials.
	subjects, err := w.partialSubjects(ctx, lane, job)
	if err != nil {
		return false, progress, err
	}
	stored, err := w.readPartials(ctx, slices.Collect(maps.Keys(subjects)))
	if err != nil {
		return false, progress, err
	}
	partials, progress := growingPartials(stored, digest)
	if len(partials) == 0 {
		return false, progress, nil
	}
	assignments, err := w.commonPlan(ctx, partials)
	if err != nil {
		return false, progress, err
	}

	// Store their sum if at least one query has an estimate.
	began := time.Now()
	results := stage.AggregateNow(job, assignments, valuesOf(partials))
	hasEstimate := slices.ContainsFunc(results, func(r query.Result) bool { return r.Status == query.StatusOK })
	if !hasEstimate {
		return false, progress, nil
	}
	return true, progress, w.storeAnswer(ctx, partials, began, results)
}

// growingPartials returns the partials of the youngest run of a job in the order of their chunks, if an estimate may be
// made of the job's first chunks alone (Ends has their numbers). Otherwise it returns no partials. progress is the
// number of stored partials and of the job's chunks. If a partial belongs to another request than digest,
// growingPartials returns no partials and no progress. A stored partial that is nil could not be read.
func growingPartials(stored []*message.Partial, digest string) (partials []*message.Partial, progress taskProgress) {
	for _, p := range stored {
		switch {
		case p == nil:
			continue
		case p.Digest != digest:
			return nil, taskProgress{}
		}
		if progress = (taskProgress{len(stored), p.N}); len(p.Ends) == 0 {
			return nil, progress
		}
	}
	partials, _ = splitByRun(slices.DeleteFunc(stored, func(p *message.Partial) bool { return p == nil })) // changes stored
	slices.SortFunc(partials, func(a, b *message.Partial) int { return a.K - b.K })
	return partials, progress
}

// valuesOf returns the values of all partials, in their order.
func valuesOf(partials []*message.Partial) []btn.UnitValue {
	var values []btn.UnitValue
	for _, p := range partials {
		values = append(values, p.Values...)
	}
	return values
}

// storeAnswer stores the results of a job as its answer, with timings and names. began is when the sum began.
func (w *sums) storeAnswer(
	ctx context.Context, partials []*message.Partial, began time.Time, results []query.Result,
) error {
	first := partials[0]
	if first.Header != nil {
		ctx = hop.WithHeaders(ctx, first.Header)
	}
	ctx, span := w.startSpan(ctx, partials)
	defer span.End()

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
		results[i].Name(names) // names its variables
	}

	if first.N > 1 { // the progress of a job with one chunk is reported when that comes
		w.Progress(first.Job, w.Stage, 1, 1)
	}
	answer := &wire.Answer{
		Job:     first.Job,
		Tenant:  first.Tenant,
		Digest:  first.Digest,
		Status:  wire.StatusOK,
		Results: results,
	}
	return w.WaitForRoom(ctx, func() error { return w.Answer(ctx, answer, storedAt(first.Stored)) })
}

// sumTimings returns the milliseconds of each stage. Those of contraction are summed over the chunks; those of the
// stages before are the same in all partials.
func sumTimings(partials []*message.Partial) map[string]float64 {
	timings := maps.Clone(partials[0].Timings)
	if timings == nil {
		timings = map[string]float64{}
	}

	for _, p := range partials[1:] {
		timings[query.StageContract] += p.Timings[query.StageContract]
	}
	return timings
}

// startSpan begins the span of the sum over partials, with a link to the work on each partial. Its parent is the span
// of ctx, the work on the partial that came last to this worker. If ctx has none, the parent is the work on the first
// partial.
func (w *sums) startSpan(
	ctx context.Context, partials []*message.Partial,
) (context.Context, trace.Span) {
	if w.Tracer == nil || partials[0].Header == nil {
		return ctx, noop.Span{}
	}
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = tracing.WithHeaderSpan(ctx, partials[0].Header)
	}
	var links []trace.Link
	for _, p := range partials {
		if work := tracing.HeaderSpan(p.Header); work.IsValid() {
			links = append(links, trace.Link{
				SpanContext: work, Attributes: []attribute.KeyValue{tracing.Chunk.Int(p.K)},
			})
		}
	}
	return w.Tracer.Start(ctx, "sum", trace.WithLinks(links...), trace.WithAttributes(
		tracing.Job.String(partials[0].Job), tracing.Stage.String(w.Stage),
		tracing.Chunks.Int(partials[0].N),
	))
}

// mayRestartMixed reports whether a sum failed because partials have several numeric kinds or plans, and the job may be
// started again. A job has several kinds if all workers of one kind are gone, or workers do not hear of each other. It
// has several plans if a plan was lost and made again.
func (w *sums) mayRestartMixed(err error, job string) bool {
	return (errors.Is(err, ErrNumericKinds) || errors.Is(err, ErrPlans)) && w.Rebuilds.MayRestart(job)
}

// restartMixed starts a job again whose partials (the stored values of its tasks) cannot be summed: the job was started
// several times, and these runs had different plans or numeric kinds of workers. restartMixed keeps the partials of the
// youngest one's run, which are not computed again, and deletes the others.
func (w *sums) restartMixed(ctx context.Context, key jobChunks, partials []*message.Partial) error {
	run, others := splitByRun(partials)
	for _, p := range others {
		if err := w.Bus.Log.Delete(ctx, bus.StreamPartial, p.Sequence); err != nil && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
			return err
		}
	}
	w.Rebuilds.Add(key.job)
	w.Log.Warn(
		"partials of several numeric kinds or plans", "job", key.job, "lane", key.lane, "kept",
		len(run), "of", run[0].NumericKind, "forgotten", len(others),
	)
	_, err := w.StartAgain(ctx, key.lane, key.job, "partials of several numeric kinds or plans")
	return err
}

// splitByRun divides the partials of a job, which may have been started several times, into those of the youngest one's
// run and the others. Partials of one run have the same numeric kind, plan and number of chunks.
func splitByRun(partials []*message.Partial) (run, others []*message.Partial) {
	youngest := &message.Partial{} // the zero one is older than all
	for _, p := range partials {
		if p.Sequence >= youngest.Sequence {
			youngest = p
		}
	}
	for _, p := range partials {
		isOfSameRun := p.N == youngest.N && p.NumericKind == youngest.NumericKind && p.JobBlob == youngest.JobBlob
		if isOfSameRun {
			run = append(run, p)
		} else {
			others = append(others, p)
		}
	}
	return run, others
}
