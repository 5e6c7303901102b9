package evaluate

// Methods: their questions, and their list.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
)

// Method answers models.
type Method struct {
	Name  string
	Step  float64 // Row.Step; NaN: none
	Solve func(ctx context.Context, m *factorgraph.Model, wantMarginals bool) (Outcome, error)
}

// Outcome is an answer. Fields that a method does not fill are NaN, or nil.
type Outcome struct {
	LnZ         float64     // nats
	Uncertainty float64     // stated, nats
	Marginals   [][]float64 // per variable and value
	Residual    float64     // ρ
	Components  int         // of the decomposition
	Flops       float64
	Seconds     float64 // wall time, set by the experiment
	Guarantee           // its CPU is set by the experiment
}

func unknown() Outcome {
	return Outcome{
		LnZ:         math.NaN(),
		Uncertainty: math.NaN(),
		Residual:    math.NaN(),
		Flops:       math.NaN(),
		Guarantee:   silent(),
	}
}

// timeLimit ends one answer: a method that needs longer has failed. A variable, because tests on a busy machine have no limit.
var timeLimit = time.Minute

// timed is m.Solve with the seconds it took.
func timed(ctx context.Context, m Method, model *factorgraph.Model, wantMarginals bool) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	start, before := now(), used()
	o, err := m.Solve(ctx, model, wantMarginals)
	o.Seconds, o.CPU = now().Sub(start).Seconds(), (used() - before).Seconds()
	return o, err
}

var exactSettings = query.Settings{Method: query.MethodExact}

// Settings is the system itself under these settings. A failed estimate is an error.
func Settings(name string, s query.Settings) Method {
	return Method{Name: name, Step: math.NaN(),
		Solve: func(ctx context.Context, m *factorgraph.Model, wantMarginals bool) (Outcome, error) {
			return answered(ctx, m, query.Query{Marginals: wantMarginals}, s)
		}}
}

// answered is the system's answer to one query.
func answered(ctx context.Context, m *factorgraph.Model, q query.Query, s query.Settings) (Outcome, error) {
	results, err := infer.Run(ctx, infer.Request{Job: "evaluate", Model: m, Queries: []query.Query{q}, Settings: s})
	if err != nil {
		return unknown(), err
	}
	return outcomeOf(results[0])
}

// outcomeOf turns a result into an outcome. A failed estimate is an error.
func outcomeOf(r query.Result) (Outcome, error) {
	o := unknown()
	if r.Error != nil {
		return o, fault.New(r.Error.Code, "%s", r.Error.Message)
	}
	switch {
	case r.Zero:
		o.LnZ = math.Inf(-1)
	case r.LogZ != nil:
		o.LnZ = *r.LogZ
	default:
		return o, fault.New(fault.FailedEstimate, "no ln Z")
	}

	o.Uncertainty, o.Residual, o.Components = known(r.Uncertainty), known(r.Residual), r.Components
	if r.Exact {
		o.Uncertainty = 0
	}
	if r.Run != nil {
		o.Flops = r.Run.Flops
	}
	o.Marginals, o.MarginalStated = query.Probabilities(r.Marginals), known(r.MarginalUncertainty)
	if r.Bounds != nil {
		o.Lower, o.Upper = known(r.Bounds.Lower), known(r.Bounds.Upper)
	}
	for _, e := range r.Estimates { // the last one that has a number
		if e.LogZ != nil {
			o.Used, o.StandardError, o.Tail = string(e.Family), known(e.StandardError), known(e.TailIndex)
		}
	}
	return o, nil
}

