package circuits

// Proposals: the circuit of a network whose factors have zeros, compiled once, which serves every query.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
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

// errNoCircuit says that no circuit was found within what this query may spend on it. It is not remembered.
var errNoCircuit = errors.New("plan: no circuit within the work that the query may take")

// circuitAgain bounds the work on the circuit of a model that was asked about before, in flops:
// some five seconds of a core.
// Chosen: the next thousand queries save it.
const circuitAgain = 1.5e10

// circuitShare is the part of the work of a tree, and of a budget, that may go into looking for a
// circuit first.
// Chosen: a first query is not slower by more.
const circuitShare = 1.0 / 4

// circuitLeast is the work, in steps, below which no search is begun: trees that cost little are not to be had for less.
const circuitLeast = 1 << 22

// circuitProbe is the work, in steps, that a first query of such a network spends on a search for a circuit before it looks for a
// tree: half a second.
// Measured: btn infer --method exact takes 1.7 s for mc2022_track2_101 with it, 7.8 s without; 6.7 and 6.6 s for 091, which
// it is too short for. All of CPU time.
const circuitProbe = 1 << 26

// circuitProbeCore is that work for each core of a large network, whose simplification takes long, and circuitProbeMost the most.
// Chosen: planning formulas of 21,000 to 29,000 clauses take 2^27 to 2^28 steps.
const (
	circuitProbeCore = 1 << 14
	circuitProbeMost = 1 << 29
)

// Propose is the proposal of a circuit for a network of which no elimination order is cheap; nil where a contraction tree, which is
// asked for next, is better. A joint marginal has a circuit where no tree fits.
//
// A network that was asked about before, or will be again, has its circuit, if there is one: compiling is paid once, and
// evidence leaves a tree to be looked for each time. On the first time a circuit is taken that an elimination gives, which costs no
// more than looking for a tree, or a search. Where nearly all factors are logic, that begins before a tree is looked for, in proportion to
// the price of the order that is known, and goes on as long as an elimination along its own tree decomposition would take. Else it is in
// proportion to the price of the tree. A circuit that would be too large is none where Z alone is wanted, once: the search itself sums.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if !logical(j).some || positive(j.Conditioned) != nil {
		return nil, nil
	}
	if len(ask.Joint) > 0 {
		return instead(ctx, j, ask)
	}
	spent := int64(0) // no search
	if logical(j).wholly {
		probe := max(circuitProbe, min(circuitProbeCore*int64(len(j.Net.Cores)), circuitProbeMost))
		spent = min(circuitWork(j, circuitShare*ask.Flops/policy.ExactRate), probe)
	}
	if ask.Again {
		spent = circuitWork(j, circuitAgain)
	}
	if spent < circuitLeast {
		spent = 0
	}
	plan, hit, why := modelPlan(ctx, j, spent, ask.Again)
	found, err := circuitOf(j, plan, hit, why)
	if found == nil && err == nil && spent > 0 && once(ctx, j) && (!j.Evidence.IsEmpty() || errors.Is(why, logic.ErrCircuit)) {
		var rival float64
		if rival, err = rivalSteps(ctx, j); err != nil {
			return nil, err
		}
		found, err = tryCount(ctx, j, max(spent, int64(rival/2)))
	}
	if found != nil || err != nil {
		return found, err
	}

	tree, refused := ask.Next(ctx)
	if refused != nil && fault.CodeOf(refused) != fault.OverBudget {
		return nil, refused
	}
	far := refused != nil || tree.Plan.Estimates[0].Cost.Flops > farFlops
	switch {
	case refused != nil && once(ctx, j): // nothing else answers
		return countAssignment(j, &WeightedCount{Work: countWork}), nil
	case far && once(ctx, j):
		found, err = tryCount(ctx, j, triedWork)
	default:
		found, err = again(ctx, j, tree, spent, far)
	}
	if found != nil || err != nil {
		return found, err
	}
	if refused != nil {
		return nil, refused
	}
	return tree, nil
}

