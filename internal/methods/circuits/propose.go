package circuits

// Proposals: the circuit of a network whose factors have zeros, compiled once, which serves every query.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/circuits/logic"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/gradients"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// errNoCircuit is the error if no circuit was found within the work that this query may take. It is not remembered.
var errNoCircuit = errors.New("plan: no circuit within the work that the query may take")

// recurringFlops bounds the work on the circuit of a model that was asked about before, in flops:
// some five seconds of a core.
// Chosen: the next thousand queries save it.
const recurringFlops = 1.5e10

// circuitShare is the share of the work of a tree, and of a budget, that a search for a circuit before it may take.
// Chosen: a first query is not slower by more.
const circuitShare = 1.0 / 4

// leastSteps is the smallest number of steps for which a search is begun. A tree that costs less is not beaten by a circuit.
const leastSteps = 1 << 22

// circuitProbe is the work, in steps, that a first query of such a network spends on a search for a circuit before it looks for a
// tree: half a second.
// Measured: btn infer --method exact takes 1.7 s for mc2022_track2_101 with it, 7.8 s without; 6.7 and 6.6 s for 091, which
// it is too short for. All of CPU time.
const circuitProbe = 1 << 26

// circuitProbeCore is the work of a first search for each core of a large network, whose simplification takes long. circuitProbeMost is the
// largest such work.
// Chosen: planning formulas of 21,000 to 29,000 clauses take 2^27 to 2^28 steps.
const (
	circuitProbeCore = 1 << 14
	circuitProbeMost = 1 << 29
)

// Propose proposes a circuit, or the proposal of the next method (a contraction tree) if that is better. It is called if no elimination
// order of the network is cheap. It returns nil if the network has too little logic or weights below 0. For a joint marginal it proposes a
// circuit only if no tree fits.
//
// A network that was asked about before, or will be again (Ask.IsRepeated), gets a circuit if there is one: compiling is paid once, while a
// tree has to be searched for all evidence.
//
// A network asked about for the first time gets a circuit by elimination, which takes no longer than searching a tree, or one by search.
// If nearly all factors are logic (a formula), the search comes before that of a tree, with work in proportion to the price of the known
// order, and it goes on as long as an elimination along its tree decomposition would take. For other networks it comes after that of a
// tree, with work in proportion to the price of the tree. If only Z is wanted, once, a circuit that would be too large is not needed: the
// search itself sums Z.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if !logicOf(j).hasLogic || checkNonNegative(j.Conditioned) != nil {
		return nil, nil
	}
	if len(ask.Joint) > 0 {
		return proposeJoint(ctx, j, ask)
	}

	// A circuit before a tree is searched.
	steps := stepsBeforeTree(j, ask)
	assignment, err := proposeBeforeTree(ctx, j, ask, steps)
	if assignment != nil || err != nil {
		return assignment, err
	}

	// A search that may take the longer the more expensive the tree is.
	tree, treeErr := ask.Next(ctx)
	if treeErr != nil && fault.CodeOf(treeErr) != fault.OverBudget {
		return nil, treeErr
	}
	isTreeExpensive := treeErr != nil || tree.Plan.Estimates[0].Cost.Flops > farFlops // an hour of a core
	switch {
	case treeErr != nil && isOnlyZ(ctx, j): // nothing else answers: a search of hours when the job runs
		return countAssignment(j, &WeightedCount{Work: countWork}), nil
	case isTreeExpensive && isOnlyZ(ctx, j):
		assignment, err = tryCount(ctx, j, triedWork) // a search of at most some 80 s now
	default:
		assignment, err = searchInProportion(ctx, j, tree, steps, isTreeExpensive)
	}
	if assignment != nil || err != nil {
		return assignment, err
	}
	if treeErr != nil {
		return nil, treeErr
	}
	return tree, nil
}