// known is a number, NaN without one.
func known(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// Methods are all that are known by name, in the sequence of figures. The tight ones have memory for
// 2^15 numbers only: where an exact answer fits, the system takes it, and nothing is learned about
// truncation on models small enough to be checked.
func Methods() []Method {
	const flops, tight = 2e9, 256 << 10 // about a second or two; bytes
	return []Method{
		onExpression("bp", propagate),
		Settings("symmetry-cp", query.Settings{
			Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Budget: flops,
		}),
		Settings("regions", query.Settings{Method: query.MethodRegions, Budget: flops}),
		// three sizes
		Settings("few-regions", query.Settings{Method: query.MethodRegions, Budget: flops / 200}),
		Settings("truncated-4", query.Settings{Method: query.MethodTruncated, Bond: 4, Budget: flops}),
		Settings("truncated-8", query.Settings{Method: query.MethodTruncated, Bond: 8, Budget: flops}),
		Settings("truncated-16", query.Settings{Method: query.MethodTruncated, Bond: 16, Budget: flops}),
		Settings("tight-4", query.Settings{Method: query.MethodTruncated, Bond: 4, Budget: flops, Memory: tight}),
		Settings("tight-8", query.Settings{Method: query.MethodTruncated, Bond: 8, Budget: flops, Memory: tight}),
		Settings("tight-16", query.Settings{Method: query.MethodTruncated, Bond: 16, Budget: flops, Memory: tight}),
		alongTree("tree-8", 8),
		alongTree("tree-16", 16),
		Settings("tight-ladder", query.Settings{Method: query.MethodTruncated, Budget: flops / 10, Memory: tight}),
	}
}

// Named returns the methods of these names, in their sequence, from Methods and the experiment families.
func Named(names ...string) ([]Method, error) {
	all := Methods()
	for _, a := range familyMethods() {
		if !slices.ContainsFunc(all, func(m Method) bool { return m.Name == a.Name }) {
			all = append(all, a.Method)
		}
	}
	list := among(all, names)
	for _, name := range names {
		if !slices.ContainsFunc(list, func(m Method) bool { return m.Name == name }) {
			return nil, fault.New(fault.BadInput, "evaluate: no method %q", name)
		}
	}
	return list, nil
}

// only are some of Methods.
func only(names ...string) []Method { return among(Methods(), names) }

// among are the methods of these names, in their sequence.
func among(all []Method, names []string) (list []Method) {
	for _, name := range names {
		for _, m := range all {
			if m.Name == name {
				list = append(list, m)
			}
		}
	}
	return list
}

func propagate(ctx context.Context, e *sumproduct.Expression) (Outcome, [][]float64, error) {
	s, err := bp.Run(ctx, e, bp.Options{})
	if err != nil {
		return unknown(), nil, err
	}
	o := unknown()
	o.LnZ = s.LnZ()
	beliefs := make([][]float64, len(e.Dims))
	for i := range e.Dims {
		beliefs[i] = s.Belief(i)
	}
	return o, beliefs, nil
}

// onExpression is a method that works on the model's network, unchanged; its marginals are per
// index.
func onExpression(
	name string, solve func(ctx context.Context, e *sumproduct.Expression) (Outcome, [][]float64, error),
) Method {
	return Method{Name: name, Step: math.NaN(),
		Solve: func(ctx context.Context, m *factorgraph.Model, wantMarginals bool) (Outcome, error) {
			net, err := reparam.Build(ctx, m, reparam.Options{})
			if err != nil {
				return unknown(), err
			}
			e, err := lower.Build(ctx, net)
			if err != nil {
				return unknown(), err
			}
			o, marginals, err := solve(ctx, e)
			if err != nil {
				return unknown(), fmt.Errorf("%s: %w", name, err)
			}
			if wantMarginals && marginals != nil {
				o.Marginals = ofVariables(m, e, marginals)
			}
			return o, nil
		}}
}

// ofVariables turns the marginals of the expression's indices into the marginals of the model's variables.
func ofVariables(m *factorgraph.Model, e *sumproduct.Expression, marginals [][]float64) [][]float64 {
	list := make([][]float64, len(m.Domains))
	for v, d := range m.Domains {
		list[v] = make([]float64, d)
		i := e.Variables[v]
		for k, p := range marginals[i] {
			x := k
			if e.Support != nil && e.Support[i] != nil {
				x = e.Support[i][k]
			}
			list[v][x] = p
		}
	}
	return list
}
