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

// Run answers a request by the four stages in a row: reparameterise, learn, contract chunk by chunk
// until the answer has settled, aggregate. memo remembers plans between calls and may be nil. Where
// ctx has a deadline, planning leaves time for the answer, which is the best estimate so far, or else that of First, as in the pipeline.
// Failures of single queries are in their results; the error returned is the whole request's.
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
	if deadline, timed := ctx.Deadline(); timed {
		results, err = runInsured(ctx, net, r, memo, time.Until(deadline))
	} else {
		results, err = run(ctx, net, r, memo)
	}
	for i := range results {
		results[i].Name(query.Names{Variables: model.Names, States: model.States})
	}
	return results, err
}

// outcome is what a run returns, or how it panics.
type outcome struct {
	results  []query.Result
	err      error
	panicked any
}

// lastMoment is how long a run that the deadline has ended may take to say what it has.
const lastMoment = 250 * time.Millisecond

// runInsured is run with so much time left until the deadline, and with the results of First where it fails or does not return.
func runInsured(ctx context.Context, net *btn.Network, r Request, memo proposal.Memo, left time.Duration) ([]query.Result, error) {
	planning := proposal.PriceUntil(ctx, time.Now().Add(PlanningTime(left, len(net.Cores))))
	var first []query.Result
	head := HeadStart(left, len(net.Cores))
	if head == 0 {
		var err error
		if first, err = First(ctx, r.Job, net, r.Queries, r.Settings, left); err != nil {
			return nil, err
		}
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			done <- o
		}()
		o.results, o.err = run(planning, net, r, memo)
	}()

	o, ended := within(done, nil, head)
	if ended && o.panicked == nil && o.err == nil && allAnswered(o.results) {
		return o.results, nil
	}
	if first == nil {
		first, _ = First(ctx, r.Job, net, r.Queries, r.Settings, left)
	}
	if !ended {
		o, ended = within(done, ctx.Done(), left)
	}
	if !ended {
		o, ended = within(done, nil, lastMoment)
	}
	switch {
	case o.panicked != nil:
		panic(o.panicked)
	case !ended:
		o.err = ctx.Err()
	}
	if o.err == nil {
		return OrFirst(o.results, first), nil
	}
	if results := OrFirst(Failed(r.Job, len(first), o.err, query.StageLearn), first); Answered(results) {
		return results, nil
	}
	return nil, o.err
}

// within returns what comes from done in d, or until over is closed.
func within(done <-chan outcome, over <-chan struct{}, d time.Duration) (o outcome, ended bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case o = <-done:
		return o, true
	case <-over:
	case <-timer.C:
	}
	return o, false
}

// allAnswered reports whether every query has an answer.
func allAnswered(results []query.Result) bool {
	return !slices.ContainsFunc(results, func(r query.Result) bool { return r.Status != query.StatusOK })
}

// run is Run from a network on.
func run(ctx context.Context, net *btn.Network, r Request, memo proposal.Memo) ([]query.Result, error) {
	shared := &problem.Shared{}
	options := problem.Options{
		Memory: r.Settings.WithDefaults().Memory,
	}
	known := &plan.Known{Problems: shared, Options: options}
	assignments, err := Learn(ctx, net, r.Queries, r.Settings, memo, known)
	if err != nil {
		return nil, err
	}

	var values []btn.UnitValue
	demands := Demands(net, r.Queries)
	chunks, ends := Chunks(net, assignments)
	for k, units := range chunks {
		part, err := Contract(
			ctx, net, assignments, demands, units,
			ContractOptions{
				Memory: options.Memory,
				Shared: shared,
			},
		)
		if err != nil {
			return partialResults(ctx, r, assignments, values, err)
		}
		values = append(values, part...)
		if slices.Contains(ends, k+1) && Settled(assignments, values) {
			break
		}
	}

	return Aggregate(r.Job, assignments, values), nil
}

// partialResults returns the results that the finished values allow, where the context's deadline ended the contraction; else it fails.
func partialResults(
	ctx context.Context, r Request, assignments []btn.Assignment, values []btn.UnitValue, err error,
) ([]query.Result, error) {
	if len(values) == 0 || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, err
	}

	results := AggregateNow(r.Job, assignments, values)
	for i := range results {
		if results[i].Status == query.StatusOK {
			return results, nil
		}
	}
	return nil, err
}
