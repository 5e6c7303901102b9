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

// littleProbes is the number of entries that the simplification before an elimination may look at where all factors are logic and a
// search comes next: a tenth of a second. preprocess itself takes 16 times as many.
// Measured: planning formulas of 1,300 to 2,300 variables (log-2, log-3, log-4) take 1.8, 2.6 and 2.0 s of CPU time with it and
// circuitProbeCore, 9.6, 21 and 10 s without.
const littleProbes = 1 << 20

// compile compiles a network into the plan of a circuit. It tries several ways, each with at most so much work, and takes the first
// circuit:
//
// An elimination is tried first. If work is not 0, a search comes second. For a formula the sequence is an elimination after little
// simplification, the search, an elimination after all simplification, since the search needs less simplification; without evidence its
// search also goes on if an elimination would take longer.
//
// The error is errNoCircuit if no way has a circuit that fits, or circuits are not for such a network. Other jobs may wait for the
// result, so that ctx is the context of the computation (proposal.Memo.Do) and not that of a job.
func compile(ctx context.Context, j *proposal.Job, net *btn.Network, work int64) (*btn.Plan, error) {
	o := logic.Options{Work: work, Memory: j.Settings.Memory, Bytes: min(circuitBytes, j.Settings.Memory/4)}
	elimination := func() (*circuit.Compiled, error) { return eliminate(ctx, j, net, o) }
	ways := []func() (*circuit.Compiled, error){elimination}
	if work > 0 {
		isFormula, little := logicOf(j).isFormula, o
		little.Probes = littleProbes
		if isFormula && j.Evidence.IsEmpty() {
			o.Rival = func() float64 { return askRival(ctx, j) }
			little.Rival = o.Rival
		}
		search := func() (*circuit.Compiled, error) {
			compiled, _, err := logic.Search(ctx, net, o)
			return compiled, err
		}
		ways = append(ways, search)
		if isFormula {
			quick := func() (*circuit.Compiled, error) { return requireCircuit(logic.Eliminate(ctx, net, little)) }
			ways = []func() (*circuit.Compiled, error){quick, search, elimination}
		}
	}
	var cause error // the most telling reason why there is no circuit
	for _, way := range ways {
		compiled, err := way()
		if err == nil {
			return circuitPlan(ctx, j, compiled)
		}
		if code := fault.CodeOf(err); code != fault.OverBudget && code != fault.Unsupported {
			return nil, err
		}
		if cause == nil || !errors.Is(err, errWide) {
			cause = err
		}
	}
	return nil, fmt.Errorf("%w: %w", errNoCircuit, cause)
}

// wide is the slot of a fact: whether the circuit of a network by elimination takes more than so many bytes.
type wide struct{ bytes int64 }

// eliminate compiles a network along an elimination order. The error is errWide if there is no short order, which is remembered for the
// network without evidence.
func eliminate(ctx context.Context, j *proposal.Job, net *btn.Network, o logic.Options) (compiled *circuit.Compiled, err error) {
	if net == j.Net && (o.Work == 0 || o.Work >= policy.UnrolledFlops) {
		tooWide, err := proposal.Fact(ctx, j.Facts, wide{o.Bytes}, func() (bool, error) {
			compiled, err = logic.Eliminate(ctx, net, o)
			return compiled == nil, err
		})
		if err != nil || compiled != nil {
			return compiled, err
		}
		if tooWide {
			return nil, errWide
		}
	}
	return requireCircuit(logic.Eliminate(ctx, net, o))
}

// requireCircuit returns errWide if there is neither a circuit nor an error.
func requireCircuit(compiled *circuit.Compiled, err error) (*circuit.Compiled, error) {
	if compiled == nil && err == nil {
		err = errWide
	}
	return compiled, err
}

// errWide is the error of an elimination whose circuit would be too large.
var errWide = fault.New(fault.OverBudget, "plan: the network is too wide for a circuit by elimination")

// circuitPlan returns the plan of a circuit. The error is errNoCircuit if the passes over it do not fit the memory.
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
	return proposal.Exact(cost, &Circuit{Of: compiled}), nil
}
