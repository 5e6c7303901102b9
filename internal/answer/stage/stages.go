// Package stage has the four stages as plain calls: reparameterise, learn, contract, aggregate.
// pkg/infer calls them in a row, the workers one each, and the answers have the same bits.
package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/answer/aggregate"
	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/answer/questions"
	"github.com/basetensor/basetensor/internal/base/sentence"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Reparameterise is the first stage: it writes the model as a base tensor network (Lemma 1),
// without any evidence. Only method symmetry-cp, which learns in them, gets maps; the methods that
// contract B itself get the identity under all settings, because Z does not depend on maps, and a
// table multiplied by one loses entries below 10^-16 of its largest. Errors carry fault.BadInput
// where the model is wrong, and fault.Unsupported where its numbers are beyond the range of this
// version.
func Reparameterise(
	ctx context.Context, m *factorgraph.Model, s query.Settings,
) (*btn.Network, error) {
	return ReparameteriseFor(ctx, m, s, nil)
}

// ReparameteriseFor is Reparameterise for some queries: where one of them is parametric, every factor
// of the model is a core, in their sequence.
func ReparameteriseFor(
	ctx context.Context, m *factorgraph.Model, s query.Settings, queries []query.Query,
) (*btn.Network, error) {
	s = s.WithDefaults()
	parametric := AreParametric(queries)
	if !plan.ReadsMaps(s.Method) || parametric {
		s.Maps = query.MapIdentity
	}
	if parametric {
		s.Cores = query.CoresAreFactors
	}

	net, err := reparameterise(ctx, m, s, parametric)
	if ctxErr := ctx.Err(); ctxErr != nil {
		return nil, ctxErr
	}
	switch {
	case errors.Is(err, btn.ErrRange) || errors.Is(err, tensor.ErrNotFinite):
		return nil, fault.Wrap(fault.Unsupported, err)
	case err != nil:
		return nil, fault.Wrap(fault.BadInput, err)
	}
	return net, nil
}

// reparameterise builds the network with the maps of the settings.
func reparameterise(
	ctx context.Context, m *factorgraph.Model, s query.Settings, parametric bool,
) (*btn.Network, error) {
	switch s.Maps {
	case query.MapBP:
		return bp.Network(ctx, m, s.Cores, bp.Options{})
	case query.MapLearned:
		s.Maps = query.MapIdentity // where learning begins
	}
	return reparam.Build(ctx, m, reparam.Options{Maps: s.Maps, Cores: s.Cores, Parametric: parametric})
}

// Learn is the second stage: it assigns each demand of the queries, as Demands returns them, the plan that provides it, learned or
// taken from memo (nil: no memo). known is what earlier calls for the network have found (nil: nothing).
func Learn(
	ctx context.Context, net *btn.Network, queries []query.Query, s query.Settings, memo proposal.Memo, known *plan.Known,
) ([]btn.Assignment, error) {
	demands, asked := questions.Demands(contraction.Domains(net), queries)
	assignments, err := plan.Assign(ctx, net, demands, s, memo, known)
	if err != nil {
		return nil, err
	}
	note(assignments, asked)
	return assignments, nil
}

// Demands returns what queries need of a network: see questions.Demands.
func Demands(net *btn.Network, queries []query.Query) []btn.Demand {
	demands, _ := questions.Demands(contraction.Domains(net), queries)
	return demands
}

// AreParametric reports whether one of the queries needs every factor of the model as a core of its own.
func AreParametric(queries []query.Query) bool { return questions.AreParametric(queries) }

// note writes the queries into the assignments whose results answer them.
func note(assignments []btn.Assignment, asked []btn.Asked) {
	for i := range asked {
		assignments[i].Asked = &asked[i]
	}
}

// CountAsked returns how many of the assignments have results: those of the queries.
func CountAsked(assignments []btn.Assignment) int {
	n := 0
	for i := range assignments {
		if assignments[i].Asked != nil {
			n++
		}
	}
	return n
}

// ContractOptions are the bounds of one worker's contraction, and the memory that it may reuse.
type ContractOptions struct {
	First   int   // position in the request of the first of the queries given
	Memory  int64 // bytes for tables, 0 means query.DefaultMemory
	Threads int   // 0 means all processors

	// Until is when parts end that have an answer at any time; zero: the context's deadline.
	Until time.Time

	// Shared keeps intermediate results for the calls of one job; may be nil. Values do not depend
	// on it.
	Shared *problem.Shared
}