// stepsBeforeTree returns how many steps a search for a circuit may take before a tree is searched. It returns 0 if there is to be no such
// search: for a network that is no formula and is not asked about again, and if so few steps would be allowed that no circuit beats a tree
// (leastSteps). ask.Flops is the price of the known order.
func stepsBeforeTree(j *proposal.Job, ask proposal.Ask) int64 {
	steps := int64(0)
	if logicOf(j).isFormula {
		// A share of the known order's price, up to a limit: half a second (circuitProbe), or more if there are many cores to simplify.
		limit := max(circuitProbe, min(circuitProbeCore*int64(len(j.Net.Cores)), circuitProbeMost))
		steps = min(searchSteps(j, circuitShare*ask.Flops/policy.ExactRate), limit)
	}
	if ask.IsRepeated {
		steps = searchSteps(j, recurringFlops) // some five seconds, which further queries save
	}
	if steps < leastSteps {
		return 0
	}
	return steps
}

// proposeBeforeTree proposes the circuit of the model, by elimination or, if steps is not 0, also by a search of at most that many steps.
// If no circuit is found and only Z is wanted, it proposes the Z that a search without a circuit finds (tryCount). That search may take
// steps, or half of the steps that take as long as an elimination (rivalSteps) if that is more. It returns nil if neither is found, or if
// the search for Z would be the one that has failed already.
func proposeBeforeTree(ctx context.Context, j *proposal.Job, ask proposal.Ask, steps int64) (*btn.Assignment, error) {
	plan, cacheState, planErr := modelPlan(ctx, j, steps, ask.IsRepeated)
	assignment, err := assignPlan(j, plan, cacheState, planErr)
	if assignment != nil || err != nil {
		return assignment, err
	}

	// Without evidence a search for Z goes the way of the search for a circuit, which has failed. It is of use only if that search was given
	// up because the circuit was too large: a search for Z makes none.
	mayDiffer := !j.Evidence.IsEmpty() || errors.Is(planErr, logic.ErrCircuit)
	if steps == 0 || !isOnlyZ(ctx, j) || !mayDiffer {
		return nil, nil
	}
	eliminationSteps, err := rivalSteps(ctx, j)
	if err != nil {
		return nil, err
	}
	return tryCount(ctx, j, max(steps, int64(eliminationSteps/2)))
}

// searchShare is circuitShare for method exact, for which the tree is the only other way: the search is given up after half of the time
// of the tree.
// Chosen.
const searchShare = 1.0 / 2

// searchInProportion proposes a circuit by a search whose steps are in proportion to the price of the tree. tree is nil if the tree was
// over budget; then it also tries a circuit of the network under the evidence. isTreeExpensive is set if the tree is very expensive or over
// budget. stepsBefore are the steps that an earlier search for this query could take, which found no circuit; 0: there was none. It returns
// nil if there is no circuit, or if the search could take no more steps than the earlier one.
func searchInProportion(
	ctx context.Context, j *proposal.Job, tree *btn.Assignment, stepsBefore int64, isTreeExpensive bool,
) (*btn.Assignment, error) {
	steps := stepsByTree(j, tree, isTreeExpensive)
	if steps <= max(stepsBefore, leastSteps) {
		return nil, nil
	}

	var assignment *btn.Assignment
	var err error
	// The earlier search went on as long as an elimination would take (Options.Rival), so another one is of no use.
	wasComplete := stepsBefore > 0 && logicOf(j).isFormula && j.Evidence.IsEmpty()
	if !wasComplete {
		assignment, err = assignModelCircuit(ctx, j, steps, isNotFinal)
	}
	if assignment == nil && err == nil && tree == nil {
		assignment, err = assignConditionedCircuit(ctx, j, steps)
	}
	return assignment, err
}

// stepsByTree returns the steps that a search for a circuit may take, in proportion to the price of the tree, or to the limit of such
// prices (ExactFlopLimit) if tree is nil. For method exact the tree is the only other way, so the search may take a larger share of the
// price (searchShare), or at least triedWork (80 s) if the tree is expensive.
func stepsByTree(j *proposal.Job, tree *btn.Assignment, isTreeExpensive bool) int64 {
	treeFlops := proposal.ExactFlopLimit(j.Settings)
	if tree != nil {
		treeFlops = tree.Plan.Estimates[0].Cost.Flops / policy.ExactRate
	}
	steps := searchSteps(j, circuitShare*treeFlops)
	switch {
	case j.Settings.Method == query.MethodExact && isTreeExpensive:
		steps = max(steps, triedWork)
	case j.Settings.Method == query.MethodExact:
		steps = int64(searchShare * treeFlops / policy.CircuitFlops)
	}
	return steps
}