// searchShare is circuitShare where method exact is asked for and the tree is the only other way: the search is given up when half
// of the tree's time is spent.
// Chosen.
const searchShare = 1.0 / 2

// again is the proposal of a search for a circuit in proportion to the price of the tree, nil where that is refused, after one of so
// much work has found none: the model's, or one of what the evidence leaves.
func again(ctx context.Context, j *proposal.Job, tree *btn.Assignment, spent int64, far bool) (*btn.Assignment, error) {
	worth := proposal.Limit(j.Settings)
	if tree != nil {
		worth = tree.Plan.Estimates[0].Cost.Flops / policy.ExactRate
	}
	more := circuitWork(j, circuitShare*worth)
	switch { // method exact has no budget
	case j.Settings.Method == query.MethodExact && far:
		more = max(more, triedWork)
	case j.Settings.Method == query.MethodExact:
		more = int64(searchShare * worth / policy.CircuitFlops)
	}
	if more <= max(spent, circuitLeast) {
		return nil, nil
	}
	var found *btn.Assignment
	var err error
	if spent == 0 || !logical(j).wholly || !j.Evidence.IsEmpty() { // else the search has gone as far
		found, err = modelCircuit(ctx, j, more, false)
	}
	if found == nil && err == nil && tree == nil {
		found, err = circuitGiven(ctx, j, more)
	}
	return found, err
}

// instead is the proposal for a joint marginal: the next family's, or a circuit where that is over the budget.
func instead(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	tree, err := ask.Next(ctx)
	if fault.CodeOf(err) == fault.OverBudget {
		if found, e := byCircuit(ctx, j); e == nil {
			return jointly(j, found, ask.Joint)
		}
	}
	return tree, err
}

// Method is method circuit.
var Method = proposal.Method{Name: query.MethodCircuit, Propose: unsigned(answer), Parametric: unsigned(parametric)}

// unsigned is a proposal whose refusal of numbers below 0 names the method that has answers for them.
func unsigned(propose proposal.Proposer) proposal.Proposer {
	return func(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
		err := positive(j.Conditioned)
		var found *btn.Assignment
		if err == nil {
			found, err = propose(ctx, j, ask)
		}
		if fault.CodeOf(err) == fault.Unsupported && signed(j.Net) {
			err = fault.New(fault.Unsupported, "%w; with numbers below 0 ln Z, probabilities and derivatives are by method exact", err)
		}
		return found, err
	}
}

// signed reports whether a tensor of a network has a number below 0.
func signed(net *btn.Network) bool {
	return slices.ContainsFunc(net.Cores, func(c btn.Core) bool { return tensor.Signed(c.T) }) ||
		slices.ContainsFunc(net.Links, func(l btn.Link) bool { return tensor.Signed(l.T) })
}

// answer is the proposal of method circuit.
func answer(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	found, err := byCircuit(ctx, j)
	if err != nil || len(ask.Joint) == 0 {
		return found, err
	}
	return jointly(j, found, ask.Joint)
}

// byCircuit is the proposal of the model's circuit, or one of the rest that the evidence leaves, within the worth of the budget.
func byCircuit(ctx context.Context, j *proposal.Job) (*btn.Assignment, error) {
	work := int64(j.Settings.Budget / policy.CircuitFlops)
	var why error
	for _, settings := range []string{"circuit", "circuit whole"} { // under the first one may stand that little work finds none
		plan, hit, err := j.Remember(ctx, settings, contractionorder.Hypergraph{}, func(computing context.Context) (*btn.Plan, error) {
			return compile(computing, j, j.Net, work)
		})
		if why = err; err != nil && !errors.Is(err, errNoCircuit) {
			return nil, err
		}
		if found, _ := circuitOf(j, plan, hit, err); found != nil {
			return found, nil
		}
		if err != nil {
			break
		}
	}
	if found, err := circuitGiven(ctx, j, work); found != nil || err != nil {
		return found, err
	}
	return nil, why
}

