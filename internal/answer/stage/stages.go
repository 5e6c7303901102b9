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
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/proposal"
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
	parametric := Parametric(queries)
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
	if s.Maps == query.MapBP {
		return bp.Network(ctx, m, s.Cores, bp.Options{})
	}
	return reparam.Build(ctx, m, reparam.Options{Maps: s.Maps, Cores: s.Cores, Parametric: parametric})
}

// Learn is the second stage: it assigns each query the plan that answers it, learned or taken from
// memo (nil: no memo).
func Learn(
	ctx context.Context, net *btn.Network, queries []query.Query, s query.Settings, memo proposal.Memo,
) ([]btn.Assignment, error) {
	return LearnKnown(ctx, net, queries, s, memo, &plan.Known{})
}

// LearnKnown is Learn, of queries as Expand returns them, for networks that may be known from earlier calls.
func LearnKnown(
	ctx context.Context, net *btn.Network, queries []query.Query, s query.Settings, memo proposal.Memo,
	known *plan.Known,
) ([]btn.Assignment, error) {
	assignments, err := plan.AssignKnown(ctx, net, queries, s, memo, known)
	if err != nil {
		return nil, err
	}
	return assignments, expanded(net, queries, assignments)
}

// ContractOptions are the bounds of one worker's contraction, and the memories that it may reuse.
type ContractOptions struct {
	First   int   // position in the request of the first of the queries given
	Memory  int64 // bytes for tables, 0 means query.DefaultMemory
	Threads int   // 0 means all processors

	// Until is when parts end that have an answer at any time; zero: the context's deadline.
	Until time.Time

	// Shared keeps intermediate results for the calls of one job; may be nil. Values do not depend
	// on it.
	Shared *problem.Shared

	// Memo remembers values that parts of other jobs may need; nil: they are computed each time. Values of parts do not
	// depend on it.
	Memo problem.Memo
}

// Contract is the third stage: it computes the values of some units, each under its query's
// evidence, in the order given. The common parts of successive units of a query, its simplified
// network above all, are made once, and queries that have one part in common are contracted
// together where that takes less time. A unit that cannot be computed carries its error; the error
// returned is the context's or an infrastructure failure.
func Contract(
	ctx context.Context, net *btn.Network, assignments []btn.Assignment, queries []query.Query,
	units []btn.Unit, o ContractOptions,
) ([]btn.UnitValue, error) {
	if o.Until.IsZero() {
		o.Until, _ = ctx.Deadline()
	}
	c := &contractor{ctx: ctx, net: net, assignments: assignments, queries: queries, o: o, query: -1}
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
	queries     []query.Query // from o.First on
	o           ContractOptions
	query       int              // of problem; -1: none
	problem     *problem.Problem // of the last unit
}

// asked is what a unit names, and the network that its plan is one for, with the query about that.
type asked struct {
	btn.Unit
	*btn.Assignment
	query *query.Query
	part  btn.Part
	net   *btn.Network
	about query.Query
}

// asked finds what a unit names.
func (c *contractor) asked(u btn.Unit) (asked, error) {
	q := u.Query - c.o.First
	if q < 0 || q >= len(c.queries) || u.Query < 0 || u.Query >= len(c.assignments) {
		return asked{}, fault.New(
			fault.Internal, "stage: query %d is named, there are %d from %d", u.Query, len(c.queries), c.o.First,
		)
	}
	a := asked{Unit: u, Assignment: &c.assignments[u.Query], query: &c.queries[q]}
	if a.Plan != nil {
		a.part, _ = a.Plan.Part(u.Part)
	}
	if a.part == nil {
		return asked{}, fault.New(
			fault.Internal, "stage: part %d of query %d is named, whose plan has none", u.Part, u.Query,
		)
	}
	a.net, a.about = Planned(c.net, *a.query, a.Assignment, c.o.Shared)
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
	var wants []problem.Want
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
	options := problem.Options{Memory: c.o.Memory, Threads: c.o.Threads, Memo: c.o.Memo, Summed: a.Summed}
	p, err := c.o.Shared.Problem(a.net, a.about.Evidence, a.Messages, options)
	c.query, c.problem = a.Query, p
	if err != nil {
		c.query = -1
	}
	return p, err
}

