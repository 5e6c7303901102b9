// Package stage has the four stages as plain calls: reparameterise, learn, contract, aggregate.
// pkg/infer calls them in a row, the workers one each, and the answers have the same bits.
package stage

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/answer/aggregate"
	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
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
	ctx context.Context, m *factorgraph.Model, s btn.Settings,
) (*btn.Network, error) {
	return ReparameteriseFor(ctx, m, s, nil)
}

// ReparameteriseFor is Reparameterise for some queries: where one of them is parametric, every factor
// of the model is a core, in their sequence.
func ReparameteriseFor(
	ctx context.Context, m *factorgraph.Model, s btn.Settings, queries []query.Query,
) (*btn.Network, error) {
	s = s.WithDefaults()
	parametric := Parametric(queries)
	if !plan.ReadsMaps(s.Method) || parametric {
		s.Maps = btn.MapIdentity
	}
	if parametric {
		s.Cores = btn.CoresAreFactors
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
	ctx context.Context, m *factorgraph.Model, s btn.Settings, parametric bool,
) (*btn.Network, error) {
	if s.Maps == btn.MapBP {
		return bp.Network(ctx, m, s.Cores, bp.Options{})
	}
	return reparam.Build(ctx, m, reparam.Options{Maps: s.Maps, Cores: s.Cores, Parametric: parametric})
}

// Learn is the second stage: it assigns each query the plan that answers it, learned or taken from
// memo (nil: no memo).
func Learn(
	ctx context.Context, net *btn.Network, queries []query.Query, s btn.Settings, memo proposal.Memo,
) ([]btn.Assignment, error) {
	return LearnKnown(ctx, net, queries, s, memo, &plan.Known{})
}

// LearnKnown is Learn, of queries as Expand returns them, for networks that may be known from earlier calls.
func LearnKnown(
	ctx context.Context, net *btn.Network, queries []query.Query, s btn.Settings, memo proposal.Memo,
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
	Memory  int64 // bytes for tables, 0 means btn.DefaultMemory
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
// network above all, are made once. A unit that cannot be computed carries its error; the error
// returned is the context's or an infrastructure failure.
func Contract(
	ctx context.Context, net *btn.Network, assignments []btn.Assignment, queries []query.Query,
	units []btn.Unit, o ContractOptions,
) ([]btn.UnitValue, error) {
	values := make([]btn.UnitValue, len(units))
	var current *problem.Problem
	var about query.Query // of current
	of := -1              // its number
	if o.Until.IsZero() {
		o.Until, _ = ctx.Deadline()
	}

	for i, u := range units {
		values[i].Unit = u
		q := u.Query - o.First
		if q < 0 || q >= len(queries) || u.Query < 0 || u.Query >= len(assignments) {
			return nil, fault.New(
				fault.Internal, "stage: unit %d names query %d, there are %d from %d", i, u.Query,
				len(queries), o.First,
			)
		}

		a := &assignments[u.Query]
		var part btn.Part
		if a.Plan != nil {
			part, _ = a.Plan.Part(u.Part)
		}
		if part == nil {
			return nil, fault.New(
				fault.Internal, "stage: unit %d names part %d of query %d, whose plan has none", i,
				u.Part, u.Query,
			)
		}

		if of != u.Query {
			var err error
			options := problem.Options{
				Memory:  o.Memory,
				Threads: o.Threads,
				Memo:    o.Memo,
				Summed:  a.Summed,
			}
			var on *btn.Network
			on, about = Planned(net, queries[q], a, o.Shared)
			if current, err = o.Shared.Problem(on, about.Evidence, a.Messages, options); err != nil {
				values[i].Error = errorInfo(err, query.StageContract)
				of = -1
				continue
			}
			of = u.Query
		}

		value, err := contraction.Part(
			ctx, current, part, problem.Want{
				Marginals:   about.Marginals,
				Joint:       joint(a, about),
				Derivatives: about.Gradients,
				Target:      target(a.Sensitivity),
				Best:        about.Best,
				Map:         about.Map,
				Samples:     about.Samples,
				Seed:        about.Seed,
				Until:       o.Until,
			},
		)
		if ctxErr := ctx.Err(); ctxErr != nil {
			return nil, ctxErr
		}

		if err != nil {
			values[i].Error = errorInfo(err, query.StageContract)
			continue
		}

		if value.Marginals != nil {
			value.Marginals.Domains = contraction.Domains(current.Net)
			value.Marginals = value.Marginals.Of(about.Targets)
		}
		if queries[q].Conflict && impossible(value, a.Plan) && !queries[q].Evidence.IsEmpty() {
			c := &conflicts{ctx: ctx, net: net, o: o}
			value.Conflict = c.conflict(a, queries[q].Evidence)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		values[i].Value = value
	}
	return values, nil
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
func errorInfo(err error, stage string) *btn.ErrorInfo {
	return &btn.ErrorInfo{Code: fault.CodeOf(err), Message: err.Error(), Stage: stage}
}

// Aggregate is the last stage: it computes one result per query from the values of all units, in
// any order (Lemma 5). A query that grows needs only the values with which it has settled.
// evidenceFiles may be nil, or has one name per query, empty for none.
func Aggregate(
	job string, assignments []btn.Assignment, evidenceFiles []string, values []btn.UnitValue,
) []btn.Result {
	return aggregate.Results(inputs(job, assignments, evidenceFiles, values))
}

// AggregateNow is Aggregate for values that no more will follow: queries that grow are answered
// with these.
func AggregateNow(
	job string, assignments []btn.Assignment, evidenceFiles []string, values []btn.UnitValue,
) []btn.Result {
	in := inputs(job, assignments, evidenceFiles, values)
	for q := range in {
		in[q].Deadline = true
	}
	return aggregate.Results(in)
}

// SoFar is AggregateNow for a job that goes on: no deadline ended it.
func SoFar(
	job string, assignments []btn.Assignment, evidenceFiles []string, values []btn.UnitValue,
) []btn.Result {
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
func Failed(job string, queries int, err error, stage string) []btn.Result {
	results := make([]btn.Result, queries)
	for q := range results {
		a := btn.Assignment{Error: errorInfo(err, stage), Cache: btn.CacheOff}
		results[q] = aggregate.Result(aggregate.Input{Job: job, Query: q, Assignment: &a})
	}
	return results
}
