package truth

// The ways that a request takes to its answer.

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/contract"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
	"github.com/basetensor/basetensor/pkg/wire"
)

// formatError says that a format did not give back what was written.
type formatError struct{ error }

// answer sends a case along its route.
func answer(ctx context.Context, c *Case) ([]btn.Result, error) {
	m, queries := c.Model, c.Queries
	var err error
	switch c.Route {
	case RouteJSON:
		m, err = throughJSON(m)
	case RouteUAI:
		m, queries, err = throughUAI(m, queries)
	case RouteWire:
		return throughWire(ctx, c)
	}
	if err != nil {
		return nil, formatError{err}
	}
	return infer.Run(ctx, infer.Request{Job: "truth", Model: m, Queries: queries, Settings: c.Settings}, nil)
}

func throughJSON(m *factorgraph.Model) (*factorgraph.Model, error) {
	var text bytes.Buffer
	if err := modeljson.Encode(&text, m); err != nil {
		return nil, err
	}
	back, err := modeljson.Decode(&text, modeljson.Limits{})
	if err != nil {
		return nil, err
	}
	return back, same(m, back)
}

// throughUAI writes and reads a model of tables, and observations. What the format cannot hold goes as it is.
func throughUAI(m *factorgraph.Model, queries []infer.Query) (*factorgraph.Model, []infer.Query, error) {
	for _, f := range m.Factors {
		table, zero := Table(f.Table), true
		for _, x := range table {
			zero = zero && x.IsZero()
			if !x.Equal(rounded(x)) {
				return m, queries, nil
			}
		}
		if zero {
			return m, queries, nil
		}
	}
	var text bytes.Buffer
	if err := uai.Write(&text, m); err != nil {
		return nil, nil, err
	}
	back, err := uai.Read(&text, uai.Limits{})
	if err != nil {
		return nil, nil, err
	}
	out := slices.Clone(queries)
	for q := range out {
		var observed bytes.Buffer
		if err := uai.WriteEvidence(&observed, factorgraph.Evidence{Hard: out[q].Evidence.Hard}); err != nil {
			return nil, nil, err
		}
		ev, err := uai.ReadEvidence(&observed, m.Domains)
		if err != nil {
			return nil, nil, err
		}
		out[q].Evidence.Hard = ev.Hard
	}
	return back, out, same(m, back)
}

// rounded is the float64 nearest to x.
func rounded(x Number) Number {
	f := x.Float64()
	if f-f != 0 {
		return Number{}
	}
	return FromFloat(f, 0)
}

// same checks that two models have the same entries.
func same(a, b *factorgraph.Model) error {
	if !slices.Equal(a.Domains, b.Domains) || len(a.Factors) != len(b.Factors) {
		return fmt.Errorf("domains %v and %d factors became %v and %d", a.Domains, len(a.Factors), b.Domains, len(b.Factors))
	}
	for j := range a.Factors {
		if !slices.Equal(a.Factors[j].Scope, b.Factors[j].Scope) {
			return fmt.Errorf("factor %d: scope %v became %v", j, a.Factors[j].Scope, b.Factors[j].Scope)
		}
		if !sameEntries(a.Factors[j].Table, b.Factors[j].Table) {
			return fmt.Errorf("factor %d: other entries", j)
		}
	}
	return nil
}

// comparedEntries bounds the entries of a factor that are all compared; of a larger one as many are, drawn at random.
const comparedEntries = 1 << 10

func sameEntries(a, b tensor.Tensor) bool {
	dims := a.Dims()
	if !slices.Equal(dims, b.Dims()) {
		return false
	}
	if n, err := tensor.Size(dims); err == nil && n <= comparedEntries {
		return slices.EqualFunc(Table(a), Table(b), Number.Equal)
	}
	rng, x := rand.New(rand.NewPCG(uint64(len(dims)), 1)), make([]int, len(dims))
	for range comparedEntries {
		for i, d := range dims {
			x[i] = rng.IntN(d)
		}
		if !entry(a, x).Equal(entry(b, x)) {
			return false
		}
	}
	return true
}

// throughWire does what infer.Run does, with everything between the stages through its bytes.
func throughWire(ctx context.Context, c *Case) ([]btn.Result, error) {
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
	queries := make([]infer.Query, len(request.Queries))
	for q, w := range request.Queries {
		queries[q] = infer.Query{Evidence: w.Evidence, Marginals: w.Marginals, Over: w.Over, Joint: w.Joint}
	}
	if err := infer.CheckQueries(m.Domains, queries); err != nil {
		return nil, err
	}
	net, err := infer.Reparameterise(ctx, m, request.Settings)
	if err != nil {
		return nil, err
	}
	if net, err = coded(net, wire.EncodeNetwork, wire.DecodeNetwork); err != nil {
		return nil, err
	}
	job, err := infer.Learn(ctx, net, queries, request.Settings, nil)
	if err != nil {
		return nil, err
	}
	if job, err = coded(job, wire.EncodeJob, wire.DecodeJob); err != nil {
		return nil, err
	}
	if err := wire.CheckJob(net, job); err != nil {
		return nil, formatError{err}
	}
	values, err := contracted(ctx, net, job, queries, request.Settings.Memory)
	if err != nil {
		return nil, err
	}
	return wireAnswer(infer.Aggregate("truth", job, nil, values))
}

// coded is what comes back of x from its bytes.
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

// message is what comes back of a message from its bytes, in to.
func message(m, to wire.Message) error {
	b, err := wire.Encode(m)
	if err == nil {
		err = wire.Decode(b, to)
	}
	if err != nil {
		return formatError{err}
	}
	return nil
}

func wireRequest(c *Case) (*wire.Model, error) {
	body, err := wire.NewModelBody(c.Model)
	if err != nil {
		return nil, err
	}
	m := &wire.Model{Job: "truth", Model: body, Settings: c.Settings}
	for _, q := range c.Queries {
		m.Queries = append(m.Queries, wire.Query{Evidence: q.Evidence, Marginals: q.Marginals, Over: q.Over, Joint: q.Joint})
	}
	var back wire.Model
	return &back, message(m, &back)
}

// digest stands for that of a request.
var digest = wire.Digest(nil)

// contracted computes all units, chunk by chunk as infer.Run does, and takes every chunk through a partial.
func contracted(ctx context.Context, net *btn.Network, job *btn.Job, queries []infer.Query, memory int64) ([]btn.UnitValue, error) {
	var values []btn.UnitValue
	chunks, ends := infer.Chunks(net, job)
	shared, projectors := &contract.Shared{}, &contract.Recent{}
	for k, units := range chunks {
		part, err := infer.Contract(ctx, net, job, queries, units, infer.ContractOptions{Memory: memory, Shared: shared, Projectors: projectors})
		if err != nil {
			return nil, err
		}
		var back wire.Partial
		p := &wire.Partial{Job: "truth", Digest: digest, JobBlob: digest, K: k, N: len(chunks), Values: part, NumericKind: wire.NumericKind()}
		if err := message(p, &back); err != nil {
			return nil, err
		}
		values = append(values, back.Values...)
		if slices.Contains(ends, k+1) && infer.Settled(job, values) {
			break
		}
	}
	return values, nil
}

func wireAnswer(results []btn.Result) ([]btn.Result, error) {
	var back wire.Answer
	if err := message(&wire.Answer{Job: "truth", Digest: digest, Status: wire.StatusOK, Results: results}, &back); err != nil {
		return nil, err
	}
	return back.Results, nil
}