// want is what a unit's query asks for.
func (c *contractor) want(a asked) problem.Want {
	return problem.Want{
		Marginals:   a.about.Marginals,
		Targets:     a.about.Targets,
		Joint:       joint(a.Assignment, a.about),
		Derivatives: a.about.Gradients,
		Target:      target(a.Sensitivity),
		Cases:       a.about.Cases,
		Best:        a.about.Best,
		Map:         a.about.Map,
		Samples:     a.about.Samples,
		Seed:        a.about.Seed,
		Until:       c.o.Until,
	}
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
	if impossible(v, a.Plan) {
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
	if a.query.Conflict && !a.query.Evidence.IsEmpty() {
		search := &conflicts{ctx: c.ctx, net: c.net, o: c.o}
		v.Conflict = search.conflict(a.Assignment, a.query.Evidence)
	}
}

// Planned returns the network that a query's plan is one for, the whole or its relevant part, and the query about it.
func Planned(net *btn.Network, q query.Query, a *btn.Assignment, shared *problem.Shared) (*btn.Network, query.Query) {
	if !a.Relevant {
		return net, q
	}
	return shared.Relevant(net, q)
}

// joint lists the variables of the joint marginal that an assignment is for, as the query about its network names them.
func joint(a *btn.Assignment, about query.Query) []int {
	if len(a.Joint) == 0 {
		return nil
	}
	return about.Joint
}

// impossible reports whether a value says that Z is 0. A search has no share of Z: where it finds an assignment Z is not 0.
func impossible(v btn.Value, p *btn.Plan) bool {
	return v.Z.IsZero() && v.Found == nil && v.Doubt == "" && p.Len() == 1
}

// target is the observation that a sensitivity is of; nil: none is asked for.
func target(s *btn.Sensitivity) *factorgraph.Observation {
	if s == nil {
		return nil
	}
	return &factorgraph.Observation{Var: s.Target.Variable, Value: s.Target.Value}
}

// errorInfo returns an error as it stands in results.
func errorInfo(err error, stage string) *query.ErrorInfo {
	return &query.ErrorInfo{Code: fault.CodeOf(err), Message: err.Error(), Stage: stage}
}

// Aggregate is the last stage: it computes one result per query from the values of all units, in
// any order (Lemma 5). A query that grows needs only the values with which it has settled.
// evidenceFiles may be nil, or has one name per query, empty for none.
func Aggregate(
	job string, assignments []btn.Assignment, evidenceFiles []string, values []btn.UnitValue,
) []query.Result {
	return aggregate.Results(inputs(job, assignments, evidenceFiles, values))
}

// AggregateNow is Aggregate for values that no more will follow: queries that grow are answered
// with these.
func AggregateNow(
	job string, assignments []btn.Assignment, evidenceFiles []string, values []btn.UnitValue,
) []query.Result {
	in := inputs(job, assignments, evidenceFiles, values)
	for q := range in {
		in[q].Deadline = true
	}
	return aggregate.Results(in)
}

// SoFar is AggregateNow for a job that goes on: no deadline ended it.
func SoFar(
	job string, assignments []btn.Assignment, evidenceFiles []string, values []btn.UnitValue,
) []query.Result {
	results := AggregateNow(job, assignments, evidenceFiles, values)
	for i := range results {
		r := &results[i]
		r.Ended = ""
		r.Warnings = slices.DeleteFunc(r.Warnings, func(w string) bool { return w == aggregate.DeadlineCame })
	}
	return results
}

// Settled reports whether the values suffice: no query needs any more.
func Settled(assignments []btn.Assignment, values []btn.UnitValue) bool {
	for _, in := range inputs("", assignments, nil, values) {
		if !aggregate.Settled(in) {
			return false
		}
	}
	return true
}

// inputs distributes the values to their queries.
func inputs(
	job string, assignments []btn.Assignment, evidenceFiles []string, values []btn.UnitValue,
) []aggregate.Input {
	byQuery := make([][]btn.UnitValue, len(assignments))
	for _, v := range values {
		if v.Query >= 0 && v.Query < len(byQuery) {
			byQuery[v.Query] = append(byQuery[v.Query], v)
		}
	}

	in := make([]aggregate.Input, len(assignments))
	sampling := aggregate.Sampling(assignments)
	for q := range assignments {
		in[q] = aggregate.Input{Job: job, Query: q, Assignment: &assignments[q], Values: byQuery[q], Sampling: sampling}
		if q < len(evidenceFiles) {
			in[q].EvidenceFile = evidenceFiles[q]
		}
	}
	return in
}

// Failed returns the results of a job none of whose queries has an answer, all for the same reason.
func Failed(job string, queries int, err error, stage string) []query.Result {
	results := make([]query.Result, queries)
	for q := range results {
		a := btn.Assignment{Error: errorInfo(err, stage), Cache: btn.CacheOff}
		results[q] = aggregate.Result(aggregate.Input{Job: job, Query: q, Assignment: &a})
	}
	return results
}
