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

// Job plans the queries of one job, one after the other. It makes a plan at most once for each key. One goroutine uses it. Copies for a
// query (For, Summed) and under other settings (WithSettings) share the plans that were made.
type Job struct {
	Net      *btn.Network   // without evidence
	Settings query.Settings // with defaults
	Memo     Memo           // nil: nothing is remembered
	Facts    *Facts         // of Net
	Problems *problem.Shared
	Options  problem.Options

	Method *Method // that the request names; nil: exact or auto, the planner's own
	IsPart bool    // Net is only what one question depends on
	// HasLikelihoods reports whether Net has legs for the query's likelihoods. A worker checks the parts of a plan against the network without
	// those legs, so that no part may then have numbers by leg.
	HasLikelihoods bool

	Evidence    factorgraph.Evidence // of the query that is planned for
	Conditioned *btn.Network         // Net under Evidence
	Once        bool                 // the query is the only one of the job, and wants only Z

	shared  *sharedState     // nil until it is needed (Job.sharedState)
	problem *problem.Problem // of the query; nil until it is needed (Job.Problem)
}

// sharedState has the plans of a job and what is known about them, for all its queries under any settings.
type sharedState struct {
	derived   map[derivation]*btn.Plan
	known     map[string]knownPlan // by key
	hasMissed bool                 // some plan was not remembered
	cutShort  int                  // number of plans that the clock cut short
	wasAsked  bool                 // a plan of the exact way was asked for
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
	other := *j
	other.Settings = s
	return &other
}

// CountCutShort returns the number of plans that the clock has cut short.
func (j *Job) CountCutShort() int { return j.sharedState().cutShort }

// knownPlan is a plan that the job has made or recalled.
type knownPlan struct {
	plan *btn.Plan
	hit  bool // the memo knew it before the job
}

// For returns a copy of the job for a query with this evidence, whose network under it is conditioned. isOnce reports whether the query
// is the only one of the job and wants only Z.
func (j *Job) For(evidence factorgraph.Evidence, conditioned *btn.Network, isOnce bool) *Job {
	j.sharedState()
	query := *j
	query.Evidence, query.Conditioned, query.Once, query.problem = evidence, conditioned, isOnce, nil
	return &query
}

// Summed returns a copy of the job for the same query on a network that is summed over variables which only Z needs (btn.Network.Summed).
func (j *Job) Summed(conditioned *btn.Network) *Job {
	summed := j.For(j.Evidence, conditioned, j.Once)
	summed.Options.Summed = true
	return summed
}

// NoteExactAsked notes that a plan of the exact way is asked for. It reports whether one was asked for before in the same job.
func (j *Job) NoteExactAsked() bool {
	shared := j.sharedState()
	wasAsked := shared.wasAsked
	shared.wasAsked = true
	return wasAsked
}

// Problem returns the problem of the query, which keeps the forms that methods make of it.
func (j *Job) Problem() *problem.Problem {
	if j.problem == nil {
		j.problem = j.Problems.Of(j.Net, j.Conditioned, j.Evidence, j.Options)
	}
	return j.problem
}

// CacheState returns btn.CacheHit if the memo remembered all plans that the job has needed, btn.CacheMiss if not, and btn.CacheOff
// without a memo.
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

// Remember returns the plan for settings and a shape (Key), and the state of the cache for it. The plan is made through the memo, at most
// once in a job. An error is not remembered.
func (j *Job) Remember(
	ctx context.Context, settings string, shape contractionorder.Hypergraph, compute func(context.Context) (*btn.Plan, error),
) (plan *btn.Plan, cacheState string, err error) {
	return j.Recall(ctx, j.Key(settings, shape), compute)
}

// Recall is Remember for a key that the caller has.
func (j *Job) Recall(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (plan *btn.Plan, cacheState string, err error) {
	shared := j.sharedState()
	known, ok := shared.known[key]
	if !ok {
		var err error
		if j.Memo == nil {
			known.plan, err = compute(ctx)
		} else {
			known.plan, known.hit, err = j.Memo.Do(ctx, key, compute)
		}
		if err != nil {
			return nil, "", err
		}
		shared.known[key] = known
		shared.hasMissed = shared.hasMissed || !known.hit
	}

	switch {
	case j.Memo == nil:
		return known.plan, btn.CacheOff, nil
	case known.hit:
		return known.plan, btn.CacheHit, nil
	}

	return known.plan, btn.CacheMiss, nil
}

// IsKnown reports whether the job has made or recalled the plan of a key.
func (j *Job) IsKnown(key string) bool {
	_, isKnown := j.sharedState().known[key]
	return isKnown
}

// Key returns the key of a plan, a digest of all that it depends on: the algorithm version, the network without evidence, the settings,
// the memory budget and, if the plan depends on one, a shape.
func (j *Job) Key(settings string, shape contractionorder.Hypergraph) string {
	b := digest.New()
	b.Raw(j.Facts.digest[:])
	b.Raw([]byte(settings))
	b.Int(int(j.Settings.Memory))
	shape.Digest(b)
	return "btn:v1:decomposition:" + AlgorithmVersion + ":" + b.Hex()
}

// GrowthKey returns settings for Remember that list what a sequence of estimates depends on in addition to the shape of the network.
func (j *Job) GrowthKey(kind string, marginals bool) string {
	s := j.Settings
	return fmt.Sprintf("%s seed=%d marginals=%t bond=%d budget=%g accuracy=%g components=%d",
		kind, s.Seed, marginals, s.Bond, s.Budget, s.Accuracy, s.Components)
}

// derivation identifies a plan that a rule makes of another one.
type derivation struct {
	rule string
	from *btn.Plan
}

// DerivePlan returns the plan that a rule makes of another one. All queries of the job get the same value, so that it is sent once.
func (j *Job) DerivePlan(rule string, from *btn.Plan, make func() *btn.Plan) *btn.Plan {
	key, derived := derivation{rule, from}, j.sharedState().derived
	if derived[key] == nil {
		derived[key] = make()
	}
	return derived[key]
}

// Restricts reports whether evidence excludes values of the network's indices. conditioned is the network's shape under the evidence.
func (j *Job) Restricts(ctx context.Context, conditioned contractionorder.Hypergraph) (bool, error) {
	shape, err := j.Facts.Shape(ctx, j.Net)
	return err == nil && !EqualDims(conditioned, shape), err
}

// EqualDims reports whether two shapes have the same dimensions.
func EqualDims(a, b contractionorder.Hypergraph) bool {
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