// proposeJoint proposes how a joint marginal is computed: by the next method, or by a circuit if the next method is over budget. If there
// is no circuit either, the error is that of the next method.
func proposeJoint(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	tree, err := ask.Next(ctx)
	if fault.CodeOf(err) == fault.OverBudget {
		if circuit, circuitErr := proposeCircuit(ctx, j); circuitErr == nil {
			return addJointPrice(j, circuit, ask.Joint)
		}
	}
	return tree, err
}

// Method is method circuit, which users ask for by that name.
var Method = proposal.Method{Name: query.MethodCircuit, Propose: namingExact(propose), Parametric: namingExact(proposeParametric)}

// namingExact returns a proposer that refuses weights below 0 and calls inner otherwise. If an error of code unsupported arises either way
// and a tensor of the network has numbers below 0, the error also names method exact, which has answers for such networks.
func namingExact(inner proposal.Proposer) proposal.Proposer {
	return func(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
		err := checkNonNegative(j.Conditioned)
		var assignment *btn.Assignment
		if err == nil {
			assignment, err = inner(ctx, j, ask)
		}
		if fault.CodeOf(err) == fault.Unsupported && hasNegative(j.Net) {
			err = fault.New(fault.Unsupported, "%w; with numbers below 0 ln Z, probabilities and derivatives are by method exact", err)
		}
		return assignment, err
	}
}

// hasNegative reports whether a tensor of a network has a number below 0.
func hasNegative(net *btn.Network) bool {
	return slices.ContainsFunc(net.Cores, func(c btn.Core) bool { return tensor.Signed(c.T) }) ||
		slices.ContainsFunc(net.Links, func(l btn.Link) bool { return tensor.Signed(l.T) })
}

// propose proposes the circuit of the network for method circuit, with the price of a joint marginal if one is asked for.
func propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	circuit, err := proposeCircuit(ctx, j)
	if err != nil || len(ask.Joint) == 0 {
		return circuit, err
	}
	return addJointPrice(j, circuit, ask.Joint)
}

// proposeCircuit proposes the circuit of the model, or else that of the network under the evidence. Each search may take the complete
// budget. The error is errNoCircuit if there is none.
func proposeCircuit(ctx context.Context, j *proposal.Job) (*btn.Assignment, error) {
	work := int64(j.Settings.Budget / policy.CircuitFlops)

	// What the cache has under the key "circuit" may be that a smaller search found no circuit. Then a search with the complete budget is
	// made, and remembered under the other key.
	var planErr error
	for _, settings := range []string{"circuit", "circuit whole"} {
		plan, cacheState, err := j.Remember(ctx, settings, contractionorder.Hypergraph{}, func(computing context.Context) (*btn.Plan, error) {
			return compile(computing, j, j.Net, work)
		})
		if planErr = err; err != nil && !errors.Is(err, errNoCircuit) {
			return nil, err
		}
		if assignment, _ := assignPlan(j, plan, cacheState, err); assignment != nil { // its errors were looked at above
			return assignment, nil
		}
		if err != nil { // the complete search has found none
			break
		}
		// Here the plan has no estimates, which states that a smaller search found no circuit: try the second key.
	}

	// The circuit of the network under the evidence.
	if assignment, err := assignConditionedCircuit(ctx, j, work); assignment != nil || err != nil {
		return assignment, err
	}
	return nil, planErr
}

