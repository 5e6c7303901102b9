package circuits

// The circuit of a network, by elimination or by search, within the work that a query may take.

import (
	"context"
	"errors"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/methods/circuits/logic"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// littleProbes is the number of entries that the simplification before an elimination may look at if all factors are logic and a search
// comes next: a tenth of a second. The complete simplification looks at up to 16 times as many.
// Measured: planning formulas of 1,300 to 2,300 variables (log-2, log-3, log-4) take 1.8, 2.6 and 2.0 s of CPU time with it and
// circuitProbeCore, 9.6, 21 and 10 s without.
const littleProbes = 1 << 20

// compile compiles a network into the plan of a circuit. It tries several compilers in turn, each with at most the given work, and takes
// the first circuit:
//
//   - by default an elimination, then, if work is not 0, a search;
//   - for a formula and work above 0: an elimination after little simplification, a search, an elimination after all simplification. The
//     search needs less simplification. Without evidence it also goes on as long as an elimination would take (Options.Rival).
//
// The error is errNoCircuit if no compiler finds a circuit that fits, or circuits are not for such a network. Other jobs may wait for the
// result, so that ctx is the context of the computation (proposal.Memo.Do) and not that of a job.
func compile(ctx context.Context, j *proposal.Job, net *btn.Network, work int64) (*btn.Plan, error) {
	var cause error // why there is no circuit: the last reason that is not errWide, or errWide if there is no other
	for _, compileBy := range compilersFor(ctx, j, net, work) {
		compiled, err := compileBy()
		if err == nil {
			return circuitPlan(ctx, j, compiled)
		}
		if code := fault.CodeOf(err); code != fault.OverBudget && code != fault.Unsupported {
			return nil, err // not a reason to try the next compiler
		}
		if cause == nil || !errors.Is(err, errWide) {
			cause = err
		}
	}
	return nil, fmt.Errorf("%w: %w", errNoCircuit, cause)
}

// compilersFor returns the compilers that compile tries, in their order.
func compilersFor(ctx context.Context, j *proposal.Job, net *btn.Network, work int64) []func() (*circuit.Compiled, error) {
	o := logic.Options{Work: work, Memory: j.Settings.Memory, Bytes: min(circuitBytes, j.Settings.Memory/4)}
	isFormula := work > 0 && logicOf(j).isFormula
	if isFormula && j.Evidence.IsEmpty() {
		o.Rival = func() float64 { return askRival(ctx, j) } // a search goes on as long as an elimination would take
	}
	elimination := func() (*circuit.Compiled, error) { return eliminate(ctx, j, net, o) }
	search := func() (*circuit.Compiled, error) {
		compiled, _, err := logic.Search(ctx, net, o)
		return compiled, err
	}
	quickElimination := func() (*circuit.Compiled, error) {
		quickOptions := o
		quickOptions.Probes = littleProbes // little simplification
		return requireCircuit(logic.Eliminate(ctx, net, quickOptions))
	}
	switch {
	case work <= 0:
		return []func() (*circuit.Compiled, error){elimination}
	case !isFormula:
		return []func() (*circuit.Compiled, error){elimination, search}
	}
	return []func() (*circuit.Compiled, error){quickElimination, search, elimination}
}

// isWideSlot is the key of a fact about a network: whether its circuit by elimination takes more than so many bytes.
type isWideSlot struct{ bytes int64 }

// eliminate compiles a network along an elimination order. The error is errWide if no order has a circuit that fits. For the network
// without evidence (j.Net) the job's facts remember whether that is so, under the key isWideSlot, but not the circuit: if the answer is
// remembered and a circuit fits, it is compiled again.
func eliminate(ctx context.Context, j *proposal.Job, net *btn.Network, o logic.Options) (compiled *circuit.Compiled, err error) {
	hasWork := o.Work == 0 || o.Work >= policy.UnrolledFlops // enough to find out; 0: no limit
	if net == j.Net && hasWork {
		isWide, err := proposal.Fact(ctx, j.Facts, isWideSlot{o.Bytes}, func() (bool, error) {
			compiled, err = logic.Eliminate(ctx, net, o)
			return compiled == nil, err
		})
		if err != nil || compiled != nil {
			return compiled, err
		}
		if isWide {
			return nil, errWide
		}
	}
	return requireCircuit(logic.Eliminate(ctx, net, o))
}

// requireCircuit returns its arguments, or errWide if both are nil: logic.Eliminate returns neither if a circuit would be too large.
func requireCircuit(compiled *circuit.Compiled, err error) (*circuit.Compiled, error) {
	if compiled == nil && err == nil {
		err = errWide
	}
	return compiled, err
}

// errWide is the error of an elimination whose circuit would be too large.
var errWide = fault.New(fault.OverBudget, "plan: the network is too wide for a circuit by elimination")

// circuitPlan returns the exact plan that evaluates a circuit. The error is errNoCircuit if the circuit and its two passes, up and down,
// do not fit the memory.
func circuitPlan(ctx context.Context, j *proposal.Job, compiled *circuit.Compiled) (*btn.Plan, error) {
	c, err := compiled.Circuit(ctx)
	if err != nil {
		return nil, err
	}
	cost := query.Cost{Flops: float64(c.Edges()), Bytes: float64(c.Bytes() + 2*c.PassBytes()), Edges: float64(c.Edges())}
	if cost.Bytes > float64(j.Settings.Memory) {
		return nil, fmt.Errorf("%w: %w", errNoCircuit, fault.New(fault.OverBudget,
			"plan: a circuit of %d edges takes %.0f bytes with its passes, the budget is %d", c.Edges(), cost.Bytes, j.Settings.Memory))
	}
	return proposal.ExactPlan(cost, &Circuit{Of: compiled}), nil
}
