package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/digest"
	_ "github.com/basetensor/basetensor/internal/families" // plans that a cache holds have parts of all of them
	"github.com/basetensor/basetensor/internal/families/circuits"
	"github.com/basetensor/basetensor/internal/families/closed"
	"github.com/basetensor/basetensor/internal/families/counts"
	"github.com/basetensor/basetensor/internal/families/descent"
	"github.com/basetensor/basetensor/internal/families/exact"
	"github.com/basetensor/basetensor/internal/families/gradients"
	"github.com/basetensor/basetensor/internal/families/structured"
	"github.com/basetensor/basetensor/internal/frobenius"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/internal/problem"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Assign decides for every query which decomposition of net's base tensor answers it, learning what is not in memo
// (nil: nothing is remembered, Cache is "off"). What is learned depends on the network and the settings alone; only how
// C = B is contracted is adapted to a query's evidence, where that is cheaper.
//
// Method exact: see exact. Method circuit: see byCircuit.
// Method auto: exact where it fits the memory and costs at most AutoFlops, else what
// grows: see approximate. A query that exceeds the budget has its error in its assignment, with what it
// needs.
func Assign(
	ctx context.Context, net *btn.Network, queries []query.Query, s btn.Settings, memo Memo,
) ([]btn.Assignment, error) {
	return AssignKnown(ctx, net, queries, s, memo, &Known{})
}

// AssignKnown is Assign for networks that may be known from earlier calls.
func AssignKnown(
	ctx context.Context, net *btn.Network, queries []query.Query, s btn.Settings, memo Memo, known *Known,
) ([]btn.Assignment, error) {
	s = s.WithDefaults()
	a := &assigner{
		ctx:      ctx,
		net:      net,
		settings: s,
		memo:     memo,
		known:    map[string]knownPlan{},
		facts:    known.factsOf(net),
		problems: known.Problems,
		options:  known.Options,
		alone:    len(queries) == 1,
	}
	if a.options.Memory == 0 {
		a.options.Memory = s.Memory
	}
	if a.problems == nil {
		a.problems = new(problem.Shared)
	}
	var assignments []btn.Assignment
	for _, q := range queries {
		assignment, err := a.assign(q)
		if err != nil {
			if ctxErr := ctx.Err(); ctxErr != nil {
				return nil, ctxErr
			}
			assignment = btn.Assignment{
				Cache: a.cacheState(),
				Error: &btn.ErrorInfo{Code: fault.CodeOf(err), Message: err.Error(), Stage: query.StageLearn},
			}
		}
		assignment.Over = q.Over
		assignment.Targets = q.Targets
		assignment.Weight = q.Weight
		assignment.Event = q.Over > 0 && q.Over <= len(queries) && restricts(q.Evidence, queries[q.Over-1].Evidence)
		assignment.Warnings = slices.Concat(net.Warnings, assignment.Warnings)
		assignments = append(assignments, assignment)
	}

	return assignments, nil
}

// assigner carries one job's decisions. Plans are made at most once per job and key.
type assigner struct {
	ctx      context.Context
	net      *btn.Network
	settings btn.Settings
	memo     Memo
	facts    *facts
	exactKey string               // of the exact way, once it was needed
	known    map[string]knownPlan // by key
	anyMiss  bool
	short    bool                    // a plan was cut short by the clock since this was false last
	bethe    map[*btn.Plan]*btn.Plan // plan, nil for none → the one that begins with the value of belief propagation
	atOnce   map[*btn.Plan]*btn.Plan // plan that begins with that value → the one that has the bound by messages next
	problems *problem.Shared
	options  problem.Options
	alone    bool // the job has one query
	// Of the query that is assigned: whether it is the job's only one and wants Z alone, its evidence, the network under it, and its
	// problem once it was needed.
	once        bool
	evidence    factorgraph.Evidence
	conditioned *btn.Network
	problem     *problem.Problem
	messages    *modelMessages // of the network without evidence, once they were needed
}

// cacheState says whether all that the assignment needed was remembered.
// current returns the problem of the query that is assigned.
func (a *assigner) current() *problem.Problem {
	if a.problem == nil {
		a.problem = a.problems.Of(a.net, a.conditioned, a.evidence, a.options)
	}
	return a.problem
}