// addJointPrice adds the price of a joint marginal to the assignment of a circuit. One pass up and one down cost three times the flops of
// the circuit, and are made for each combination of values of the joint's variables but that of the largest domain. The error is over
// budget if all these passes exceed policy.MostEnumerated.
func addJointPrice(j *proposal.Job, assignment *btn.Assignment, joint []int) (*btn.Assignment, error) {
	cells, largestDomain := 1.0, 1.0
	for _, v := range joint {
		cells *= float64(j.Net.Variables[v].Domain)
		largestDomain = max(largestDomain, float64(j.Net.Variables[v].Domain))
	}
	cost := *assignment.Cost
	passes := cost.Flops * 3 * cells / largestDomain
	if cost.Flops += passes; passes > policy.MostEnumerated {
		return nil, fault.New(fault.OverBudget, "plan: the joint marginal takes %.3g flops in passes over a circuit, "+
			"at most %.0g", passes, float64(policy.MostEnumerated))
	}
	assignment.Cost = &cost
	return assignment, nil
}

// searchSteps returns the number of steps of a search that take as long as the given flops (in the unit of policy.CircuitFlops), or as
// circuitShare of the budget if that is less.
func searchSteps(j *proposal.Job, flops float64) int64 {
	return int64(min(flops, circuitShare*j.Settings.Budget) / policy.CircuitFlops)
}

// Whether modelPlan remembers that a search found no circuit.
const (
	isFinal    = true
	isNotFinal = false
)

// assignModelCircuit assigns the circuit of the model, for any evidence. It returns nil if none is found within that work. If final is set,
// it is remembered that there is none.
func assignModelCircuit(ctx context.Context, j *proposal.Job, work int64, final bool) (*btn.Assignment, error) {
	plan, cacheState, err := modelPlan(ctx, j, work, final)
	return assignPlan(j, plan, cacheState, err)
}

// modelPlan returns the plan of the circuit of the model, and the state of the cache for it. If the plan is not in the cache, it compiles
// the model with at most the given work. If no circuit is found, the error is errNoCircuit, which is not remembered. If final is set, it
// returns a plan without estimates instead, which states that there is no circuit. It is remembered, so that no later query looks for one.
func modelPlan(ctx context.Context, j *proposal.Job, work int64, final bool) (*btn.Plan, string, error) {
	// The shape is empty: the plan depends on the network alone, whose digest is in the cache's key.
	return j.Remember(ctx, "circuit", contractionorder.Hypergraph{}, func(computing context.Context) (*btn.Plan, error) {
		plan, err := compile(computing, j, j.Net, work)
		if errors.Is(err, errNoCircuit) && final {
			return &btn.Plan{Method: query.MethodExact}, nil
		}
		return plan, err
	})
}

// assignConditionedCircuit assigns the circuit of the network under the query's evidence, remembered or compiled with at most the given
// work. It returns nil if there is no evidence or if no circuit is found: assignPlan turns errNoCircuit into nil. Relearned states what was
// made for this evidence alone.
func assignConditionedCircuit(ctx context.Context, j *proposal.Job, work int64) (*btn.Assignment, error) {
	if j.Evidence.IsEmpty() {
		return nil, nil
	}
	settings := fmt.Sprintf("circuit given %x", j.Conditioned.Digest())
	plan, cacheState, err := j.Remember(ctx, settings, contractionorder.Hypergraph{}, func(computing context.Context) (*btn.Plan, error) {
		return compile(computing, j, j.Conditioned, work)
	})
	assignment, err := assignPlan(j, plan, cacheState, err)
	if assignment != nil {
		assignment.Relearned = "circuit: for what the evidence leaves"
	}
	return assignment, err
}

// ProposeKnown proposes the circuit of a model that was asked about before. The circuit is for any evidence. If none is remembered, it is
// compiled with work of at most recurringFlops; if that finds none, this is remembered (isFinal). ProposeKnown returns nil if there is no
// circuit, if the network has too little logic, or if weights are below 0.
func ProposeKnown(ctx context.Context, j *proposal.Job, _ proposal.Ask) (*btn.Assignment, error) {
	if !logicOf(j).hasLogic || checkNonNegative(j.Conditioned) != nil {
		return nil, nil
	}
	assignment, err := assignModelCircuit(ctx, j, searchSteps(j, recurringFlops), isFinal)
	if assignment == nil || err != nil {
		return nil, err
	}
	return assignment, nil
}

