package proposal

// The job whose queries are planned, and its memory of plans.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Job is the planning of one job's queries, one after the other. Plans are made at most once per job and key. It is used by one
// goroutine. WithSettings returns a Job under others, which shares what is made.
type Job struct {
	Net      *btn.Network   // without evidence
	Settings query.Settings // with defaults
	Memo     Memo           // nil: nothing is remembered
	Facts    *Facts         // of Net
	Problems *problem.Shared
	Options  problem.Options

	Method *Method // that the request names; nil: exact or auto, the planner's own
	IsPart bool    // the network is what one question depends on
	// HasLikelihoods reports whether the network has legs of the query's likelihoods. A task's plans are checked against the network without
	// them, so that no part may have numbers by leg.
	HasLikelihoods bool

	// The query that is planned for: its evidence, the network under it, and whether it is the job's only one and wants Z alone.
	Evidence    factorgraph.Evidence
	Conditioned *btn.Network
	Once        bool

	shared  *sharedPlans     // what all queries of the job have in common
	problem *problem.Problem // of the query, once it was needed
}

// sharedPlans are the plans that all queries of a job, under any settings, have in common.
type sharedPlans struct {
	derived map[derivation]*btn.Plan
	known   map[string]knownPlan // by key
	missed  bool                 // a plan was not remembered
	short   int                  // plans that the clock cut short
	asked   bool                 // a plan of the exact way was asked for
}

// plans are those that the job shares.
func (j *Job) plans() *sharedPlans {
	if j.shared == nil {
		j.shared = &sharedPlans{derived: map[derivation]*btn.Plan{}, known: map[string]knownPlan{}}
	}
	return j.shared
}

// WithSettings returns the job under settings of its own.
func (j *Job) WithSettings(s query.Settings) *Job {
	j.plans()
	limited := *j
	limited.Settings = s
	return &limited
}

// CutShort is the number of plans that the clock has cut short.
func (j *Job) CutShort() int { return j.plans().short }

// knownPlan is a plan that is known to the job, and whether the memo knew it before.
type knownPlan struct {
	plan *btn.Plan
	hit  bool
}

// For returns the job for a query: with its evidence, on the network under it. isOnce reports whether it is the job's only one and wants Z
// alone.
func (j *Job) For(evidence factorgraph.Evidence, conditioned *btn.Network, isOnce bool) *Job {
	j.plans()
	query := *j
	query.Evidence, query.Conditioned, query.Once, query.problem = evidence, conditioned, isOnce, nil
	return &query
}

// Summed returns the job for the same query on a network that is summed over variables of Z alone (btn.Network.Summed).
func (j *Job) Summed(conditioned *btn.Network) *Job {
	summed := j.For(j.Evidence, conditioned, j.Once)
	summed.Options.Summed = true
	return summed
}

// AskedAgain notes that a plan of the exact way is asked for. It reports whether one was before, in the same job.
func (j *Job) AskedAgain() bool {
	plans := j.plans()
	before := plans.asked
	plans.asked = true
	return before
}

// Problem returns the problem of the query, on which families keep their forms.
func (j *Job) Problem() *problem.Problem {
	if j.problem == nil {
		j.problem = j.Problems.Of(j.Net, j.Conditioned, j.Evidence, j.Options)
	}
	return j.problem
}

// CacheState reports whether all plans that the job needed were remembered: off without a memo.
func (j *Job) CacheState() string {
	switch {
	case j.Memo == nil:
		return btn.CacheOff
	case j.plans().missed:
		return btn.CacheMiss
	}
	return btn.CacheHit
}

// Missed notes that a plan was looked for and is not remembered.
func (j *Job) Missed() { j.plans().missed = true }

// Remember returns the plan of a key (Key), made through the memo at most once per job, and the state of the cache for it.
// An error is not remembered.
func (j *Job) Remember(
	ctx context.Context, settings string, shape contractionorder.Hypergraph, compute func(context.Context) (*btn.Plan, error),
) (*btn.Plan, string, error) {
	return j.Recall(ctx, j.Key(settings, shape), compute)
}

// Recall is Remember for a key.
func (j *Job) Recall(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (*btn.Plan, string, error) {
	plans := j.plans()
	k, ok := plans.known[key]
	if !ok {
		var err error
		if j.Memo == nil {
			k.plan, err = compute(ctx)
		} else {
			k.plan, k.hit, err = j.Memo.Do(ctx, key, compute)
		}
		if err != nil {
			return nil, "", err
		}
		plans.known[key] = k
		plans.missed = plans.missed || !k.hit
	}

	switch {
	case j.Memo == nil:
		return k.plan, btn.CacheOff, nil
	case k.hit:
		return k.plan, btn.CacheHit, nil
	}

	return k.plan, btn.CacheMiss, nil
}

// Knows reports whether a key's plan is known to the job.
func (j *Job) Knows(key string) bool {
	_, known := j.plans().known[key]
	return known
}

// Key identifies a plan by everything it depends on: algorithm version, base tensor, settings and, for a plan
// that depends on the shape of a network alone, that shape. The memory budget is among the settings.
func (j *Job) Key(settings string, shape contractionorder.Hypergraph) string {
	b := digest.New()
	b.Raw(j.Facts.digest[:])
	b.Raw([]byte(settings))
	b.Int(int(j.Settings.Memory))
	shape.Digest(b)
	return "btn:v1:decomposition:" + AlgorithmVersion + ":" + b.Hex()
}

// GrowthKey lists what a sequence of estimates depends on beside the network's shape: settings for Remember.
func (j *Job) GrowthKey(kind string, marginals bool) string {
	s := j.Settings
	return fmt.Sprintf("%s seed=%d marginals=%t bond=%d budget=%g accuracy=%g components=%d",
		kind, s.Seed, marginals, s.Bond, s.Budget, s.Accuracy, s.Components)
}

// derivation is a rule by which a plan is made of another one.
type derivation struct {
	rule string
	from *btn.Plan
}

// Derived returns the plan that a rule makes of another one: the same for all queries of the job, so that it is sent once.
func (j *Job) Derived(rule string, from *btn.Plan, make func() *btn.Plan) *btn.Plan {
	key, derived := derivation{rule, from}, j.plans().derived
	if derived[key] == nil {
		derived[key] = make()
	}
	return derived[key]
}

// Restricts reports whether evidence takes values from the indices of the network; under is the shape that it leaves.
func (j *Job) Restricts(ctx context.Context, under contractionorder.Hypergraph) (bool, error) {
	shape, err := j.Facts.Shape(ctx, j.Net)
	return err == nil && !SameDims(under, shape), err
}

// SameDims reports whether two shapes have the same dimensions.
func SameDims(a, b contractionorder.Hypergraph) bool {
	if len(a.Dims) != len(b.Dims) {
		return false
	}
	for i := range a.Dims {
		if a.Dims[i] != b.Dims[i] {
			return false
		}
	}
	return true
}
