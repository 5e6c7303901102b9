// Package trees contracts an expression approximately along a tree of dense tensors with truncated wires: exact where no wire is larger
// than the bond, and otherwise the Frobenius-optimal replacement of one wire after the other.
//
// Sources: J. Gray and G. K.-L. Chan, Hyperoptimized approximate contraction of tensor networks with arbitrary geometry, Phys. Rev. X 14
// (2024) 011009, arXiv:2206.07044.
package trees

import (
	"context"
	"errors"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// ErrPlan is wrapped by the errors of plans that contradict themselves or their expression.
var ErrPlan = errors.New("trees: invalid plan")

// Plan is a network of tensors joined by wires and the sequence of its merges. Nodes are numbered: the tables of the expression, then one
// copy tensor δ(i, j, k) per entry of Copies, then the results of the merges. It depends on the scopes of an expression only, and fits
// others whose dimensions are smaller; an index of dimension 1 may be missing from scopes that had it.
//
// A copy tensor two of whose wires lead to the two nodes of a merge, or to its result, takes part in the merge and is gone: an index of
// both that is still needed costs nothing extra.
type Plan struct {
	Tables int      // of the expression
	Hosts  []int    // by table: the table it is multiplied into, for tables of one index; −1
	Copies []int    // by copy tensor: its index
	Wires  [][3]int // index, node, node; −1 for the second node of an index that one table has
	Merges [][2]int // every connected part ends as one node without wires
}

func planError(format string, args ...any) error {
	return fault.New(fault.BadInput, "%w: "+format, append([]any{ErrPlan}, args...)...)
}

// Options of a contraction. The zero value works.
type Options struct {
	Bond      int     // largest dimension of a wire after truncation; 0: 32
	Cutoff    float64 // singular values below Cutoff times the largest are dropped; 0: 1e-12
	Gauge     int     // distance of the surroundings that a truncation looks at, 1 to 3; 0: 3; below 0: none
	Memory    int64   // bytes, as Cost.Bytes counts them; 0: query.DefaultMemory, 2 GiB
	Marginals bool
}

// defaultGauge is the distance of surroundings.
const defaultGauge = 3

// withDefaults fills in the defaults.
func (o Options) withDefaults() Options {
	if o.Bond <= 0 {
		o.Bond = 32
	}
	if !(o.Cutoff > 0) {
		o.Cutoff = 1e-12
	}
	if o.Gauge == 0 || o.Gauge > defaultGauge {
		o.Gauge = defaultGauge
	}
	o.Gauge = max(o.Gauge, 0)
	return o
}

// Contract returns the value of e, contracted along p:
//
//	Z ≈ Scale · Σ_x Π_t Tables[t][x]
//
// After a merge every bundle of parallel wires between the new tensor A and a neighbour B whose dimension exceeds the bond is replaced by
// one wire of at most Bond, with A = Q_A R_A and B = Q_B R_B as matrices (rest × bundle) in the gauge of their surroundings and R_A R_Bᵀ
// = U S Vᵀ:
//
//	A ← A P, B ← B P',  P = R_Bᵀ V S^-½, P' = R_Aᵀ U S^-½
//
// Nothing is truncated where no bundle exceeds the bond, and then Z is exact. A common exponent of 2 is carried; within one tensor
// entries 2^−1000 below the largest may become 0. The same arguments give the same bits. PeakBytes leaves out factorisations and
// projectors.
//
// Errors: sumproduct.ErrOverBudget (fault.OverBudget) with the bytes of Evaluate, before anything is computed; ErrPlan;
// sumproduct.ErrNotFinite; the context's. Cost: Evaluate; with marginals two to four times its flops.
func Contract(ctx context.Context, e *sumproduct.Expression, p Plan, o Options) (legs.Value, error) {
	o = o.withDefaults()
	h := e.Hypergraph()
	if err := e.Validate(); err != nil {
		return legs.Value{}, err
	}
	n, err := newNetwork(h, p)
	if err != nil {
		return legs.Value{}, err
	}
	m := newMeter(n.clone(), h, o.Bond, o.Gauge)
	if err := m.run(p.Merges, nil); err != nil {
		return legs.Value{}, err
	}
	need := m.cost().Bytes
	if o.Marginals {
		need = m.cost().MarginalBytes
	}
	if err := legs.Fits(need, legs.Memory(o.Memory), o.Bond); err != nil {
		return legs.Value{}, err
	}
	r := &run{ctx: ctx, e: e, plan: p, n: n, o: o, guests: make([][]int, p.Tables), data: make([][]float64, len(n.node)+len(p.Merges))}
	r.Limit = int(need / 8)
	for _, t := range e.Tables {
		r.Live += len(t.Data)
	}
	err = r.all()
	if errors.Is(err, legs.ErrZero) {
		r.value.Z, err = scaled.Number{}, nil
	}
	r.value.Flops, r.value.PeakBytes = r.flops, 8*float64(r.Peak)
	return r.value, err
}

// run is one contraction.
type run struct {
	kernel
	ctx    context.Context
	e      *sumproduct.Expression
	plan   Plan
	n      *network
	o      Options
	guests [][]int     // by table: those that it is the host of
	data   [][]float64 // by node, in the order of its legs
	exp    int64       // all tensors together are times 2^exp
	tape   []product   // with marginals
	value  legs.Value
}

// all loads the tables, goes through the merges, and the way back where marginals are asked for.
func (r *run) all() error {
	z := r.e.Scale
	used := make([]bool, len(r.e.Dims))
	for _, t := range r.e.Tables {
		for _, i := range t.Scope {
			used[i] = true
		}
	}
	for i, d := range r.e.Dims {
		if !used[i] {
			z = z.Mul(scaled.FromFloat(float64(d)))
		}
	}
	if z.IsZero() {
		return legs.ErrZero
	}
	for t, host := range r.plan.Hosts {
		if host >= 0 {
			r.guests[host] = append(r.guests[host], t)
		}
	}
	for t := range r.e.Tables {
		if r.n.node[t].alive {
			if err := r.load(t); err != nil {
				return err
			}
		}
	}
	partner := partners(r.plan.Merges, len(r.n.node))
	for _, pair := range r.plan.Merges {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if err := r.merge(int32(pair[0]), int32(pair[1]), partner); err != nil {
			return err
		}
	}
	if err := r.n.finished(); err != nil {
		return err
	}
	for i, nd := range r.n.node {
		if nd.alive && !nd.copy {
			z = z.Mul(scaled.FromFloat(r.data[i][0]))
		}
	}
	r.value.Z = z.Mul(scaled.Make(1, r.exp))
	if !r.value.Z.IsFinite() {
		return fault.New(fault.Unsupported, "%w", sumproduct.ErrNotFinite)
	}
	if r.o.Marginals {
		return r.marginals()
	}
	return nil
}

// whole is table t times the tables of one index that it is the host of, in the layout of its scope.
func (r *run) whole(t int) []float64 {
	data := r.Get(len(r.e.Tables[t].Data))
	copy(data, r.e.Tables[t].Data)
	for _, guest := range r.guests[t] {
		weights := r.e.Tables[guest].Data
		inner := 1
		scope := r.e.Tables[t].Scope
		if len(weights) > 1 {
			for i := len(scope) - 1; scope[i] != r.e.Tables[guest].Scope[0]; i-- {
				inner *= r.e.Dims[scope[i]]
			}
		}
		for i := range data {
			data[i] *= weights[i/inner%len(weights)]
		}
	}
	return data
}

// load makes the leaf of table t: sums over the indices that no other table has.
func (r *run) load(t int) error {
	out, in := array{}, array{data: r.whole(t)}
	var dims []int
	for i, w := range r.n.node[t].legs {
		dims = append(dims, r.n.wire[w].dim)
		in.labels = append(in.labels, int32(i))
		if r.n.wire[w].end[1] >= 0 {
			out.labels = append(out.labels, int32(i))
		}
	}
	r.n.drop(int32(t))
	r.data[t] = in.data
	if len(out.labels) < len(in.labels) {
		r.data[t] = r.multiply(product{out: out, in: [2]array{in}, dims: dims}).data
		r.Put(in.data)
	}
	return r.normalise(int32(t))
}

// normalise scales a node by a power of two so that its largest entry is in [1, 2).
func (r *run) normalise(i int32) error {
	e, err := legs.Rescale(r.data[i])
	r.exp += e
	return err
}

// keep makes the result of a product the entries of a node. Operands that are no nodes are −1. For marginals the product is remembered,
// with the entries of an operand whose other is a node; all others are given up.
func (r *run) keep(node int32, p product, operands [2]int32) error {
	out := r.multiply(p).data
	for k, i := range operands {
		if i < 0 {
			continue
		}
		r.data[i] = nil
		if !r.o.Marginals || operands[1-k] < 0 {
			r.Put(p.in[k].data)
			p.in[k].data = nil
		}
	}
	if r.o.Marginals {
		p.node, p.from = node, operands
		r.tape = append(r.tape, p)
	}
	r.data[node] = out
	return r.normalise(node)
}

// merge makes one tensor of two and truncates the bundles that have become too large.
func (r *run) merge(a, b int32, partner []int32) error {
	m := &merging{}
	id, err := r.n.merge(a, b, m)
	if err != nil {
		return err
	}
	p := product{out: array{labels: m.out}, dims: m.dims}
	for k, i := range m.operand {
		p.in[k].labels = m.labels[k]
		if i >= 0 {
			p.in[k].data = r.data[i]
		}
	}
	if err := r.keep(id, p, m.operand); err != nil {
		return err
	}
	for _, bundle := range r.n.truncatable(id, r.o.Bond, partner) {
		if err := r.truncate(id, bundle.to); err != nil {
			return err
		}
	}
	return nil
}

// marginals goes back over the products: with its projectors held fixed a contraction is a sequence of products, and Z is linear in every
// tensor. One pass gives ∂Z/∂T for every table, up to a factor, and every index is read at the smallest table that has it.
func (r *run) marginals() error {
	adjoint := make([][]float64, len(r.n.node))
	for i, nd := range r.n.node {
		if nd.alive {
			adjoint[i] = r.Get(1)
			adjoint[i][0] = 1
		}
	}
	for k, p := range slices.Backward(r.tape) {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		// ∂Z/∂A = ∂Z/∂C · B, and the other way round: the product with the result in the place of one input.
		given := array{data: adjoint[p.node], labels: p.out.labels}
		adjoint[p.node] = nil
		for k, i := range p.from {
			if i < 0 {
				continue
			}
			out := r.multiply(product{out: array{labels: p.in[k].labels}, in: [2]array{given, p.in[1-k]}, dims: p.dims})
			if _, err := legs.Rescale(out.data); err != nil && !errors.Is(err, legs.ErrZero) {
				return err
			}
			adjoint[i] = out.data
		}
		for k, i := range p.from {
			if i >= 0 && p.in[k].data != nil {
				r.Put(p.in[k].data)
			}
		}
		r.Put(given.data)
		r.tape[k] = product{}
	}
	r.read(adjoint)
	return nil
}

// read fills in Value.Marginals from the derivatives by the tables.
func (r *run) read(adjoint [][]float64) {
	e := r.e
	at := slices.Repeat([]int{-1}, len(e.Dims)) // the table to read at
	for t, table := range e.Tables {
		for _, i := range table.Scope {
			if r.plan.Hosts[t] < 0 && (at[i] < 0 || len(table.Data) < len(e.Tables[at[i]].Data)) {
				at[i] = t
			}
		}
	}
	shared := make([]bool, len(e.Dims)) // wires of the network, not summed where a table is loaded
	for _, w := range r.plan.Wires {
		shared[w[0]] = shared[w[0]] || w[2] >= 0
	}
	r.value.Marginals = legs.Flat(e.Dims)
	for i, t := range at {
		if t < 0 {
			continue
		}
		x, y := array{data: r.whole(t)}, array{data: adjoint[t]}
		var dims []int
		own := int32(0)
		for l, j := range e.Tables[t].Scope {
			dims = append(dims, e.Dims[j])
			x.labels = append(x.labels, int32(l))
			if shared[j] {
				y.labels = append(y.labels, int32(l))
			}
			if j == i {
				own = int32(l)
			}
		}
		row := r.multiply(product{out: array{labels: []int32{own}}, in: [2]array{x, y}, dims: dims})
		r.value.Marginals[i] = slices.Clone(row.data)
		legs.Share(r.value.Marginals[i])
		r.Put(row.data)
		r.Put(x.data)
	}
}
