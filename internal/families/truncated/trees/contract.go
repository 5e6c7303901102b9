package trees

// Contract: the merges and truncations of a plan on entries.

import (
	"context"
	"errors"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Options of a contraction. The zero value works.
type Options struct {
	Bond int // largest dimension of a wire after truncation; 0: 32
	// Cutoff: singular values below Cutoff times the largest are dropped; 0: 1e-12.
	Cutoff float64
	// Gauge is how far the surroundings of a truncation are looked at:
	// 1 to 3; 0: 3; below 0: not at all.
	Gauge     int
	Memory    int64 // bytes, as Cost.PeakBytes counts them; 0: btn.DefaultMemory, 2 GiB
	Marginals bool
	// Projectors of an earlier contraction along the
	// same plan are applied instead of learning them.
	Projectors *Projectors
	Keep       bool // return the projectors
	// Tolerance, above 0,
	// ends a contraction with Projectors whose Value.Excess would be above it: ErrTolerance.
	Tolerance float64
}

// Value is what a contraction found.
type Value struct {
	Z scaled.Number // an approximation; it may be negative
	// Marginals[i][v] is Σ of the terms of Z in which index i has value v, over Z;
	// nil unless asked for, and where Z is 0.
	Marginals [][]float64
	// Discarded is the largest share Σ s_dropped² / Σ s² of one truncation, in its gauge. With
	// Options.Projectors: the largest ‖AB − A P P'ᵀ B‖² / ‖AB‖², estimated by a few fixed vectors.
	// No bound of the error of Z.
	Discarded float64
	// Excess says how much worse projectors fit here than where they were learned,
	// about in nats of ln Z:
	//
	//	Σ_k √(residual_k − 4·Projector.Residual_k), where that is above 0
	//
	// Its error has been seen up to twice that, and the Loss of the projectors.
	Excess float64
	// Truncated says that something above Cutoff was dropped,
	// or that projectors were applied to other entries.
	Truncated bool
	Bond      int // largest dimension of a wire that was truncated to
	Flops     float64
	// PeakBytes is most held at once, the expression included, factorisations and projectors not.
	PeakBytes  float64
	Projectors *Projectors // with Keep; nil where Z is 0
}

const (
	defaultBond   = 32
	defaultCutoff = 1e-12
)

// withDefaults replaces what is left to the default.
func (o Options) withDefaults() Options {
	if o.Bond <= 0 {
		o.Bond = defaultBond
	}
	if !(o.Cutoff > 0) {
		o.Cutoff = defaultCutoff
	}
	switch {
	case o.Gauge == 0 || o.Gauge > defaultGauge:
		o.Gauge = defaultGauge
	case o.Gauge < 0:
		o.Gauge = 0
	}
	if o.Memory <= 0 {
		o.Memory = btn.DefaultMemory
	}
	return o
}

// Contract returns the value of e, contracted along p:
//
//	Z ≈ Scale · Σ_x Π_t Tables[t][x]
//
// After a merge every bundle of parallel wires between the new tensor A and a neighbour B whose
// dimension exceeds the bond is replaced by one wire of at most Bond, with A = Q_A R_A and B = Q_B
// R_B as matrices (rest × bundle) in the gauge of their surroundings and R_A R_Bᵀ = U S Vᵀ:
//
//	A ← A P, B ← B P',  P = R_Bᵀ V S^-½, P' = R_Aᵀ U S^-½
//
// Nothing is truncated where no bundle exceeds the bond, and then Z is exact. A common exponent of
// 2 is carried; within one tensor entries 2^−1000 below the largest may become 0. The same
// arguments give the same bits.
//
// Errors: sumproduct.ErrOverBudget (fault.OverBudget) with the bytes of Evaluate, before anything
// is computed; ErrPlan; sumproduct.ErrNotFinite; the context's. Cost: Evaluate; with marginals two
// to four times its flops.
func Contract(ctx context.Context, e *sumproduct.Expression, p Plan, o Options) (Value, error) {
	o = o.withDefaults()
	h := e.Hypergraph()
	if err := e.Validate(); err != nil {
		return Value{}, err
	}

	n, err := newNetwork(h, p)
	if err != nil {
		return Value{}, err
	}

	m := newMeter(n.clone(), o.Bond, o.Gauge)
	m.start(h)
	if err := m.run(p.Merges, nil); err != nil {
		return Value{}, err
	}

	need := m.cost().PeakBytes
	if o.Marginals {
		need = m.cost().MarginalBytes
	}

	if need > float64(o.Memory) {
		return Value{}, fault.New(fault.OverBudget,
			"%w: a contraction with bond %d needs %.4g bytes, the budget is %d",
			sumproduct.ErrOverBudget, o.Bond, need, o.Memory)
	}

	r := &run{
		ctx:  ctx,
		e:    e,
		plan: p,
		n:    n,
		o:    o,
		data: make([][]float64, len(n.node)+len(p.Merges)),
	}

	r.Limit = int(need / 8)
	for _, t := range e.Tables {
		r.Live += len(t.Data)
	}

	err = r.all()
	if errors.Is(err, errZero) {
		r.value.Z = scaled.Number{}
		r.value.Projectors = nil
		err = nil
	}
	r.value.Flops = r.flops
	r.value.PeakBytes = 8 * float64(r.Peak)
	return r.value, err
}

// ErrTolerance says that projectors fit the entries too badly.
var ErrTolerance = errors.New("trees: the projectors do not fit")

// errZero ends a contraction whose value is 0.
var errZero = errors.New("the value is 0")

// run is one contraction.
type run struct {
	kernel
	ctx    context.Context
	e      *sumproduct.Expression
	plan   Plan
	n      *network
	o      Options
	data   [][]float64 // by node, in the order of its legs
	exp    int64       // all tensors together are times 2^exp
	tape   []step      // with marginals
	guests [][]int     // by table: those that it is the host of
	taken  int         // truncations so far
	shared []bool      // by index: whether it is a wire of the network
	space  []float64   // of triangle
	value  Value
}

// all loads the tables, goes through the merges, and the way back where marginals are asked for.
func (r *run) all() error {
	z := r.e.Scale
	for i, used := range r.used() {
		if !used {
			z = z.Mul(scaled.FromFloat(float64(r.e.Dims[i])))
		}
	}

	if z.IsZero() {
		return errZero
	}

	if r.o.Keep {
		r.value.Projectors = &Projectors{Bond: r.o.Bond}
	}
	if err := r.loadTables(); err != nil {
		return err
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

// loadTables makes the leaves, each table times its guests.
func (r *run) loadTables() error {
	r.guests = make([][]int, len(r.e.Tables))
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
	return nil
}

// used says which indices some table has.
func (r *run) used() []bool {
	used := make([]bool, len(r.e.Dims))
	for _, t := range r.e.Tables {
		for _, i := range t.Scope {
			used[i] = true
		}
	}
	return used
}

// whole is table t times the tables of one index that it is the host of,
// in the layout of its scope.
func (r *run) whole(t int) []float64 {
	data := r.Get(len(r.e.Tables[t].Data))
	copy(data, r.e.Tables[t].Data)
	for _, guest := range r.guests[t] {
		r.absorb(data, t, guest)
	}
	return data
}

// absorb multiplies table t by a table of at most one of its indices.
func (r *run) absorb(data []float64, t, guest int) {
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

// load makes the leaf of table t: sums over the indices that no other table has.
func (r *run) load(t int) error {
	data := r.whole(t)
	nd := &r.n.node[t]
	out := array{}
	in := array{data: data}
	var dims []int
	for i, w := range nd.legs {
		dims = append(dims, r.n.wire[w].dim)
		in.labels = append(in.labels, int32(i))
		if r.n.wire[w].end[1] >= 0 {
			out.labels = append(out.labels, int32(i))
		}
	}

	r.n.drop(int32(t))
	if len(out.labels) < len(in.labels) {
		out.data = r.Get(volume(dims, out.labels))
		r.product(out, in, array{}, dims)
		r.Put(data)
		data = out.data
	}

	r.data[t] = data
	return r.normalise(int32(t))
}

// normalise scales a node by a power of two so that its largest entry is in [1, 2).
func (r *run) normalise(i int32) error {
	e, err := rescale(r.data[i])
	r.exp += e
	return err
}

// rescale divides by the power of two that it returns, which makes the largest entry be in [1, 2).
func rescale(data []float64) (int64, error) {
	top := scaled.LargestBits(data)
	switch {
	case top >= scaled.Infinity:
		return 0, fault.New(fault.Unsupported, "%w", sumproduct.ErrNotFinite)
	case top == 0:
		return 0, errZero
	}
	return scaled.Rescale(data, top).Exp, nil
}

// merge makes one tensor of two and truncates the bundles that have become too large.
func (r *run) merge(a, b int32, partner []int32) error {
	m := &merging{}
	id, err := r.n.merge(a, b, m)
	if err != nil {
		return err
	}

	out := array{labels: m.out, data: r.Get(int(r.n.node[id].size))}
	r.product(out, array{r.entries(m.operand[0]), m.labels[0]},
		array{r.entries(m.operand[1]), m.labels[1]}, m.dims)
	r.data[id] = out.data

	if r.o.Marginals {
		r.tape = append(r.tape, step{
			merging: m,
			out:     id,
			in:      [2][]float64{r.entries(m.operand[0]), r.entries(m.operand[1])},
		})
	}

	for _, i := range m.operand {
		if i >= 0 && !r.o.Marginals {
			r.Put(r.data[i])
		}
	}

	r.data[a], r.data[b] = nil, nil

	if err := r.normalise(id); err != nil {
		return err
	}

	for _, bundle := range r.n.truncatable(id, r.o.Bond, partner) {
		if err := r.truncate(id, bundle.to); err != nil {
			return err
		}
	}
	return nil
}

// entries are those of a node; nil for a copy tensor.
func (r *run) entries(i int32) []float64 {
	if i < 0 {
		return nil
	}
	return r.data[i]
}
