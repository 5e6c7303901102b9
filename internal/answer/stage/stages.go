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

// Reparameterise is the first stage: it writes the model as a base tensor network (Lemma 1), without any evidence. Errors carry
// fault.BadInput if the model is wrong, and fault.Unsupported if its numbers are beyond the range of this version.
//
// Only method symmetry-cp, which learns in them, gets maps. Methods that contract B itself get the identity under all settings: Z does not
// depend on maps, and a table multiplied by one loses entries below 10^-16 of its largest.
func Reparameterise(
	ctx context.Context, m *factorgraph.Model, s query.Settings,
) (*btn.Network, error) {
	return ReparameteriseFor(ctx, m, s, nil)
}

// ReparameteriseFor reparameterises a model, as Reparameterise does, for some queries: it makes a network of tensors (cores), with a linear
// map on every link between them. If one of the queries is parametric, such as one for gradients, every factor of the model is a core, in
// the sequence of the factors, and all maps are the identity. The maps are the identity, too, if the method does not read them.
func ReparameteriseFor(
	ctx context.Context, m *factorgraph.Model, s query.Settings, queries []query.Query,
) (*btn.Network, error) {
	s = s.WithDefaults()
	areParametric := AreParametric(queries)
	if !plan.ReadsMaps(s.Method) || areParametric {
		s.Maps = query.MapIdentity
	}
	if areParametric {
		s.Cores = query.CoresAreFactors
	}

	net, err := buildNetwork(ctx, m, s, areParametric)
	if ctxErr := ctx.Err(); ctxErr != nil {
		return nil, ctxErr
	}
	switch {
	case errors.Is(err, btn.ErrRange) || errors.Is(err, tensor.ErrNotFinite): // numbers are beyond float64: the model is not at fault
		return nil, fault.Wrap(fault.Unsupported, err)
	case err != nil:
		return nil, fault.Wrap(fault.BadInput, err)
	}
	return net, nil
}

// buildNetwork builds the network of a model with the maps and cores of the settings: maps by belief propagation, or those of reparam.
// Maps that will be learned start as the identity. isParametric states that every factor has to be a core of its own.
func buildNetwork(
	ctx context.Context, m *factorgraph.Model, s query.Settings, isParametric bool,
) (*btn.Network, error) {
	switch s.Maps {
	case query.MapBP:
		return bp.GaugedNetwork(ctx, m, s.Cores, bp.Options{})
	case query.MapLearned:
		s.Maps = query.MapIdentity
	}
	return reparam.Build(ctx, m, reparam.Options{Maps: s.Maps, Cores: s.Cores, Parametric: isParametric})
}

// Learn is the second stage: it returns an assignment for each demand of the queries, in the sequence of Demands. The plan of an assignment
// is learned or taken from memo (nil: no memo). known is what earlier calls for the network have found (nil: nothing).
func Learn(
	ctx context.Context, net *btn.Network, queries []query.Query, s query.Settings, memo proposal.Memo, known *plan.NetworkMemory,
) ([]btn.Assignment, error) {
	demands, asked := questions.Demands(contraction.Domains(net), queries)
	assignments, err := plan.Assign(ctx, net, demands, s, memo, known)
	if err != nil {
		return nil, err
	}
	noteAsked(assignments, asked)
	return assignments, nil
}

// Demands returns the demands of queries on a network, as questions.Demands does: one for each query, and then the further demands.
func Demands(net *btn.Network, queries []query.Query) []btn.Demand {
	demands, _ := questions.Demands(contraction.Domains(net), queries)
	return demands
}

// AreParametric reports whether one of the queries needs every factor of the model as a core of its own.
func AreParametric(queries []query.Query) bool { return questions.AreParametric(queries) }

// noteAsked writes query i into assignment i, whose result answers it. The assignments of further demands have no query.
func noteAsked(assignments []btn.Assignment, asked []btn.Asked) {
	for i := range asked {
		assignments[i].Asked = &asked[i]
	}
}

// CountAsked returns the number of assignments that have a result of their own, one for each query. Assignments of further demands, which a
// question needs under other evidence than its query's, have none.
func CountAsked(assignments []btn.Assignment) int {
	n := 0
	for i := range assignments {
		if assignments[i].Asked != nil {
			n++
		}
	}
	return n
}

