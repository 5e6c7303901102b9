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

// throughWire answers a case as infer.Run does, but as the pipeline does it: whatever passes between two stages is encoded and decoded.
func throughWire(ctx context.Context, c *Case) ([]query.Result, error) {
	// The request and its model.
	request, err := codeRequest(c)
	if err != nil {
		return nil, formatError{err}
	}
	m, err := request.Model.Decode()
	if err == nil {
		err = equalModels(c.Model, m)
	}
	if err != nil {
		return nil, formatError{err}
	}

	// The queries.
	queries := make([]query.Query, len(request.Queries))
	for q, w := range request.Queries {
		queries[q] = query.Query{Evidence: w.Evidence, Marginals: w.Marginals, Over: w.Over, Joint: w.Joint}
	}
	if err := query.Check(m.Domains, queries); err != nil {
		return nil, err
	}

	// The stages.
	net, err := stage.ReparameteriseFor(ctx, m, request.Settings, queries)
	if err != nil {
		return nil, err
	}
	if net, err = encodeAndDecode(net, message.EncodeNetwork, message.DecodeNetwork); err != nil {
		return nil, err
	}

	// In half of the cases the workers have answered a query about the model before, so that they remember plans. Its outcome does not
	// matter.
	w := worker{net: net, settings: request.Settings, memo: planMemory{}}
	if len(queries)%2 == 0 {
		_, _ = w.answer(ctx, []query.Query{{}})
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}

	results, err := w.answer(ctx, queries)
	if err != nil {
		return nil, err
	}
	return codeResults(results)
}

// worker does the work of the pipeline's workers on one model, with what they remember.
type worker struct {
	net      *btn.Network
	settings query.Settings
	memo     planMemory
	known    plan.NetworkMemory // facts about the network that planning has found
}

// planMemory has encoded plans by their keys. It is a proposal.Memo.
type planMemory map[string][]byte

// Do returns the plan that is remembered under a key, or computes and remembers it. isRemembered is true in the former case.
func (m planMemory) Do(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (p *btn.Plan, isRemembered bool, err error) {
	if b, ok := m[key]; ok {
		p, err := message.DecodePlan(b)
		return p, true, err
	}
	p, err = compute(ctx)
	if err != nil {
		return nil, false, err
	}
	if m[key], err = message.EncodePlan(p); err != nil {
		return nil, false, formatError{err}
	}
	return p, false, nil
}

// answer answers queries by the stages of learn-worker (plans), contract-worker (values of the plans' parts) and aggregator (results).
func (w *worker) answer(ctx context.Context, queries []query.Query) ([]query.Result, error) {
	net := w.net
	assignments, err := stage.Learn(ctx, net, queries, w.settings, w.memo, &w.known)
	if err != nil {
		return nil, err
	}
	if assignments, err = encodeAndDecode(assignments, message.EncodeAssignments,
		message.DecodeAssignments); err != nil {
		return nil, err
	}
	if err := message.CheckAssignments(net, assignments); err != nil {
		return nil, formatError{err}
	}
	values, err := contractChunks(ctx, net, assignments, queries, w.settings.Memory)
	if err != nil {
		return nil, err
	}
	return stage.Aggregate("truth", assignments, values), nil
}

// encodeAndDecode returns what is decoded from the encoding of x.
func encodeAndDecode[T any](x T, encode func(T) ([]byte, error), decode func([]byte) (T, error)) (T, error) {
	b, err := encode(x)
	if err == nil {
		x, err = decode(b)
	}
	if err != nil {
		return x, formatError{err}
	}
	return x, nil
}

// codeMessage encodes a message and decodes it into received.
func codeMessage(sent, received wire.Message) error {
	b, err := wire.Encode(sent)
	if err == nil {
		err = wire.Decode(b, received)
	}
	if err != nil {
		return formatError{err}
	}
	return nil
}

// codeRequest returns the message that a client sends for a case, encoded and decoded.
func codeRequest(c *Case) (*wire.Request, error) {
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
	var received wire.Request
	return &received, codeMessage(&m, &received)
}

// digest stands for the digest of a request, which nothing here checks.
var digest = wire.Digest(nil)

// contractChunks contracts the units of the assignments, chunk by chunk as infer.Run does, and returns their values. The values of each
// chunk are sent as a message.Partial, encoded and decoded. It stops early at the end of an estimate if the answers are settled by then.
func contractChunks(
	ctx context.Context, net *btn.Network, assignments []btn.Assignment, queries []query.Query, memory int64,
) ([]btn.UnitValue, error) {
	var values []btn.UnitValue
	chunks, ends := stage.Chunks(net, assignments)
	demands := stage.Demands(net, queries)
	shared := &problem.Shared{}
	for k, units := range chunks {
		chunkValues, err := stage.Contract(ctx, net, assignments, demands, units, stage.ContractOptions{
			Memory: memory,
			Shared: shared,
		})
		if err != nil {
			return nil, err
		}
		var received message.Partial
		p := &message.Partial{
			Job:         "truth",
			Digest:      digest,
			JobBlob:     digest,
			K:           k,
			N:           len(chunks),
			Values:      chunkValues,
			NumericKind: message.NumericKind(),
		}
		if err := codeMessage(p, &received); err != nil {
			return nil, err
		}
		values = append(values, received.Values...)
		isEndOfEstimates := slices.Contains(ends, k+1)
		if isEndOfEstimates && stage.Settled(assignments, values) {
			break
		}
	}

	return values, nil
}

// codeResults returns the results as a client gets them in an answer, encoded and decoded.
func codeResults(results []query.Result) ([]query.Result, error) {
	var received wire.Answer
	if err := codeMessage(&wire.Answer{
		Job:     "truth",
		Digest:  digest,
		Status:  wire.StatusOK,
		Results: results,
	}, &received); err != nil {
		return nil, err
	}
	return received.Results, nil
}
