package stage

// The four stages in a row.

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/answer/questions"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Request is a model, queries on it, and settings.
type Request struct {
	Job      string
	Model    *factorgraph.Model
	Queries  []query.Query
	Settings query.Settings
}

// Run answers a request by the four stages in a row: it reparameterises the model, learns plans, contracts them chunk by chunk until the
// answer has settled, and aggregates. memo remembers plans between calls and may be nil. If a single query fails, its result has the
// error. The error that Run returns is that of the whole request.
//
// If ctx has a deadline, planning leaves time for the answer, which is the best estimate so far, or else that of FirstResults, as in the
// pipeline.
func Run(ctx context.Context, r Request, memo proposal.Memo) ([]query.Result, error) {
	if r.Model == nil {
		return nil, fault.Wrap(fault.BadInput, errors.New("infer: a request needs a model"))
	}
	queries, err := Queries(r.Model.Domains, r.Model.Labels, r.Queries)
	if err != nil {
		return nil, err
	}

	model, queries, err := questions.Intervene(r.Model, queries)
	if err != nil {
		return nil, err
	}
	net, err := ReparameteriseFor(ctx, model, r.Settings, queries)
	if err != nil {
		return nil, err
	}

	r.Queries = queries
	var results []query.Result
	if deadline, ok := ctx.Deadline(); ok {
		results, err = runInsured(ctx, net, r, memo, time.Until(deadline))
	} else {
		results, err = run(ctx, net, r, memo)
	}
	for i := range results {
		results[i].Name(query.Names{Variables: model.Names, States: model.States})
	}
	return results, err
}

// outcome is what a run returns, or the value with which it panicked.
type outcome struct {
	results  []query.Result
	err      error
	panicked any // nil if it did not panic
}

// lastMoment is how long a run may take to return its results after the deadline has ended it.
const lastMoment = 250 * time.Millisecond

// runInsured answers a request whose deadline is in untilDeadline. It calls run in a goroutine. FirstResults is the insurance: its results,
// of belief propagation, stand for the queries that run does not answer in time. It is called
//
//   - before run, if HeadStart is 0
//   - not at all, if run answers all queries within HeadStart
//   - otherwise beside run, when HeadStart is over.
//
// runInsured returns an error if neither of the two has an answer, and panics if run does.
func runInsured(ctx context.Context, net *btn.Network, r Request, memo proposal.Memo, untilDeadline time.Duration) ([]query.Result, error) {
	planningEnd := time.Now().Add(PlanningTime(untilDeadline, len(net.Cores))) // counted from here, with FirstResults before run in it
	var first []query.Result
	head := HeadStart(untilDeadline, len(net.Cores))
	if head == 0 {
		var err error
		if first, err = FirstResults(ctx, r.Job, net, r.Queries, r.Settings, untilDeadline); err != nil {
			return nil, err
		}
	}

	outcomes := start(proposal.WithPlanningEnd(ctx, planningEnd), net, r, memo)
	var never <-chan struct{} // nil: nothing ever comes from it
	o, hasEnded := waitFor(outcomes, never, head)
	hasResults := hasEnded && o.panicked == nil && o.err == nil
	if hasResults && areAllAnswered(o.results) {
		return o.results, nil
	}

	if first == nil {
		// The only error is that ctx has ended. Then there are no first results, and those of run are taken as they are.
		first, _ = FirstResults(ctx, r.Job, net, r.Queries, r.Settings, untilDeadline)
	}
	if !hasEnded {
		o, hasEnded = waitFor(outcomes, ctx.Done(), untilDeadline)
	}
	if !hasEnded { // ctx has just ended run, which may still return results
		o, hasEnded = waitFor(outcomes, never, lastMoment)
	}
	if !hasEnded {
		o.err = ctx.Err()
	}
	return insure(r.Job, o, first)
}

// start calls run in a goroutine and returns a channel on which its outcome comes. The channel has room for it, so that the goroutine ends
// even if nobody waits any more.
func start(ctx context.Context, net *btn.Network, r Request, memo proposal.Memo) <-chan outcome {
	outcomes := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			outcomes <- o
		}()
		o.results, o.err = run(ctx, net, r, memo)
	}()
	return outcomes
}

// insure returns the results of a run. A query that failed there gets its result in first instead, the answers of belief propagation that
// were computed beside the run. If the run as a whole has an error, all its queries have failed with it, and if first has no answer either,
// that error is returned. If the run has panicked, insure panics with the same value.
func insure(job string, o outcome, first []query.Result) ([]query.Result, error) {
	if o.panicked != nil {
		panic(o.panicked)
	}
	if o.err == nil {
		return ReplaceFailures(o.results, first), nil
	}
	failures := FailedResults(job, len(first), o.err, query.StageLearn)
	if results := ReplaceFailures(failures, first); HasAnswer(results) {
		return results, nil
	}
	return nil, o.err
}

// waitFor waits for an outcome until the duration d is over or stop is closed. hasEnded is false if no outcome came.
func waitFor(outcomes <-chan outcome, stop <-chan struct{}, d time.Duration) (o outcome, hasEnded bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case o = <-outcomes:
		return o, true
	case <-stop:
	case <-timer.C:
	}
	return o, false
}

// areAllAnswered reports whether every query has an answer.
func areAllAnswered(results []query.Result) bool {
	return !slices.ContainsFunc(results, func(r query.Result) bool { return r.Status != query.StatusOK })
}

// run answers the queries of a request on its network: it learns, contracts chunk by chunk until the answer has settled, and aggregates. If
// the deadline ends the contraction, the results are those of the values so far.
func run(ctx context.Context, net *btn.Network, r Request, memo proposal.Memo) ([]query.Result, error) {
	shared := &problem.Shared{}
	options := problem.Options{
		Memory: r.Settings.WithDefaults().Memory,
	}
	known := &plan.NetworkMemory{Problems: shared, Options: options}
	assignments, err := Learn(ctx, net, r.Queries, r.Settings, memo, known)
	if err != nil {
		return nil, err
	}

	var values []btn.UnitValue
	demands := Demands(net, r.Queries)
	chunks, ends := Chunks(net, assignments)
	for k, units := range chunks {
		chunkValues, err := Contract(
			ctx, net, assignments, demands, units,
			ContractOptions{
				Memory: options.Memory,
				Shared: shared,
			},
		)
		if err != nil {
			return partialResults(ctx, r, assignments, values, err)
		}
		values = append(values, chunkValues...)
		mayBeEnough := slices.Contains(ends, k+1) // ends: the numbers of chunks after which there may be an answer
		if mayBeEnough && Settled(assignments, values) {
			break
		}
	}

	return Aggregate(r.Job, assignments, values), nil
}

// partialResults returns the results by the values that are finished, if the deadline of the context ended the contraction and at least one
// query has an answer by them. Otherwise it returns err, the error of the contraction.
func partialResults(
	ctx context.Context, r Request, assignments []btn.Assignment, values []btn.UnitValue, err error,
) ([]query.Result, error) {
	if len(values) == 0 || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, err
	}

	results := AggregateNow(r.Job, assignments, values)
	if HasAnswer(results) {
		return results, nil
	}
	return nil, err
}
