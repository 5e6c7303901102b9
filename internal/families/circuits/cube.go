package circuits

// C = B under a partial assignment: a search, by the worker that takes it.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/logic"
	"github.com/basetensor/basetensor/internal/logic/circuit"
	"github.com/basetensor/basetensor/internal/logic/formula"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Asks implements btn.Asker.
func (p *Cube) Asks() btn.Ask { return p.Ask }

// Cost implements contraction.Priced: what the search may take.
func (p *Cube) Cost(*problem.Problem) query.Cost {
	return query.Cost{Flops: float64(p.Of.Work) * policy.CircuitFlops}
}

// mostCircuit bounds the bytes of a cube's circuit that is remembered outside of a process.
const mostCircuit = 64 << 20

// decode reads a circuit that was remembered.
func decode(ctx context.Context, b []byte) (problem.Memorable, error) {
	return circuit.DecodeCompiled(ctx, b)
}

// searched is the network that the cube's search is over, and its options.
func (q *Cube) searched(p *problem.Problem) (*btn.Network, logic.Options) {
	o := logic.Options{Work: q.Of.Work, Memory: p.Memory, Bytes: q.Of.Bytes, Weighted: p.Net, Order: q.Of.Order}
	if len(q.Of.Cubes) == 1 {
		o.Rival = func() float64 { return 2 * float64(q.Of.Work) }
	}
	for _, l := range q.Of.Cubes[q.At] {
		o.Cube = append(o.Cube, formula.Literal(l))
	}
	if !q.Of.Given && p.Base != nil {
		return p.Base, o
	}
	return p.Net, o
}

// countSlot is the slot of the last cube's Z.
type countSlot struct{}

// count is Z of the cube but for the scale, by a search that makes no circuit. A search that was made for the plan is not made again.
func (q *Cube) count(ctx context.Context, p *problem.Problem) (scaled.Number, error) {
	net, o := q.searched(p)
	return problem.Form(ctx, p, countSlot{}, cubeKey(net, q, p.Memory), func() (scaled.Number, error) {
		o.NoCircuit = true
		z, _, err := logic.Sum(ctx, net, o)
		return z, err
	})
}

// Contract implements contraction.Contractor. A cube's circuit is remembered where it is small enough, and then evaluated; else the
// search itself sums, and gives Z alone: marginals, joint marginals and assignments need the circuit. Where Z alone is wanted, no circuit
// is made that nobody remembers, or that the plan says is not worth it.
func (q *Cube) Contract(ctx context.Context, p *problem.Problem, want btn.Want) (btn.Value, error) {
	zAlone := !want.Marginals && want.Joint == nil && q.Ask == ""
	if zAlone && (q.Of.Counted || p.Memo == nil) {
		z, err := q.count(ctx, p)
		return btn.Value{Z: z.Mul(p.Net.Scale)}, err
	}
	net, o := q.searched(p)
	var counted *scaled.Number // by a search that left no circuit
	entry := problem.Entry{Kind: "circuit", Key: cubeKey(net, q, p.Memory), Most: mostCircuit, Decode: decode}
	of, err := problem.Remember(ctx, p, entry, func(ctx context.Context) (*circuit.Compiled, error) {
		z, of, err := logic.Sum(ctx, net, o)
		if err == nil && of == nil {
			counted = &z
			err = fault.New(fault.OverBudget, "%w: %d bytes", logic.ErrCircuit, o.Bytes)
		}
		return of, err
	})
	if counted != nil && zAlone {
		return btn.Value{Z: counted.Mul(p.Net.Scale)}, nil
	}
	if err != nil {
		return btn.Value{}, err
	}
	return (&Circuit{Of: of, Ask: q.Ask}).Contract(ctx, p, want)
}

// cubeKey is the digest of the network, and that of what else a cube's circuit depends on: values excluded beforehand are in the network,
// and the memory is how much a search remembers.
func cubeKey(net *btn.Network, q *Cube, memory int64) string {
	d := digest.New()
	of := net.Digest()
	d.Word(uint64(memory))
	d.Word(uint64(q.Of.Work))
	d.Word(uint64(q.Of.Bytes))
	d.Int(len(q.Of.Order))
	for _, v := range q.Of.Order {
		d.Int(int(v))
	}
	for _, l := range q.Of.Cubes[q.At] {
		d.Int(int(l))
	}
	return fmt.Sprintf("%x:%s", of, d.Hex())
}