// Contract is the third stage: it computes the values of some units, each under its demand's
// evidence, in the order given. The common parts of successive units of a demand, its simplified
// network above all, are made once, and demands that have one part in common are contracted
// together where that takes less time. A unit that cannot be computed carries its error; the error
// returned is the context's or an infrastructure failure.
func Contract(
	ctx context.Context, net *btn.Network, assignments []btn.Assignment, demands []btn.Demand,
	units []btn.Unit, o ContractOptions,
) ([]btn.UnitValue, error) {
	if o.Until.IsZero() {
		o.Until, _ = ctx.Deadline()
	}
	c := &contractor{ctx: ctx, net: net, assignments: assignments, demands: demands, o: o, query: -1}
	values := make([]btn.UnitValue, len(units))
	for i := 0; i < len(units); {
		some, err := c.next(units[i:])
		if err != nil {
			return nil, fmt.Errorf("unit %d: %w", i, err)
		}
		i += copy(values[i:], some)
	}
	return values, nil
}

// contractor computes values of units.
type contractor struct {
	ctx         context.Context
	net         *btn.Network
	assignments []btn.Assignment
	demands     []btn.Demand // from o.First on
	o           ContractOptions
	query       int              // of problem; -1: none
	problem     *problem.Problem // of the last unit
}

// asked is what a unit names, and the network that its plan is one for, with the demand on that.
type asked struct {
	btn.Unit
	*btn.Assignment
	demand *btn.Demand
	part   btn.Part
	net    *btn.Network
	about  btn.Demand
}

// asked finds what a unit names.
func (c *contractor) asked(u btn.Unit) (asked, error) {
	q := u.Query - c.o.First
	if q < 0 || q >= len(c.demands) || u.Query < 0 || u.Query >= len(c.assignments) {
		return asked{}, fault.New(
			fault.Internal, "stage: query %d is named, there are %d from %d", u.Query, len(c.demands), c.o.First,
		)
	}
	a := asked{Unit: u, Assignment: &c.assignments[u.Query], demand: &c.demands[q]}
	if a.Plan != nil {
		a.part, _ = a.Plan.Part(u.Part)
	}
	if a.part == nil {
		return asked{}, fault.New(
			fault.Internal, "stage: part %d of query %d is named, whose plan has none", u.Part, u.Query,
		)
	}
	a.net, a.about = Planned(c.net, *a.demand, a.Assignment, c.o.Shared)
	return a, nil
}

// next computes the values of the first units: of one, or of several queries that have its part in common.
func (c *contractor) next(units []btn.Unit) ([]btn.UnitValue, error) {
	first, err := c.asked(units[0])
	if err != nil {
		return nil, err
	}
	batcher, ok := first.part.(contraction.Batcher)
	if !ok {
		value, err := c.one(first)
		return []btn.UnitValue{value}, err
	}
	batch := []asked{first}
	for _, u := range units[1:] {
		a, err := c.asked(u)
		if err != nil || len(batch) == mostTogether || a.part != first.part || a.net != first.net {
			break
		}
		batch = append(batch, a)
	}
	return c.together(batcher, batch)
}

// mostTogether bounds the queries whose networks and values are there at a time.
const mostTogether = 64

// one computes the value of a unit. The error is the context's.
func (c *contractor) one(a asked) (btn.UnitValue, error) {
	value := btn.UnitValue{Unit: a.Unit}
	p, err := c.problemOf(a)
	if err != nil {
		value.Error = errorInfo(err, query.StageContract)
		return value, nil
	}
	v, err := contraction.Part(c.ctx, p, a.part, c.want(a))
	return c.valueOf(a, p, v, err)
}

