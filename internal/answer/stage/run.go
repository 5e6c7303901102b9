package stage

// The four stages in a row.

import (
	"context"
	"errors"
	"slices"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Request is a model, queries on it, and settings.
type Request struct {
	Job      string
	Model    *factorgraph.Model
	Queries  []query.Query
	Settings btn.Settings
}

// Run answers a request by the four stages in a row: reparameterise, learn, contract chunk by chunk
// until the answer has settled, aggregate. memo remembers plans between calls and may be nil. Where
// ctx has a deadline and the answer grows, it is the best estimate so far, as in the pipeline.
// Failures of single queries are in their results; the error returned is the whole request's.
func Run(ctx context.Context, r Request, memo proposal.Memo) ([]btn.Result, error) {
	if r.Model == nil {
		return nil, fault.Wrap(fault.BadInput, errors.New("infer: a request needs a model"))
	}
	queries, err := Queries(r.Model.Domains, r.Model.Labels, r.Queries)
	if err != nil {
		return nil, err
	}

	net, err := ReparameteriseFor(ctx, r.Model, r.Settings, queries)
	if err != nil {
		return nil, err
	}

	r.Queries = Expand(net, queries)
	shared := &problem.Shared{}
	options := problem.Options{
		Memory: r.Settings.WithDefaults().Memory,
		Memo:   &problem.Recent{},
	}
	known := &plan.Known{Problems: shared, Options: options}
	assignments, err := LearnKnown(ctx, net, r.Queries, r.Settings, memo, known)
	if err != nil {
		return nil, err
	}

	var values []btn.UnitValue
	chunks, ends := Chunks(net, assignments)
	for k, units := range chunks {
		part, err := Contract(
			ctx, net, assignments, r.Queries, units,
			ContractOptions{
				Memory: options.Memory,
				Shared: shared,
				Memo:   options.Memo,
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

	return Aggregate(r.Job, assignments, files(r.Queries), values), nil
}

// partialResults returns the results that the finished values allow, where the context's deadline ended the contraction; else it fails.
func partialResults(
	ctx context.Context, r Request, assignments []btn.Assignment, values []btn.UnitValue, err error,
) ([]btn.Result, error) {
	if len(values) == 0 || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, err
	}

	results := AggregateNow(r.Job, assignments, files(r.Queries), values)
	for i := range results {
		if results[i].Status == btn.StatusOK {
			return results, nil
		}
	}
	return nil, err
}