// ContractOptions are the bounds of one worker's contraction, and intermediate results that it may reuse.
type ContractOptions struct {
	First   int   // position in the request of the first demand that Contract is given
	Memory  int64 // bytes for tables, 0 means query.DefaultMemory
	Threads int   // 0 means all processors

	// Until is when a part ends that has an answer at any time; zero: at the context's deadline.
	Until time.Time

	// Shared keeps intermediate results for the calls of one job; may be nil. Values do not depend
	// on it.
	Shared *problem.Shared
}

// Contract is the third stage: it computes the values of some units in their sequence, each under the evidence of its demand. A unit is one
// part of the plan of one demand. If a unit cannot be computed, its value has the error. The error that Contract returns is that of the
// context, or of the infrastructure.
//
// What successive units of a demand have in common, above all its simplified network, is made once. Successive units with one part for
// several demands are contracted together if that takes less time.
func Contract(
	ctx context.Context, net *btn.Network, assignments []btn.Assignment, demands []btn.Demand,
	units []btn.Unit, o ContractOptions,
) ([]btn.UnitValue, error) {
	if o.Until.IsZero() {
		o.Until, _ = ctx.Deadline() // zero if there is none
	}
	c := &contractor{ctx: ctx, net: net, assignments: assignments, demands: demands, options: o, query: -1} // −1: of no query yet
	values := make([]btn.UnitValue, len(units))
	for i := 0; i < len(units); {
		next, err := c.contractNext(units[i:])
		if err != nil {
			return nil, fmt.Errorf("unit %d: %w", i, err)
		}
		i += copy(values[i:], next)
	}
	return values, nil
}

// contractor computes values of units. A unit is one part of the plan of one demand. The contractor remembers the problem of the last unit,
// since the next one is often of the same demand.
type contractor struct {
	ctx         context.Context
	net         *btn.Network
	assignments []btn.Assignment
	demands     []btn.Demand // from options.First on
	options     ContractOptions
	query       int              // the demand of problem; -1: there is no problem
	problem     *problem.Problem // of the last unit
}

// plannedUnit is a unit with the part, the assignment and the demand that its numbers stand for. Query and Part are fields of the unit;
// Plan, Summed and Messages are fields of the assignment.
type plannedUnit struct {
	btn.Unit
	*btn.Assignment
	demand    *btn.Demand // on the whole network
	part      btn.Part
	net       *btn.Network // the network that the plan is for: the whole or its relevant part
	netDemand btn.Demand   // the demand on net
}

// resolve looks up what the two numbers of a unit stand for: the demand u.Query with its assignment, and the part u.Part of the plan of
// that assignment. u.Query is the number of the demand in the whole job. c.assignments has the assignments of all demands of the job, while
// c.demands may have only some of the demands: its first one is demand options.First of the job. It returns an error if there is no such
// demand or part.
func (c *contractor) resolve(u btn.Unit) (plannedUnit, error) {
	position := u.Query - c.options.First // in c.demands
	hasDemand := position >= 0 && position < len(c.demands)
	hasAssignment := u.Query >= 0 && u.Query < len(c.assignments)
	if !hasDemand || !hasAssignment {
		return plannedUnit{}, fault.New(
			fault.Internal, "stage: query %d is named, there are %d from %d", u.Query, len(c.demands), c.options.First,
		)
	}
	p := plannedUnit{Unit: u, Assignment: &c.assignments[u.Query], demand: &c.demands[position]}
	if p.Assignment.Plan != nil {
		p.part, _ = p.Assignment.Plan.Part(u.Part) // nil if the plan has no such part
	}
	if p.part == nil {
		return plannedUnit{}, fault.New(
			fault.Internal, "stage: part %d of query %d is named, whose plan has none", u.Part, u.Query,
		)
	}
	p.net, p.netDemand = PlannedNetwork(c.net, *p.demand, p.Assignment, c.options.Shared)
	return p, nil
}

// contractNext computes the value of the first unit (one part of the plan of one demand), or of several of the first units together: as
// many as have the same part, each for another demand, if the part can be contracted for several demands at once (contraction.Batcher).
func (c *contractor) contractNext(units []btn.Unit) ([]btn.UnitValue, error) {
	first, err := c.resolve(units[0])
	if err != nil {
		return nil, err
	}
	batcher, ok := first.part.(contraction.Batcher)
	if !ok {
		value, err := c.contractOne(first)
		return []btn.UnitValue{value}, err
	}
	batch := []plannedUnit{first}
	for _, u := range units[1:] {
		unit, err := c.resolve(u)
		fits := err == nil && unit.part == first.part && unit.net == first.net
		if !fits || len(batch) == maxBatch {
			break // if u has an error, it comes up when u is the first unit
		}
		batch = append(batch, unit)
	}
	return c.contractBatch(batcher, batch)
}