// together computes the values of units with one part. The error is the context's.
func (c *contractor) together(part contraction.Batcher, batch []asked) ([]btn.UnitValue, error) {
	values := make([]btn.UnitValue, len(batch))
	var problems []*problem.Problem
	var wants []btn.Want
	var places []int // of problems in batch
	for k, a := range batch {
		p, err := c.problemOf(a)
		if err != nil {
			values[k] = btn.UnitValue{Unit: a.Unit, Error: errorInfo(err, query.StageContract)}
			continue
		}
		problems, wants, places = append(problems, p), append(wants, c.want(a)), append(places, k)
	}
	if len(problems) == 0 {
		return values, nil
	}
	all, errs, err := contraction.Parts(c.ctx, problems, part, wants)
	if err != nil {
		return nil, err
	}
	for n, k := range places {
		if values[k], err = c.valueOf(batch[k], problems[n], all[n], errs[n]); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// problemOf returns the problem of a unit, the last one where it is of the same query.
func (c *contractor) problemOf(a asked) (*problem.Problem, error) {
	if c.query == a.Query {
		return c.problem, nil
	}
	options := problem.Options{Memory: c.o.Memory, Threads: c.o.Threads, Summed: a.Summed}
	p, err := c.o.Shared.Problem(a.net, a.about.Evidence, a.Messages, options)
	c.query, c.problem = a.Query, p
	if err != nil {
		c.query = -1
	}
	return p, err
}

// want is what a unit's demand wants.
func (c *contractor) want(a asked) btn.Want {
	want := a.about.Want
	want.Until = c.o.Until
	return want
}

// valueOf makes what a contraction returned the value of a unit. The error is the context's.
func (c *contractor) valueOf(a asked, p *problem.Problem, v btn.Value, failure error) (btn.UnitValue, error) {
	value := btn.UnitValue{Unit: a.Unit}
	if err := c.ctx.Err(); err != nil {
		return value, err
	}
	if failure != nil {
		value.Error = errorInfo(failure, query.StageContract)
		return value, nil
	}
	if v.Marginals != nil {
		v.Marginals.Domains = contraction.Domains(a.net)
		v.Marginals = v.Marginals.Of(a.about.Targets)
	}
	if a.isImpossible(v) {
		c.explain(a, p, &v)
	}
	value.Value = v
	return value, c.ctx.Err()
}

// explain says why Z is 0, if the zeros of the network show that, and which observations contradict each other, if that was asked for.
func (c *contractor) explain(a asked, p *problem.Problem, v *btn.Value) {
	if conflict, err := preprocess.Explain(c.ctx, p.Net); err == nil {
		v.Why = strings.TrimSuffix(conflict.String(), ".")
	}
	if a.demand.Conflict && !a.demand.Evidence.IsEmpty() {
		search := &conflicts{ctx: c.ctx, net: c.net, o: c.o}
		if a.Assignment.Asked != nil {
			search.switches = a.Assignment.Asked.Query.Switches
		}
		v.Conflict = search.conflict(a.Assignment, a.demand.Evidence)
	}
}

// Planned returns the network that an assignment's plan is one for, the whole or its relevant part, and the demand on it.
func Planned(net *btn.Network, d btn.Demand, a *btn.Assignment, shared *problem.Shared) (*btn.Network, btn.Demand) {
	if !a.Relevant {
		return net, d
	}
	return shared.Relevant(net, d)
}

// isImpossible reports whether the value of a unit says that Z is 0: the unit is the only term of Z. A search has no share of Z: where it
// finds an assignment Z is not 0.
func (a *asked) isImpossible(v btn.Value) bool {
	if !v.Z.IsZero() || v.Found != nil || v.Doubt != "" || a.part.About().Finds != "" {
		return false
	}
	terms := 0
	for _, e := range a.Plan.Estimates {
		for _, part := range e.Parts {
			if part.About().Finds == "" {
				terms++
			}
		}
	}
	return terms == 1
}

// errorInfo returns an error as it stands in results.
func errorInfo(err error, stage string) *query.ErrorInfo {
	return &query.ErrorInfo{Code: fault.CodeOf(err), Message: sentence.Text(err.Error()), Stage: stage}
}

// Aggregate is the last stage: it computes one result per query from the values of all units, in
// any order (Lemma 5). A query that grows needs only the values with which it has settled.
func Aggregate(job string, assignments []btn.Assignment, values []btn.UnitValue) []query.Result {
	return questions.Results(inputs(job, assignments, values))
}

// AggregateNow is Aggregate for values that no more will follow: queries that grow are answered
// with these.
func AggregateNow(job string, assignments []btn.Assignment, values []btn.UnitValue) []query.Result {
	in := inputs(job, assignments, values)
	for q := range in {
		in[q].Deadline = true
	}
	return questions.Results(in)
}

// SoFar is AggregateNow for a job that goes on: no deadline ended it.
func SoFar(job string, assignments []btn.Assignment, values []btn.UnitValue) []query.Result {
	results := AggregateNow(job, assignments, values)
	for i := range results {
		r := &results[i]
		r.Ended = ""
		r.Warnings = slices.DeleteFunc(r.Warnings, func(w string) bool { return w == aggregate.DeadlineCame })
	}
	return results
}

// Settled reports whether the values suffice: no demand needs any more.
func Settled(assignments []btn.Assignment, values []btn.UnitValue) bool {
	for _, in := range inputs("", assignments, values) {
		if !aggregate.Settled(in) {
			return false
		}
	}
	return true
}

// inputs distributes the values to their demands.
func inputs(job string, assignments []btn.Assignment, values []btn.UnitValue) []aggregate.Input {
	byDemand := make([][]btn.UnitValue, len(assignments))
	for _, v := range values {
		if v.Query >= 0 && v.Query < len(byDemand) {
			byDemand[v.Query] = append(byDemand[v.Query], v)
		}
	}

	in := make([]aggregate.Input, len(assignments))
	sampling := aggregate.Sampling(assignments)
	for q := range assignments {
		in[q] = aggregate.Input{Job: job, Query: q, Assignment: &assignments[q], Values: byDemand[q], Sampling: sampling}
	}
	return in
}

// Failed returns the results of a job none of whose queries has an answer, all for the same reason.
func Failed(job string, queries int, err error, stage string) []query.Result {
	in := make([]aggregate.Input, queries)
	for q := range in {
		a := btn.Assignment{Error: errorInfo(err, stage), Cache: btn.CacheOff}
		in[q] = aggregate.Input{Job: job, Query: q, Assignment: &a}
	}
	return questions.Results(in)
}