// jointly adds the joint marginal of some variables to an assignment of a circuit, which takes passes for most of its cells.
func jointly(j *proposal.Job, assignment *btn.Assignment, joint []int) (*btn.Assignment, error) {
	cells, most := 1.0, 1.0
	for _, v := range joint {
		cells *= float64(j.Net.Variables[v].Domain)
		most = max(most, float64(j.Net.Variables[v].Domain))
	}
	cost := *assignment.Cost
	passes := cost.Flops * 3 * cells / most
	if cost.Flops += passes; passes > policy.MostEnumerated {
		return nil, fault.New(fault.OverBudget, "plan: the joint marginal takes %.3g flops in passes over a circuit, "+
			"at most %.0g", passes, float64(policy.MostEnumerated))
	}
	assignment.Cost = &cost
	return assignment, nil
}

// circuitWork is the number of steps of a search that take the time of so many flops of truncated legs, within a share of the budget.
func circuitWork(j *proposal.Job, flops float64) int64 {
	return int64(min(flops, circuitShare*j.Settings.Budget) / policy.CircuitFlops)
}

// modelCircuit assigns the model's circuit; nil where there is none, or none within so much work. That there is none is remembered where
// final says so.
func modelCircuit(ctx context.Context, j *proposal.Job, work int64, final bool) (*btn.Assignment, error) {
	plan, hit, err := modelPlan(ctx, j, work, final)
	return circuitOf(j, plan, hit, err)
}

// modelPlan is the plan of modelCircuit, and the state of the cache for it. The error is errNoCircuit where there is none.
func modelPlan(ctx context.Context, j *proposal.Job, work int64, final bool) (*btn.Plan, string, error) {
	return j.Remember(ctx, "circuit", contractionorder.Hypergraph{}, func(computing context.Context) (*btn.Plan, error) {
		plan, err := compile(computing, j, j.Net, work)
		if errors.Is(err, errNoCircuit) && final {
			return &btn.Plan{Method: query.MethodExact}, nil
		}
		return plan, err
	})
}

// circuitGiven assigns a circuit of what evidence leaves of a network; nil where there is none within so much work.
func circuitGiven(ctx context.Context, j *proposal.Job, work int64) (*btn.Assignment, error) {
	if j.Evidence.IsEmpty() {
		return nil, nil
	}
	settings := fmt.Sprintf("circuit given %x", j.Conditioned.Digest())
	plan, hit, err := j.Remember(ctx, settings, contractionorder.Hypergraph{}, func(computing context.Context) (*btn.Plan, error) {
		return compile(computing, j, j.Conditioned, work)
	})
	assignment, err := circuitOf(j, plan, hit, err)
	if assignment != nil {
		assignment.Relearned = "circuit: for what the evidence leaves"
	}
	return assignment, err
}

// ProposeKnown is the proposal of the circuit of a model that was asked about before, whatever the evidence leaves; nil where there is
// none.
func ProposeKnown(ctx context.Context, j *proposal.Job, _ proposal.Ask) (*btn.Assignment, error) {
	if !logical(j).some || positive(j.Conditioned) != nil {
		return nil, nil
	}
	known, err := modelCircuit(ctx, j, circuitWork(j, circuitAgain), true)
	if known == nil || err != nil {
		return nil, err
	}
	return known, nil
}

// circuitOf is the assignment of a plan; nil for a plan of nothing, and for errNoCircuit.
func circuitOf(j *proposal.Job, plan *btn.Plan, hit string, err error) (*btn.Assignment, error) {
	if errors.Is(err, errNoCircuit) {
		j.NoteMiss()
		return nil, nil
	}
	if err != nil || len(plan.Estimates) == 0 {
		return nil, err
	}
	return proposal.Priced(plan, hit), nil
}

// circuitBytes bounds the circuits that are kept.
const circuitBytes = 256 << 20

