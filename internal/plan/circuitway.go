package plan

// The exact way of networks whose factors have zeros: an arithmetic circuit, compiled once, which serves every query.

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/circuit"
	"github.com/basetensor/basetensor/internal/contraction"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/families/circuits"
	"github.com/basetensor/basetensor/internal/families/gradients"
	"github.com/basetensor/basetensor/internal/logic"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/internal/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// errNoCircuit says that no circuit was found within what this query may spend on it. It is not remembered.
var errNoCircuit = errors.New("plan: no circuit within the work that the query may take")

// heavy assigns a network of which no elimination order is cheap: a contraction tree, or a circuit.
//
// A network that was asked about before, or will be again, has its circuit, if there is one: what compiling takes is paid once, and
// evidence leaves a tree to be looked for each time. On the first time a circuit is taken that an elimination gives, which costs no
// more than looking for a tree, or a short search, in proportion to what the order takes that is known, flops; else the tree. Where that
// costs much, or does not fit, some of what it costs goes into a search for a circuit. A model that had none, and whose search was
// split into cubes without evidence, is asked by them from then on.
func (a *assigner) heavy(conditioned *btn.Network, marginals, again bool, flops float64) (btn.Assignment, error) {
	if !a.facts.logicalOf(a.net) {
		return a.tree(conditioned, marginals, nil)
	}
	if known, err := a.knownCubes(); known != nil || err != nil {
		return unpacked(known, err)
	}
	spent := int64(0) // no search
	if a.facts.whollyLogicalOf(a.net) {
		spent = min(a.circuitWork(policy.CircuitShare*flops/policy.ExactRate), policy.CircuitProbe)
	}
	if again {
		spent = a.circuitWork(policy.CircuitAgain)
	}
	if spent < policy.CircuitLeast {
		spent = 0
	}
	circuit, err := a.circuit(spent, again)
	if circuit != nil || err != nil {
		return *circuit, err
	}

	tree, refused := a.tree(conditioned, marginals, nil)
	if refused != nil && fault.CodeOf(refused) != fault.OverBudget {
		return tree, refused
	}
	worth := exactLimit(a.settings)
	if refused == nil {
		worth = tree.Plan.Estimates[0].Cost.Flops / policy.ExactRate
	}
	more := a.circuitWork(policy.CircuitShare * worth)
	if a.settings.Method == btn.MethodExact && refused == nil && tree.Plan.Estimates[0].Cost.Flops <= policy.CubesAbove {
		more = int64(policy.SearchShare * worth / policy.CircuitFlops) // there is no budget, and there will be no cubes
	}
	if more <= max(spent, policy.CircuitLeast) {
		return tree, refused
	}
	circuit, err = a.circuit(more, false)
	if circuit == nil && err == nil && refused != nil {
		circuit, err = a.circuitGiven(conditioned, more)
	}
	if circuit == nil && err == nil && (refused != nil || tree.Plan.Estimates[0].Cost.Flops > policy.CubesAbove) {
		circuit, err = a.cubes(conditioned)
	}
	if err != nil {
		return btn.Assignment{}, err
	}
	if circuit != nil {
		return *circuit, nil
	}
	return tree, refused
}

// unpacked is an assignment, or why there is none.
func unpacked(a *btn.Assignment, err error) (btn.Assignment, error) {
	if err != nil {
		return btn.Assignment{}, err
	}
	return *a, nil
}

// byCircuit assigns the model's circuit, or one of what the evidence leaves of it, within what the budget is worth.
func (a *assigner) byCircuit(conditioned *btn.Network) (btn.Assignment, error) {
	if known, err := a.knownCubes(); known != nil || err != nil {
		return unpacked(known, err)
	}
	work := int64(a.settings.Budget / policy.CircuitFlops)
	var why error
	for _, settings := range []string{"circuit", "circuit whole"} { // under the first one may stand that little work finds none
		plan, hit, err := a.remember(settings, contractionorder.Hypergraph{}, func(ctx context.Context) (*btn.Plan, error) {
			return a.compile(ctx, a.net, work)
		})
		if why = err; err != nil && !errors.Is(err, errNoCircuit) {
			return btn.Assignment{}, err
		}
		if assignment, _ := a.circuitOf(plan, hit, err); assignment != nil {
			return *assignment, nil
		}
		if err != nil {
			break
		}
	}
	assignment, err := a.circuitGiven(conditioned, work)
	switch {
	case assignment != nil && err == nil:
		return *assignment, nil
	case err != nil:
		return btn.Assignment{}, err
	}
	if assignment, err = a.cubes(conditioned); err != nil {
		return btn.Assignment{}, err
	}
	if assignment != nil {
		return *assignment, nil
	}
	return btn.Assignment{}, why
}

// edgeBytes is what an edge of a circuit takes at least.
const edgeBytes = 4

// jointly adds a joint marginal to an assignment of a circuit, which takes passes for most of its cells.
func (a *assigner) jointly(assignment btn.Assignment, q query.Query, err error) (btn.Assignment, error) {
	if err != nil {
		return btn.Assignment{}, err
	}
	cells, most := 1.0, 1.0
	for _, v := range q.Joint {
		cells *= float64(a.net.Variables[v].Domain)
		most = max(most, float64(a.net.Variables[v].Domain))
	}
	cost := *assignment.Cost
	edges := cost.Flops
	if cube, ok := assignment.Plan.Estimates[0].Parts[0].(*circuits.Cube); ok { // at most
		edges = float64(cube.Of.Bytes) / edgeBytes * float64(len(cube.Of.Cubes))
	}
	passes := edges * 3 * cells / most
	if cost.Flops += passes; passes > policy.MostEnumerated {
		return btn.Assignment{}, fault.New(fault.OverBudget, "plan: the joint marginal takes %.3g flops in passes over a circuit, "+
			"at most %.0g", passes, float64(policy.MostEnumerated))
	}
	assignment.Cost, assignment.Joint = &cost, q.Joint
	return assignment, nil
}

