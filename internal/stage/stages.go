// Package stage has the four stages as plain calls: reparameterise, learn, contract, aggregate. pkg/infer calls them in a row, the
// workers one each, and the answers have the same bits.
package stage

import (
	"context"
	"errors"

	"github.com/basetensor/basetensor/internal/aggregate"
	"github.com/basetensor/basetensor/internal/bp"
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contract"
	"github.com/basetensor/basetensor/internal/plan"
	"github.com/basetensor/basetensor/internal/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Reparameterise is the first stage: the model as a base tensor network (Lemma 1), without any evidence.
// Maps are for symmetry-cp, which learns in them: what contracts B itself gets the identity, whatever the settings say. Z does
// not depend on maps, and a table multiplied by one has lost what is 10^-16 of its largest entry.
// Errors are the model's and carry fault.BadInput, or fault.Unsupported where its numbers are beyond what this version holds.
func Reparameterise(ctx context.Context, m *factorgraph.Model, s btn.Settings) (*btn.Network, error) {
	s = s.WithDefaults()
	if s.Method != btn.MethodSymmetryCP {
		s.Maps = btn.MapIdentity
	}
	net, err := reparameterise(ctx, m, s)
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

func reparameterise(ctx context.Context, m *factorgraph.Model, s btn.Settings) (*btn.Network, error) {
	if s.Maps == btn.MapBP {
		return bp.Network(ctx, m, s.Cores, bp.Options{})
	}
	return reparam.Build(ctx, m, reparam.Options{Maps: s.Maps, Cores: s.Cores})
}

// Learn is the second stage: which decomposition answers each query, learned or taken from memo (nil: no memo).
func Learn(ctx context.Context, net *btn.Network, queries []query.Query, s btn.Settings, memo plan.Memo) (*btn.Job, error) {
	return LearnKnown(ctx, net, queries, s, memo, &plan.Known{})
}

// LearnKnown is Learn for networks that may be known from earlier calls.
func LearnKnown(ctx context.Context, net *btn.Network, queries []query.Query, s btn.Settings, memo plan.Memo, known *plan.Known) (*btn.Job, error) {
	return plan.AssignKnown(ctx, net, queries, s, memo, known)
}

// ContractOptions bound one worker's contraction.
type ContractOptions struct {
	First   int   // the query of the request that is the first of those given
	Memory  int64 // bytes for tables, 0 means btn.DefaultMemory
	Threads int   // 0 means all processors
	// Shared is what the calls for one job may hand on to each other, nil for nothing. Values are the same either way.
	Shared *contract.Shared
	// Projectors remembers those of truncated trees, nil: they are learned each time. Values are the same either way.
	Projectors contract.ProjectorMemo
}

// Contract is the third stage: the values of some units, each under its query's evidence, in the order given.
// A unit that cannot be computed carries its error; the error returned is the context's or an infrastructure failure.
func Contract(ctx context.Context, net *btn.Network, job *btn.Job, queries []query.Query, units []btn.Unit, o ContractOptions) ([]btn.UnitValue, error) {
	if o.Memory == 0 {
		o.Memory = btn.DefaultMemory
	}
	values := make([]btn.UnitValue, len(units))
	conditioned, of := net, -1
	for i, u := range units {
		values[i].Unit = u
		q := u.Query - o.First
		if q < 0 || q >= len(queries) || u.Query < 0 || u.Query >= len(job.Assignments) {
			return nil, fault.New(fault.Internal, "stage: unit %d names query %d, there are %d from %d", i, u.Query, len(queries), o.First)
		}
		d := job.Assignments[u.Query].Decomposition
		if d < 0 || d >= len(job.Decompositions) || u.Component < 0 || u.Component >= len(job.Decompositions[d].Components) {
			return nil, fault.New(fault.Internal, "stage: unit %d names component %d of decomposition %d", i, u.Component, d)
		}
		if of != u.Query {
			var err error
			if conditioned, err = net.Condition(queries[q].Evidence); err != nil {
				values[i].Error, conditioned = errorInfo(err, StageContract), net
				continue
			}
			of = u.Query
		}
		value, err := contract.Component(ctx, conditioned, job.Decompositions[d], u.Component, contract.Options{Memory: o.Memory, Threads: o.Threads, Marginals: queries[q].Marginals, Joint: job.Assignments[u.Query].Joint,
			Base: net, Evidence: queries[q].Evidence, Messages: job.Assignments[u.Query].Messages, Shared: o.Shared, Projectors: o.Projectors})
		if ctxErr := ctx.Err(); ctxErr != nil {
			return nil, ctxErr
		}
		if err != nil {
			values[i].Error = errorInfo(err, StageContract)
			continue
		}
		if value.Marginals != nil {
			value.Marginals.Domains = domains(net)
		}
		values[i].Value = value
	}
	return values, nil
}

// domains lists the domain sizes of the network's variables.
func domains(net *btn.Network) []int {
	d := make([]int, len(net.Variables))
	for v := range d {
		d[v] = net.Variables[v].Domain
	}
	return d
}

func errorInfo(err error, stage string) *btn.ErrorInfo {
	return &btn.ErrorInfo{Code: fault.CodeOf(err), Message: err.Error(), Stage: stage}
}

// Aggregate is the last stage: one result per query from the values of all units, in any order (Lemma 5). A query that grows
// needs those with which it has settled. evidenceFiles may be nil, or has one name per query, empty for none.
func Aggregate(job string, j *btn.Job, evidenceFiles []string, values []btn.UnitValue) []btn.Result {
	return aggregate.Results(inputs(job, j, evidenceFiles, values))
}

// AggregateNow is Aggregate when no more values will come: queries that grow are answered with what is there.
func AggregateNow(job string, j *btn.Job, evidenceFiles []string, values []btn.UnitValue) []btn.Result {
	in := inputs(job, j, evidenceFiles, values)
	for q := range in {
		in[q].Deadline = true
	}
	return aggregate.Results(in)
}

// Settled reports whether the values there are suffice: every query that grows has settled, none of the others needs any.
func Settled(j *btn.Job, values []btn.UnitValue) bool {
	for _, in := range inputs("", j, nil, values) {
		if !aggregate.Settled(in) && (in.Decomposition == nil || in.Decomposition.Growth != nil || len(in.Values) < len(in.Decomposition.Components)) {
			return false
		}
	}
	return true
}

func inputs(job string, j *btn.Job, evidenceFiles []string, values []btn.UnitValue) []aggregate.Input {
	byQuery := make([][]btn.UnitValue, len(j.Assignments))
	for _, v := range values {
		if v.Query >= 0 && v.Query < len(byQuery) {
			byQuery[v.Query] = append(byQuery[v.Query], v)
		}
	}
	in := make([]aggregate.Input, len(j.Assignments))
	for q := range j.Assignments {
		in[q] = aggregate.Input{Job: job, Query: q, Assignment: &j.Assignments[q], Values: byQuery[q]}
		if d := j.Assignments[q].Decomposition; j.Assignments[q].Error == nil && d >= 0 && d < len(j.Decompositions) {
			in[q].Decomposition = j.Decompositions[d]
		}
		if q < len(evidenceFiles) {
			in[q].EvidenceFile = evidenceFiles[q]
		}
	}
	return in
}

// Failed returns the results of a job none of whose queries has an answer, for the same reason.
func Failed(job string, queries int, err error, stage string) []btn.Result {
	results := make([]btn.Result, queries)
	for q := range results {
		a := btn.Assignment{Decomposition: -1, Error: errorInfo(err, stage), Cache: "off"}
		results[q] = aggregate.Result(aggregate.Input{Job: job, Query: q, Assignment: &a})
	}
	return results
}