// parametric is the proposal of the model's circuit whose weights are its numbers, too.
func parametric(ctx context.Context, j *proposal.Job, _ proposal.Ask) (*btn.Assignment, error) {
	if _, err := gradients.Entries(j.Net); err != nil {
		return nil, err
	}
	work := int64(j.Settings.Budget / policy.CircuitFlops)
	const settings = "circuit of numbers"
	plan, hit, err := j.Remember(ctx, settings, contractionorder.Hypergraph{}, func(computing context.Context) (*btn.Plan, error) {
		of, _, err := logic.CompileParameters(computing, j.Net, logic.Options{
			Work: work, Memory: j.Settings.Memory, Bytes: min(circuitBytes, j.Settings.Memory/4),
		})
		if err != nil {
			return nil, err
		}
		return circuitPlan(computing, j, of)
	})
	if err != nil {
		return nil, err
	}
	return circuitOf(j, plan, hit, nil)
}

// rivalSteps returns the price of an elimination of the simplified network under the query's evidence, in steps of a search. It is at most
// twice the work that a search may take: triedWork if Z alone is wanted once, else circuitShare of the budget. It returns 0 if the network
// cannot be prepared for an elimination. The only error is that of a context that has ended.
func rivalSteps(ctx context.Context, j *proposal.Job) (float64, error) {
	work := circuitWork(j, math.Inf(1))
	if once(ctx, j) {
		work = triedWork
	}
	limit := 2 * float64(work)
	prepared, err := exact.Of(ctx, j.Problem(), false, nil)
	if err != nil {
		return 0, ctx.Err()
	}
	_, cost, _, err := contractionorder.MinFillCost(ctx, prepared.Hypergraph(), limit*policy.StepCells, policy.MostFill)
	if err != nil {
		return 0, ctx.Err()
	}
	return min(cost.Flops/policy.StepCells, limit), nil
}

// askRival is logic.Options.Rival: the price of an elimination (rivalSteps). If ctx has ended, it returns +Inf, so that the search goes on
// until it looks at ctx and returns its error, which is never remembered as that there is no circuit.
func askRival(ctx context.Context, j *proposal.Job) float64 {
	steps, err := rivalSteps(ctx, j)
	if err != nil {
		return math.Inf(1)
	}
	return steps
}

// littleProbes is the number of entries that the simplification before an elimination may look at where all factors are logic and a
// search comes next: a tenth of a second. preprocess itself takes 16 times as many.
// Measured: planning formulas of 1,300 to 2,300 variables (log-2, log-3, log-4) take 1.8, 2.6 and 2.0 s of CPU time with it and
// circuitProbeCore, 9.6, 21 and 10 s without.
const littleProbes = 1 << 20

// compile compiles a network within so much work, without a search where that is 0. What does not fit is errNoCircuit, and so is
// what circuits are not for. An elimination is tried first; where all is logic, after little simplification, of which a search takes less
// than the whole. Without evidence such a search goes on where an elimination takes longer.
// Other jobs may wait for the result, so that ctx is the context of the computation (proposal.Memo.Do) and not that of a job.
func compile(ctx context.Context, j *proposal.Job, net *btn.Network, work int64) (*btn.Plan, error) {
	o := logic.Options{Work: work, Memory: j.Settings.Memory, Bytes: min(circuitBytes, j.Settings.Memory/4)}
	ways := []func() (*circuit.Compiled, error){func() (*circuit.Compiled, error) { return eliminate(ctx, j, net, o) }}
	if work > 0 {
		ways = append(ways, func() (*circuit.Compiled, error) {
			of, _, err := logic.Search(ctx, net, o)
			return of, err
		})
		if logical(j).wholly {
			if j.Evidence.IsEmpty() {
				o.Rival = func() float64 { return askRival(ctx, j) }
			}
			little := o
			little.Probes = littleProbes
			quick := func() (*circuit.Compiled, error) { return within(logic.Eliminate(ctx, net, little)) }
			ways = []func() (*circuit.Compiled, error){quick, ways[1], ways[0]}
		}
	}
	var why error
	for _, way := range ways {
		of, err := way()
		if err == nil {
			return circuitPlan(ctx, j, of)
		}
		if code := fault.CodeOf(err); code != fault.OverBudget && code != fault.Unsupported {
			return nil, err
		}
		if why == nil || !errors.Is(err, errWide) {
			why = err
		}
	}
	return nil, fmt.Errorf("%w: %w", errNoCircuit, why)
}