// maxBatch is the largest number of demands that are contracted together, whose networks and values are in memory at a time.
const maxBatch = 64

// contractOne computes the value of a unit, one part of the plan of one demand. If it cannot be computed, the value has the error. The
// error that is returned is the context's.
func (c *contractor) contractOne(u plannedUnit) (btn.UnitValue, error) {
	value := btn.UnitValue{Unit: u.Unit}
	p, err := c.problemOf(u)
	if err != nil {
		value.Error = errorInfo(err, query.StageContract)
		return value, nil
	}
	v, err := contraction.Part(c.ctx, p, u.part, c.wantOf(u))
	return c.valueOf(u, p, v, err)
}

// contractBatch computes the values of the units of a batch: one part of a plan for several demands. If the network under the evidence of
// a unit cannot be made, its value has the error; all other units are contracted together. The error is the context's.
func (c *contractor) contractBatch(part contraction.Batcher, batch []plannedUnit) ([]btn.UnitValue, error) {
	values := make([]btn.UnitValue, len(batch))
	var problems []*problem.Problem
	var wants []btn.Want
	var positions []int // positions[n] is the position in batch of problem n
	for k, u := range batch {
		p, err := c.problemOf(u)
		if err != nil {
			values[k] = btn.UnitValue{Unit: u.Unit, Error: errorInfo(err, query.StageContract)}
			continue
		}
		problems, wants, positions = append(problems, p), append(wants, c.wantOf(u)), append(positions, k)
	}
	if len(problems) == 0 {
		return values, nil
	}
	contracted, errs, err := contraction.Parts(c.ctx, problems, part, wants)
	if err != nil {
		return nil, err
	}
	for n, k := range positions {
		if values[k], err = c.valueOf(batch[k], problems[n], contracted[n], errs[n]); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// problemOf returns the problem of a unit of work (one part of the plan of one demand): the network under the demand's evidence. It
// remembers the problem for the next unit, since units of one demand follow each other. u.Query is the number of the demand.
func (c *contractor) problemOf(u plannedUnit) (*problem.Problem, error) {
	if c.query == u.Query {
		return c.problem, nil
	}
	options := problem.Options{Memory: c.options.Memory, Threads: c.options.Threads, Summed: u.Summed}
	p, err := c.options.Shared.Problem(u.net, u.netDemand.Evidence, u.Messages, options) // u.Messages: of belief propagation, from planning
	c.query, c.problem = u.Query, p
	if err != nil {
		c.query = -1 // no demand has this number: nothing is remembered
	}
	return p, err
}

// wantOf returns what the demand of a unit wants, with the time at which its parts are to end.
func (c *contractor) wantOf(u plannedUnit) btn.Want {
	want := u.netDemand.Want
	want.Until = c.options.Until
	return want
}

// valueOf turns what the contraction of a part of a plan returned, a value v or a failure, into the value of the unit u. Marginals are
// restricted to the targets of the demand. If the value shows that Z is 0, an explanation is added. The error is the context's.
func (c *contractor) valueOf(u plannedUnit, p *problem.Problem, v btn.Value, failure error) (btn.UnitValue, error) {
	value := btn.UnitValue{Unit: u.Unit}
	if err := c.ctx.Err(); err != nil {
		return value, err
	}
	if failure != nil {
		value.Error = errorInfo(failure, query.StageContract)
		return value, nil
	}
	if v.Marginals != nil {
		v.Marginals.Domains = contraction.Domains(u.net)
		v.Marginals = v.Marginals.Select(u.netDemand.Targets)
	}
	if u.showsZero(v) {
		c.explainZero(u, p, &v)
	}
	value.Value = v
	return value, c.ctx.Err()
}

// explainZero adds to the value v of a part of a plan, which shows that Z is 0, the reason why it is, if the zeros of the network tell. If
// the demand asks for it and has evidence, it also adds which observations contradict each other.
func (c *contractor) explainZero(u plannedUnit, p *problem.Problem, v *btn.Value) {
	if conflict, err := preprocess.Explain(c.ctx, p.Net); err == nil { // an error: the zeros do not show it
		v.Why = strings.TrimSuffix(conflict.String(), ".")
	}
	if u.demand.Conflict && !u.demand.Evidence.IsEmpty() {
		search := &conflictSearch{ctx: c.ctx, net: c.net, options: c.options}
		if u.Assignment.Asked != nil {
			search.switches = u.Assignment.Asked.Query.Switches
		}
		v.Conflict = search.find(u.Assignment, u.demand.Evidence)
	}
}

// PlannedNetwork returns the network that the plan of an assignment is for, and the demand d on it: net itself, or its relevant part if the
// assignment is for that. shared may be nil.
func PlannedNetwork(net *btn.Network, d btn.Demand, a *btn.Assignment, shared *problem.Shared) (*btn.Network, btn.Demand) {
	if !a.Relevant {
		return net, d
	}
	return shared.Relevant(net, d)
}

// showsZero reports whether the value v of this unit, a part of a plan, shows that Z is 0: v is 0 without doubt, and the part is the only
// term of Z in the plan. Parts that find assignments are no terms of Z, so their value shows nothing.
func (u *plannedUnit) showsZero(v btn.Value) bool {
	isZero := v.Z.IsZero() && v.Doubt == ""
	findsAssignments := v.Found != nil || u.part.About().Finds != ""
	if !isZero || findsAssignments {
		return false
	}
	terms := 0
	for _, e := range u.Assignment.Plan.Estimates {
		for _, part := range e.Parts {
			if part.About().Finds == "" {
				terms++
			}
		}
	}
	return terms == 1
}

// errorInfo returns an error in the form that it has in results, as one of a stage.
func errorInfo(err error, stage string) *query.ErrorInfo {
	return &query.ErrorInfo{Code: fault.CodeOf(err), Message: sentence.Text(err.Error()), Stage: stage}
}

// Aggregate is the last stage: it computes one result per query from the values of all units, which may be in any order (Lemma 5). A query
// whose plan grows needs only the values up to the estimate with which it has settled.
func Aggregate(job string, assignments []btn.Assignment, values []btn.UnitValue) []query.Result {
	return questions.Results(inputs(job, assignments, values))
}

// AggregateNow computes the results as Aggregate does, for a job that the deadline has ended. Queries whose plans grow are answered with
// the values that have arrived.
func AggregateNow(job string, assignments []btn.Assignment, values []btn.UnitValue) []query.Result {
	in := inputs(job, assignments, values)
	for q := range in {
		in[q].IsDeadlineOver = true
	}
	return questions.Results(in)
}

// InterimResults computes the results of a job that goes on, from the values that have arrived. In contrast to those of AggregateNow,
// they do not state that a deadline ended them.
func InterimResults(job string, assignments []btn.Assignment, values []btn.UnitValue) []query.Result {
	results := AggregateNow(job, assignments, values)
	for i := range results {
		r := &results[i]
		r.Ended = ""
		r.Warnings = slices.DeleteFunc(r.Warnings, func(w string) bool { return w == aggregate.DeadlineCame })
	}
	return results
}

// Settled reports whether the values are enough for an answer: no demand needs any further value.
func Settled(assignments []btn.Assignment, values []btn.UnitValue) bool {
	for _, in := range inputs("", assignments, values) {
		if !aggregate.Settled(in) {
			return false
		}
	}
	return true
}

// inputs returns the input of the aggregation for each assignment, with the values that belong to it. The field Query of a value is the
// number of its assignment; values with any other number are left out.
func inputs(job string, assignments []btn.Assignment, values []btn.UnitValue) []aggregate.Input {
	byDemand := make([][]btn.UnitValue, len(assignments))
	for _, v := range values {
		if v.Query >= 0 && v.Query < len(byDemand) {
			byDemand[v.Query] = append(byDemand[v.Query], v)
		}
	}

	list := make([]aggregate.Input, len(assignments))
	sampling := aggregate.CountSampling(assignments)
	for q := range assignments {
		list[q] = aggregate.Input{Job: job, Query: q, Assignment: &assignments[q], Values: byDemand[q], Sampling: sampling}
	}
	return list
}

// FailedResults returns the results of a job that failed as a whole: one for each of its queries, each with the same error, as one of a
// stage.
func FailedResults(job string, queries int, err error, stage string) []query.Result {
	in := make([]aggregate.Input, queries)
	for q := range in {
		a := btn.Assignment{Error: errorInfo(err, stage), Cache: btn.CacheOff}
		in[q] = aggregate.Input{Job: job, Query: q, Assignment: &a}
	}
	return questions.Results(in)
}