// circuitWork is how many steps of a search take the time of so many flops of truncated legs, within a share of the budget.
func (a *assigner) circuitWork(flops float64) int64 {
	return int64(min(flops, policy.CircuitShare*a.settings.Budget) / policy.CircuitFlops)
}

// circuit assigns the model's circuit; nil where there is none, or none within so much work. That there is none is remembered where
// final says so.
func (a *assigner) circuit(work int64, final bool) (*btn.Assignment, error) {
	plan, hit, err := a.remember("circuit", contractionorder.Hypergraph{}, func(ctx context.Context) (*btn.Plan, error) {
		plan, err := a.compile(ctx, a.net, work)
		if errors.Is(err, errNoCircuit) && final {
			return &btn.Plan{Method: btn.MethodExact}, nil
		}
		return plan, err
	})
	return a.circuitOf(plan, hit, err)
}

// circuitGiven assigns a circuit of what evidence leaves of a network; nil where there is none within so much work.
func (a *assigner) circuitGiven(conditioned *btn.Network, work int64) (*btn.Assignment, error) {
	if a.evidence.IsEmpty() {
		return nil, nil
	}
	settings := fmt.Sprintf("circuit given %x", conditioned.Digest())
	plan, hit, err := a.remember(settings, contractionorder.Hypergraph{}, func(ctx context.Context) (*btn.Plan, error) {
		return a.compile(ctx, conditioned, work)
	})
	assignment, err := a.circuitOf(plan, hit, err)
	if assignment != nil {
		assignment.Relearned = "circuit: for what the evidence leaves"
	}
	return assignment, err
}

// knownCircuit assigns the circuit of a model that was asked about before, whatever the evidence leaves, and says why Z is 0 where it is;
// nil where there is none.
func (a *assigner) knownCircuit(conditioned *btn.Network) (*btn.Assignment, error) {
	if !a.facts.logicalOf(a.net) {
		return nil, nil
	}
	known, err := a.circuit(a.circuitWork(policy.CircuitAgain), true)
	if known == nil || err != nil {
		return known, err
	}
	value, err := contraction.Part(a.ctx, a.current(), known.Plan.Estimates[0].Parts[0], problem.Want{})
	if err == nil && value.Z.IsZero() {
		known.Warnings, err = a.whyZero(conditioned)
	}
	return known, err
}

// circuitOf is the assignment of a plan; nil for a plan of nothing, and for errNoCircuit.
func (a *assigner) circuitOf(plan *btn.Plan, hit string, err error) (*btn.Assignment, error) {
	if errors.Is(err, errNoCircuit) {
		a.anyMiss = true
		return nil, nil
	}
	if err != nil {
		return &btn.Assignment{}, err
	}
	if len(plan.Estimates) == 0 {
		return nil, nil
	}
	cost := plan.Estimates[0].Cost
	return &btn.Assignment{Plan: plan, Cache: hit, LnLinks: math.Inf(-1), Cost: &cost}, nil
}

// parametricCircuit assigns the model's circuit whose weights are its numbers, too.
func (a *assigner) parametricCircuit() (btn.Assignment, error) {
	if _, err := gradients.Entries(a.net); err != nil {
		return btn.Assignment{}, err
	}
	work := int64(a.settings.Budget / policy.CircuitFlops)
	plan, hit, err := a.remember("circuit of numbers", contractionorder.Hypergraph{}, func(ctx context.Context) (*btn.Plan, error) {
		of, _, err := logic.CompileParameters(ctx, a.net, logic.Options{
			Work: work, Memory: a.settings.Memory, Bytes: min(policy.CircuitBytes, a.settings.Memory/4),
		})
		if err != nil {
			return nil, err
		}
		return a.circuitPlan(of)
	})
	if err != nil {
		return btn.Assignment{}, err
	}
	assignment, err := a.circuitOf(plan, hit, nil)
	return *assignment, err
}

// compile compiles a network within so much work, without a search where that is 0. What does not fit is errNoCircuit, and so is
// what circuits are not for.
func (a *assigner) compile(ctx context.Context, net *btn.Network, work int64) (*btn.Plan, error) {
	of, _, err := logic.Compile(ctx, net, logic.Options{
		Work:     work,
		Memory:   a.settings.Memory,
		Bytes:    min(policy.CircuitBytes, a.settings.Memory/4),
		NoSearch: work == 0,
	})
	if code := fault.CodeOf(err); err != nil && (code == fault.OverBudget || code == fault.Unsupported) {
		return nil, fmt.Errorf("%w: %w", errNoCircuit, err)
	}
	if err != nil {
		return nil, err
	}
	return a.circuitPlan(of)
}

// circuitPlan is the plan of a circuit. Its passes have to fit the memory.
func (a *assigner) circuitPlan(of *circuit.Compiled) (*btn.Plan, error) {
	c, err := of.Circuit(a.ctx)
	if err != nil {
		return nil, err
	}
	cost := btn.Cost{Flops: float64(c.Edges()), Bytes: float64(c.Bytes() + 2*c.PassBytes()), Edges: float64(c.Edges())}
	if cost.Bytes > float64(a.settings.Memory) {
		return nil, fmt.Errorf("%w: %w", errNoCircuit, fault.New(fault.OverBudget,
			"plan: a circuit of %d edges takes %.0f bytes with its passes, the budget is %d", c.Edges(), cost.Bytes, a.settings.Memory))
	}
	return exactOf(cost, &circuits.Circuit{Of: of}), nil
}
