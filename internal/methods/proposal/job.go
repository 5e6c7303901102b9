package proposal

// The job whose queries are planned, and its memory of plans.

import (
	"context"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Job plans the queries of one job, one after the other. It makes a plan at most once for each key. One goroutine uses it. Copies for a
// query (ForQuery, OnSummedNetwork) and under other settings (WithSettings) share the plans that were made.
type Job struct {
	Net      *btn.Network   // without evidence
	Settings query.Settings // with defaults
	Memo     Memo           // remembers plans across jobs; nil: nothing is remembered
	Facts    *Facts         // of Net
	Problems *problem.Shared
	Options  problem.Options

	Method *Method // that the request names; nil: exact or auto, the planner's own
	IsPart bool    // Net is only what one question depends on
	// HasLikelihoods reports whether Net has legs for the query's likelihoods. A worker checks the parts of a plan against the network
	// without those legs, so that no part may then have numbers by leg.
	HasLikelihoods bool

	Evidence    factorgraph.Evidence // of the query that is planned for
	Conditioned *btn.Network         // Net under Evidence
	WantsOnlyZ  bool                 // nothing else is wanted in the job than the Z of this query

	shared  *sharedState     // nil until it is needed (Job.sharedState)
	problem *problem.Problem // of the query; nil until it is needed (Job.Problem)
}

// sharedState has the plans of a job and what is known about them, for all its queries under any settings.
type sharedState struct {
	derived       map[derivation]*btn.Plan // plans that were made from others (DerivePlan)
	known         map[string]knownPlan     // plans that were made or recalled, by key
	hasMissed     bool                     // some plan was not in the memo
	cutShort      int                      // the number of plans that the clock cut short
	wasExactAsked bool                     // a plan of the exact methods was asked for
}

// sharedState returns the state that all copies of the job share. The first call makes it, which has to be before the job is copied.
func (j *Job) sharedState() *sharedState {
	if j.shared == nil {
		j.shared = &sharedState{derived: map[derivation]*btn.Plan{}, known: map[string]knownPlan{}}
	}
	return j.shared
}

// WithSettings returns a copy of the job under other settings.
func (j *Job) WithSettings(s query.Settings) *Job {
	j.sharedState()
	changed := *j
	changed.Settings = s
	return &changed
}

// CountCutShort returns the number of plans that the clock has cut short.
func (j *Job) CountCutShort() int { return j.sharedState().cutShort }

// knownPlan is a plan that the job has made or recalled.
type knownPlan struct {
	plan      *btn.Plan
	wasInMemo bool // the memo remembered it before the job
}

// ForQuery returns a copy of the job for a query with this evidence. conditioned is the network under the evidence. isOnce reports whether
// nothing else is wanted in the job than the Z of this query.
func (j *Job) ForQuery(evidence factorgraph.Evidence, conditioned *btn.Network, isOnce bool) *Job {
	j.sharedState()
	query := *j
	query.Evidence, query.Conditioned, query.WantsOnlyZ, query.problem = evidence, conditioned, isOnce, nil
	return &query
}

// OnSummedNetwork returns a copy of the job for the same query on another network, conditioned. That is its network under the evidence,
// in which variables were summed out that only Z needs (btn.Network.OnSummedNetwork).
func (j *Job) OnSummedNetwork(conditioned *btn.Network) *Job {
	summed := j.ForQuery(j.Evidence, conditioned, j.WantsOnlyZ)
	summed.Options.Summed = true
	return summed
}

// NoteExactAsked notes that a plan of the exact methods is asked for. It reports whether one was asked for before in the same job.
func (j *Job) NoteExactAsked() bool {
	shared := j.sharedState()
	wasAsked := shared.wasExactAsked
	shared.wasExactAsked = true
	return wasAsked
}

// Problem returns the problem of the query: its network under the evidence, with the forms that methods have made of it so far.
func (j *Job) Problem() *problem.Problem {
	if j.problem == nil {
		j.problem = j.Problems.ConditionedProblem(j.Net, j.Conditioned, j.Evidence, j.Options)
	}
	return j.problem
}

// CacheState returns btn.CacheHit if the memo, which remembers plans across jobs, had all plans that the job has needed. It returns
// btn.CacheMiss if not, and btn.CacheOff without a memo.
func (j *Job) CacheState() string {
	switch {
	case j.Memo == nil:
		return btn.CacheOff
	case j.sharedState().hasMissed:
		return btn.CacheMiss
	}
	return btn.CacheHit
}

// NoteMiss notes that the job needed a plan that the memo did not remember.
func (j *Job) NoteMiss() { j.sharedState().hasMissed = true }

// Remember returns the plan for some settings and a shape, whose key is Key, and the state of the cache for it. The plan comes from the
// job or its memo, or is made by compute, at most once in a job. An error is not remembered.
func (j *Job) Remember(
	ctx context.Context, settings string, shape contractionorder.Hypergraph, compute func(context.Context) (*btn.Plan, error),
) (plan *btn.Plan, cacheState string, err error) {
	return j.RememberByKey(ctx, j.Key(settings, shape), compute)
}

// RememberByKey returns the plan of a key, and the state of the cache for it: btn.CacheHit if the memo remembered it before the job,
// btn.CacheMiss if not, btn.CacheOff without a memo. A memo remembers plans across jobs. The plan comes from the job or its memo, or is
// made by compute. An error is not remembered.
func (j *Job) RememberByKey(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (plan *btn.Plan, cacheState string, err error) {
	shared := j.sharedState()
	entry, ok := shared.known[key] // a plan that the job has made or recalled before
	if !ok {
		var err error
		if j.Memo == nil {
			entry.plan, err = compute(ctx)
		} else {
			entry.plan, entry.wasInMemo, err = j.Memo.Do(ctx, key, compute)
		}
		if err != nil {
			return nil, "", err
		}
		shared.known[key] = entry
		shared.hasMissed = shared.hasMissed || !entry.wasInMemo
	}

	switch {
	case j.Memo == nil:
		return entry.plan, btn.CacheOff, nil
	case entry.wasInMemo:
		return entry.plan, btn.CacheHit, nil
	}
	return entry.plan, btn.CacheMiss, nil
}

// IsKnown reports whether the job has made or recalled the plan of a key.
func (j *Job) IsKnown(key string) bool {
	_, isKnown := j.sharedState().known[key]
	return isKnown
}

// Key returns the key of a plan, a digest of all that it depends on: the algorithm version, the network without evidence, the memory, and
// what the caller adds. settings is a text with the name of the method and its options. shape is a hypergraph on which the plan depends,
// empty if there is none.
func (j *Job) Key(settings string, shape contractionorder.Hypergraph) string {
	b := digest.New()
	b.Raw(j.Facts.digest[:])
	b.Raw([]byte(settings))
	b.Int(int(j.Settings.Memory))
	shape.Digest(b)
	return "btn:v1:decomposition:" + AlgorithmVersion + ":" + b.Hex()
}

// GrowthKey returns the settings of a plan of estimates for Remember: a text with the kind of the plan and all options on which a
// sequence of estimates depends.
func (j *Job) GrowthKey(kind string, marginals bool) string {
	s := j.Settings
	return fmt.Sprintf("%s seed=%d marginals=%t bond=%d budget=%g accuracy=%g components=%d",
		kind, s.Seed, marginals, s.Bond, s.Budget, s.Accuracy, s.Components)
}

// derivation identifies a plan that was made from another plan by a rule.
type derivation struct {
	rule string    // its name
	from *btn.Plan // the other plan
}

// DerivePlan returns the plan that a rule makes from another one. make is called once for each rule and plan. All queries of the job get
// the same value, so that it is sent to workers once.
func (j *Job) DerivePlan(rule string, from *btn.Plan, make func() *btn.Plan) *btn.Plan {
	key, derived := derivation{rule, from}, j.sharedState().derived
	if derived[key] == nil {
		derived[key] = make()
	}
	return derived[key]
}

// Restricts reports whether the evidence excludes values of the network's indices. conditioned is the shape of the network under the
// evidence. It compares the dimensions of that with those without evidence.
func (j *Job) Restricts(ctx context.Context, conditioned contractionorder.Hypergraph) (bool, error) {
	shape, err := j.Facts.Shape(ctx, j.Net)
	return err == nil && !EqualDims(conditioned, shape), err
}

// EqualDims reports whether the indices of two shapes have the same numbers of values.
func EqualDims(a, b contractionorder.Hypergraph) bool { return slices.Equal(a.Dims, b.Dims) }