func (a *assigner) cacheState() string {
	switch {
	case a.memo == nil:
		return btn.CacheOff
	case a.anyMiss:
		return btn.CacheMiss
	}
	return btn.CacheHit
}

// caution says beforehand why an answer of an exact decomposition may not be exact: the network's
// tensors were rounded by maps, or, for closed forms of rank one, float64 may lose something. Who contracts C
// = B finds out what it has lost, and numbers in count space carry exponents of their own.
func (a *assigner) caution(to *btn.Assignment, conditioned *btn.Network) {
	if to.Plan == nil || !to.Plan.Exact() {
		return
	}
	warnings := a.facts.mapped
	if !carried(&to.Plan.Estimates[0]) {
		warnings = slices.Concat(warnings, a.facts.span.warnings(conditioned))
	}
	to.Unsure = len(warnings) > 0
	to.Warnings = append(to.Warnings, warnings...)
}

// carried reports whether all numbers of an exact estimate carry exponents, or what they lose is found out.
func carried(e *btn.Estimate) bool {
	for _, part := range e.Parts {
		switch q := part.(type) {
		case *exact.Elimination, *exact.Slices, *exact.Groups, *gradients.Adjoints, *closed.SymmetryRankOne, *counts.Counts,
			*descent.Descent, *circuits.Circuit, *circuits.Cube, *structured.Nodes:
		case *exact.Product:
			for _, factor := range q.Factors {
				if !carried(factor.Estimate) {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

// assign chooses the way of one query: joint marginals exactly; else by the method, and auto tries the exact way first.
func (a *assigner) assign(q query.Query) (btn.Assignment, error) {
	conditioned, err := a.net.Condition(q.Evidence)
	switch {
	case errors.Is(err, btn.ErrRange):
		return btn.Assignment{}, fault.Wrap(fault.Unsupported, err)
	case err != nil:
		return btn.Assignment{}, fault.Wrap(fault.BadInput, err)
	}

	a.on(conditioned, false)
	a.evidence = q.Evidence
	a.once = a.alone && !q.Marginals && len(q.Joint) == 0 && !q.Descends() && !btn.Parametric(q)
	if q.Descends() {
		return a.descents(q)
	}
	return a.total(q)
}

// on makes the following calls plan for a network under the query's evidence.
func (a *assigner) on(conditioned *btn.Network, summed bool) {
	a.problem, a.conditioned, a.options.Summed = nil, conditioned, summed
}

// total assigns what Z and its marginals are computed by.
func (a *assigner) total(q query.Query) (btn.Assignment, error) {
	conditioned := a.conditioned
	if btn.Parametric(q) {
		return a.gradients(q)
	}
	if len(q.Joint) > 0 {
		joint, err := a.joint(conditioned, q)
		if err == nil {
			a.caution(&joint, conditioned)
		}
		return joint, err
	}

	switch a.settings.Method {
	case btn.MethodSymmetryCP:
		return a.symmetryCP(conditioned)
	case btn.MethodTruncated, btn.MethodRegions, btn.MethodSampled:
		return a.approximate(conditioned, q, nil)
	case btn.MethodCircuit:
		return a.byCircuit(conditioned)
	case btn.MethodExact, btn.MethodAuto:
	default:
		return btn.Assignment{}, fault.New(fault.BadInput, "plan: unknown method %q", a.settings.Method)
	}

	if a.settings.Method == btn.MethodAuto && a.settings.NoExact {
		return a.approximate(conditioned, q, nil)
	}
	if of := conditioned.Summed(); of != conditioned && btn.OfSumAlone(q) {
		a.on(of, true)
	}
	exact, err := a.exactInTime(a.conditioned, q.Marginals)
	exact.Summed = a.options.Summed
	if err == nil {
		a.caution(&exact, conditioned)
	}
	if err == nil || a.settings.Method == btn.MethodExact || fault.CodeOf(err) != fault.OverBudget {
		return exact, err
	}
	if a.options.Summed {
		a.on(conditioned, false)
	}
	return a.approximate(conditioned, q, []string{"the exact way does not fit: " + err.Error()})
}

// exactInTime is exact for a share of the time for planning where method auto has something else to answer with.
func (a *assigner) exactInTime(conditioned *btn.Network, marginals bool) (assignment btn.Assignment, err error) {
	if a.settings.Method != btn.MethodAuto {
		return a.exact(conditioned, marginals)
	}
	err = a.within(policy.ExactShare, "a plan of the exact way", func() error {
		assignment, err = a.exact(conditioned, marginals)
		return err
	})
	return assignment, err
}

// symmetryCP assigns the paper's learned decomposition; a closed form with few enough terms is used where B has one.
func (a *assigner) symmetryCP(conditioned *btn.Network) (btn.Assignment, error) {
	s := frobenius.Settings(a.settings)
	if timed(a.ctx) {
		s.LearnFlops = min(s.LearnFlops, policy.LearnShare*a.settings.Budget)
	}
	plan, hit, err := a.remember(settingsKey(s), contractionorder.Hypergraph{},
		func(ctx context.Context) (*btn.Plan, error) {
			closed, ok, err := ClosedForm(ctx, a.net, s.Components)
			if err != nil || ok {
				return closed, err
			}
			affordable, warning := afford(a.net, s)
			learned, err := frobenius.Learn(ctx, a.net, affordable)
			if err == nil && warning != "" {
				learned.Warnings = append(learned.Warnings, warning)
			}
			return learned, err
		})
	if err != nil {
		return btn.Assignment{}, err
	}
	links, err := btn.LnLinks(a.ctx, conditioned)
	if err != nil {
		return btn.Assignment{}, err
	}
	assignment := btn.Assignment{Plan: plan, Cache: hit, LnLinks: links}
	a.caution(&assignment, conditioned)
	return assignment, nil
}

// settingsKey lists what a learned decomposition depends on beside the network.
func settingsKey(s btn.Settings) string {
	return fmt.Sprintf("%s components=%d seed=%d nonnegative=%t maps=%t sweeps=%d starts=%d flops=%g",
		s.Method, s.Components, s.Seed, s.NonNegative, s.LearnMaps, s.Sweeps, s.Starts, s.LearnFlops)
}

// knownPlan is a plan that is known to the job, and whether the memo knew it before.
type knownPlan struct {
	plan *btn.Plan
	hit  bool
}

// remember returns the plan of a key, made through the memo at most once per job, and what the cache had to do with it.
func (a *assigner) remember(
	settings string, shape contractionorder.Hypergraph, compute func(context.Context) (*btn.Plan, error),
) (*btn.Plan, string, error) {
	return a.recall(a.key(settings, shape), compute)
}

// recall is remember for a key.
func (a *assigner) recall(key string, compute func(context.Context) (*btn.Plan, error)) (*btn.Plan, string, error) {
	k, ok := a.known[key]
	if !ok {
		var err error
		if a.memo == nil {
			k.plan, err = compute(a.ctx)
		} else {
			k.plan, k.hit, err = a.memo.Do(a.ctx, key, compute)
		}
		if err != nil {
			return nil, "", err
		}
		a.known[key] = k
		a.anyMiss = a.anyMiss || !k.hit
	}

	switch {
	case a.memo == nil:
		return k.plan, btn.CacheOff, nil
	case k.hit:
		return k.plan, btn.CacheHit, nil
	}

	return k.plan, btn.CacheMiss, nil
}

// key identifies a plan by everything it depends on: algorithm version, base tensor, settings and, for an
// elimination order, the shape of the network it orders and the budget that chose between order and closed form.
func (a *assigner) key(settings string, shape contractionorder.Hypergraph) string {
	b := digest.New()
	b.Raw(a.facts.digest[:])
	b.Raw([]byte(settings))
	b.Int(int(a.settings.Memory))
	shape.Digest(b)
	return "btn:v1:decomposition:" + AlgorithmVersion + ":" + b.Hex()
}

// sameDims reports whether two shapes have the same dimensions.
func sameDims(a, b contractionorder.Hypergraph) bool {
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