// wide is the slot of whether a network's circuit by elimination takes more bytes.
type wide struct{ bytes int64 }

// eliminate compiles a network along an elimination order. That there is no short one is found out once.
func eliminate(ctx context.Context, j *proposal.Job, net *btn.Network, o logic.Options) (of *circuit.Compiled, err error) {
	if net == j.Net && (o.Work == 0 || o.Work >= policy.UnrolledFlops) {
		tooWide, err := proposal.Fact(j.Facts, wide{o.Bytes}, func() (bool, error) {
			of, err = logic.Eliminate(ctx, net, o)
			return of == nil, err
		})
		if err != nil || of != nil {
			return of, err
		}
		if tooWide {
			return nil, errWide
		}
	}
	return within(logic.Eliminate(ctx, net, o))
}

// within makes no circuit an error.
func within(of *circuit.Compiled, err error) (*circuit.Compiled, error) {
	if of == nil && err == nil {
		err = errWide
	}
	return of, err
}

var errWide = fault.New(fault.OverBudget, "plan: the network is too wide for a circuit by elimination")

// circuitPlan is the plan of a circuit. Its passes have to fit the memory.
func circuitPlan(ctx context.Context, j *proposal.Job, of *circuit.Compiled) (*btn.Plan, error) {
	c, err := of.Circuit(ctx)
	if err != nil {
		return nil, err
	}
	cost := query.Cost{Flops: float64(c.Edges()), Bytes: float64(c.Bytes() + 2*c.PassBytes()), Edges: float64(c.Edges())}
	if cost.Bytes > float64(j.Settings.Memory) {
		return nil, fmt.Errorf("%w: %w", errNoCircuit, fault.New(fault.OverBudget,
			"plan: a circuit of %d edges takes %.0f bytes with its passes, the budget is %d", c.Edges(), cost.Bytes, j.Settings.Memory))
	}
	return proposal.Exact(cost, &Circuit{Of: of}), nil
}

// zeros says whether circuits are looked for, see logic.Logical, and whether before trees are.
type zeros struct{ some, wholly bool }

// zerosSlot is that of a network's zeros.
type zerosSlot struct{}

// logicalShare is the share of factors with zeros among those over several variables from which a circuit is looked for.
// Chosen: conditional tables that are functions have zeros, clauses have one each.
const logicalShare = 0.1

// whollyLogicalShare is logicalShare for a search before a tree is looked for: a model that is not
// nearly all logic has tables that search does not make smaller.
// Measured: formulas have 1, linkage 0.41, Pedigree_11 0.68, BN_69 0.63; with the search they took
// 1.1 to 2 s of CPU time more.
const whollyLogicalShare = 0.9

// logical returns the zeros of the job's network. Linear time, once per network.
func logical(j *proposal.Job) zeros {
	z, _ := proposal.Fact(j.Facts, zerosSlot{}, func() (z zeros, err error) {
		z.some = logic.Logical(j.Net, logicalShare)
		z.wholly = z.some && logic.Logical(j.Net, whollyLogicalShare)
		return z, nil
	})
	return z
}

// Formula reports whether nearly all factors of the job's network are logic.
func Formula(j *proposal.Job) bool { return logical(j).wholly }

// Logical reports whether circuits are looked for, see logic.Logical.
func Logical(j *proposal.Job) bool { return logical(j).some }

// Finding implements proposal.Finder.
func (p *Circuit) Finding(_ context.Context, _ *proposal.Job, _ []btn.Part, ask btn.Ask) ([]btn.Part, error) {
	if !answers(ask, p.Of.Functional) {
		return nil, nil
	}
	return []btn.Part{&Circuit{Of: p.Of, Ask: ask}}, nil
}

// answers reports whether circuits answer a question.
func answers(ask btn.Ask, functional bool) bool {
	return ask == btn.AskSamples || ask == btn.AskMPE && functional
}