// assignPlan returns the assignment of a circuit's plan, with its price. It returns nil if there is no circuit: err is errNoCircuit, or the
// plan has no estimates. Other errors are passed on.
func assignPlan(j *proposal.Job, plan *btn.Plan, cacheState string, err error) (*btn.Assignment, error) {
	if errors.Is(err, errNoCircuit) { // not remembered
		j.NoteMiss()
		return nil, nil
	}
	if err != nil || len(plan.Estimates) == 0 { // no estimates: it was remembered that there is no circuit
		return nil, err
	}
	return proposal.NewPricedAssignment(plan, cacheState), nil
}

// circuitBytes is the largest number of bytes of a circuit.
const circuitBytes = 256 << 20

// proposeParametric proposes the circuit of the model in which the numbers of its factors are weights, too, so that Z can be
// differentiated by them. The circuit is for any evidence and any numbers. The error is that of ParameterCount if there are too many.
func proposeParametric(ctx context.Context, j *proposal.Job, _ proposal.Ask) (*btn.Assignment, error) {
	if _, err := gradients.ParameterCount(j.Net); err != nil {
		return nil, err
	}
	work := int64(j.Settings.Budget / policy.CircuitFlops)
	const settings = "circuit of numbers"
	plan, cacheState, err := j.Remember(ctx, settings, contractionorder.Hypergraph{}, func(computing context.Context) (*btn.Plan, error) {
		compiled, _, err := logic.CompileParameters(computing, j.Net, logic.Options{
			Work: work, Memory: j.Settings.Memory, Bytes: min(circuitBytes, j.Settings.Memory/4),
		})
		if err != nil {
			return nil, err
		}
		return circuitPlan(computing, j, compiled)
	})
	if err != nil {
		return nil, err
	}
	return assignPlan(j, plan, cacheState, nil)
}

// rivalSteps returns the price of an elimination of the simplified network under the query's evidence, in steps of a search: a step takes
// the time of policy.StepCells entries of an elimination. The only error is that of a context that has ended. If the network cannot be
// prepared for an elimination, or no order is found, it returns 0: then no search gets more work because of it.
//
// The work that a search may take is triedWork if only Z is wanted (isOnlyZ), else circuitShare of the budget. The result is at most twice
// that work: larger prices make no difference.
func rivalSteps(ctx context.Context, j *proposal.Job) (float64, error) {
	work := searchSteps(j, math.Inf(1))
	if isOnlyZ(ctx, j) {
		work = triedWork
	}
	limit := 2 * float64(work)
	const wantsMarginals = false
	prepared, err := exact.PreparedOf(ctx, j.Problem(), wantsMarginals, nil)
	if err != nil {
		return 0, ctx.Err() // nil unless the context has ended
	}
	_, cost, _, err := contractionorder.MinFillCost(ctx, prepared.Hypergraph(), limit*policy.StepCells, policy.MostFill)
	if err != nil {
		return 0, ctx.Err()
	}
	return min(cost.Flops/policy.StepCells, limit), nil
}

// askRival returns the price of an elimination in steps of a search (rivalSteps), for logic.Options.Rival. If ctx has ended, it returns
// +Inf: the search then goes on until it looks at ctx and returns the context's error, which is not remembered as "there is no circuit".
func askRival(ctx context.Context, j *proposal.Job) float64 {
	steps, err := rivalSteps(ctx, j)
	if err != nil {
		return math.Inf(1)
	}
	return steps
}

var _ proposal.Finder = (*Circuit)(nil)

// FindingParts implements proposal.Finder: it returns a part with the same circuit that answers a question about assignments, or none if
// circuits cannot (canFind).
func (p *Circuit) FindingParts(_ context.Context, _ *proposal.Job, _ []btn.Part, ask btn.Ask) ([]btn.Part, error) {
	if !canFind(ask, p.Of.Functional) {
		return nil, nil
	}
	return []btn.Part{&Circuit{Of: p.Of, Ask: ask}}, nil
}

// canFind reports whether a circuit answers a question about assignments: it can draw them, and, if isFunctional is set, find the most
// probable one. isFunctional states that the network's variables determine the circuit's auxiliary ones.
func canFind(ask btn.Ask, isFunctional bool) bool {
	return ask == btn.AskSamples || ask == btn.AskMPE && isFunctional
}
