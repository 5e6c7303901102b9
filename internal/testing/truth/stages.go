package truth

// The stages as the pipeline has them: everything between them as bytes, decompositions remembered.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// throughWire does the work of infer.Run, with everything between the stages through its bytes.
func throughWire(ctx context.Context, c *Case) ([]query.Result, error) {
	request, err := wireRequest(c)
	if err != nil {
		return nil, formatError{err}
	}
	m, err := request.Model.Decode()
	if err == nil {
		err = same(c.Model, m)
	}
	if err != nil {
		return nil, formatError{err}
	}

	queries := make([]query.Query, len(request.Queries))
	for q, w := range request.Queries {
		queries[q] = query.Query{Evidence: w.Evidence, Marginals: w.Marginals, Over: w.Over, Joint: w.Joint}
	}
	if err := query.Check(m.Domains, queries); err != nil {
		return nil, err
	}

	net, err := stage.ReparameteriseFor(ctx, m, request.Settings, queries)
	if err != nil {
		return nil, err
	}
	if net, err = coded(net, message.EncodeNetwork, message.DecodeNetwork); err != nil {
		return nil, err
	}

	w := worker{net: net, settings: request.Settings, memo: memory{}}
	if len(queries)%2 == 0 { // the model was asked for before, without evidence
		_, _ = w.answer(ctx, []query.Query{{}}) // its outcome does not matter
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}

	results, err := w.answer(ctx, queries)
	if err != nil {
		return nil, err
	}
	return wireAnswer(results)
}

// worker is the memory of the pipeline's workers about one model.
type worker struct {
	net      *btn.Network
	settings query.Settings
	memo     memory
	known    plan.NetworkMemory
}

// memory remembers plans by their bytes.
type memory map[string][]byte

// Do returns the value remembered under a key, or computes and remembers it.
func (m memory) Do(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (*btn.Plan, bool, error) {
	if b, ok := m[key]; ok {
		d, err := message.DecodePlan(b)
		return d, true, err
	}
	d, err := compute(ctx)
	if err != nil {
		return nil, false, err
	}
	if m[key], err = message.EncodePlan(d); err != nil {
		return nil, false, formatError{err}
	}
	return d, false, nil
}

// answer does the work of learn-worker, contract-worker and aggregator.
func (w *worker) answer(ctx context.Context, queries []query.Query) ([]query.Result, error) {
	net := w.net
	assignments, err := stage.Learn(ctx, net, queries, w.settings, w.memo, &w.known)
	if err != nil {
		return nil, err
	}
	if assignments, err = coded(assignments, message.EncodeAssignments,
		message.DecodeAssignments); err != nil {
		return nil, err
	}
	if err := message.CheckAssignments(net, assignments); err != nil {
		return nil, formatError{err}
	}
	values, err := contracted(ctx, net, assignments, queries, w.settings.Memory)
	if err != nil {
		return nil, err
	}
	return stage.Aggregate("truth", assignments, values), nil
}

// coded returns x encoded and decoded.
func coded[T any](x T, encode func(T) ([]byte, error), decode func([]byte) (T, error)) (T, error) {
	b, err := encode(x)
	if err == nil {
		x, err = decode(b)
	}
	if err != nil {
		return x, formatError{err}
	}
	return x, nil
}

// carried encodes a message and decodes it into to.
func carried(m, to wire.Message) error {
	b, err := wire.Encode(m)
	if err == nil {
		err = wire.Decode(b, to)
	}
	if err != nil {
		return formatError{err}
	}
	return nil
}

// wireRequest is a case as the message that a client sends, through its bytes.
func wireRequest(c *Case) (*wire.Request, error) {
	var queries []query.Query
	for _, q := range c.Queries {
		queries = append(queries, query.Query{
			Evidence:  q.Evidence,
			Marginals: q.Marginals,
			Over:      q.Over,
			Joint:     q.Joint,
			Gradients: q.Gradients,
		})
	}
	m, err := wire.NewRequest(c.Model, queries...)
	if err != nil {
		return nil, err
	}
	m.Job, m.Settings = "truth", c.Settings
	var back wire.Request
	return &back, carried(&m, &back)
}

// digest stands for a request's digest.
var digest = wire.Digest(nil)

// contracted computes all units, chunk by chunk as infer.Run does, and takes every chunk through a
// partial.
func contracted(
	ctx context.Context, net *btn.Network, assignments []btn.Assignment, queries []query.Query, memory int64,
) ([]btn.UnitValue, error) {
	var values []btn.UnitValue
	chunks, ends := stage.Chunks(net, assignments)
	demands := stage.Demands(net, queries)
	shared := &problem.Shared{}
	for k, units := range chunks {
		part, err := stage.Contract(ctx, net, assignments, demands, units, stage.ContractOptions{
			Memory: memory,
			Shared: shared,
		})
		if err != nil {
			return nil, err
		}
		var back message.Partial
		p := &message.Partial{
			Job:         "truth",
			Digest:      digest,
			JobBlob:     digest,
			K:           k,
			N:           len(chunks),
			Values:      part,
			NumericKind: message.NumericKind(),
		}
		if err := carried(p, &back); err != nil {
			return nil, err
		}
		values = append(values, back.Values...)
		if slices.Contains(ends, k+1) && stage.Settled(assignments, values) {
			break
		}
	}

	return values, nil
}

func wireAnswer(results []query.Result) ([]query.Result, error) {
	var back wire.Answer
	if err := carried(&wire.Answer{
		Job:     "truth",
		Digest:  digest,
		Status:  wire.StatusOK,
		Results: results,
	}, &back); err != nil {
		return nil, err
	}
	return back.Results, nil
}
