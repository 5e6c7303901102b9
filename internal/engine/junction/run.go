package junction

// Runs: tables forth, for the lanes whose evidence changes them, and derivatives back.

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/base/kernel"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Query is one query of a run.
type Query struct {
	Net *btn.Network // the compiled one, conditioned
	// Marginals has room for M_v(x) = w_v(x) ∂Z/∂w_v(x), grouped by variable, the variables in their sequence, Σ_v Domain entries; nil:
	// none are asked for. Σ_x M_v(x) = Z up to rounding.
	Marginals []scaled.Number
	// Targets are the variables whose marginals are asked for; nil: all.
	Targets []int
}

// Answer is the answer to a query.
type Answer struct {
	Z     scaled.Number
	Flops float64 // of the tables that its evidence changes, and of its pass back
	// OK is false if digits may be lost, if an entry is not finite, if weights are below 0, or if marginals are asked for and Z is 0. Then
	// package einsum has to contract the network.
	OK bool
}

// run answers up to Lanes queries at a time, one in each lane.
type run struct {
	*Tree
	ctx     context.Context // of the batch; calibration has none that ends
	queries []Query
	isWide  bool    // all lanes are computed; else only the first
	changed []lanes // by table: the lanes in which evidence changes it
	tables  []table // by table; that of base if no lane is changed
	by      []table // by table: the derivative of Z by it, once it is needed
	needed  []bool  // by table: its derivative is
	pool    pool
	widened [2][]float64 // copies of tables of one lane for all lanes, for the two operands of a product
	matrix  kernel.Product
	factor  [Lanes]scaled.Number // of Z and of every marginal: the scale, and weights that are in no table
	lost    lanes                // in which digits may be lost
	list    []float64            // weights of a variable
}

// maxFreeRuns bounds the runs whose memory is kept for the next ones, maxRunBytes the memory of each.
const (
	maxFreeRuns = 4
	maxRunBytes = 32 << 20
)

// take returns a run, one that has ended if there is one.
func (t *Tree) take() *run {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		r := t.free[n-1]
		t.free = t.free[:n-1]
		return r
	}
	tables := len(t.leaves) + len(t.merges)
	return &run{
		Tree:    t,
		ctx:     context.Background(),
		changed: make([]lanes, tables),
		tables:  make([]table, tables),
		by:      make([]table, tables),
		needed:  make([]bool, tables),
	}
}

// give keeps a run that has ended for take.
func (t *Tree) give(r *run) {
	r.queries, r.ctx = nil, context.Background()
	if r.pool.bytes > maxRunBytes {
		r.pool = pool{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) < maxFreeRuns {
		t.free = append(t.free, r)
	}
}

// gain is the ratio of the flops a second of all lanes to those of one.
// Measured on networks of 20 to 1,000 variables: 2.3 to 6.
const gain = 3.0

// Options of a run. The zero value works.
type Options struct {
	Threads int   // goroutines; 0: all processors
	Memory  int64 // bytes of all tables that evidence changes; 0: any number. One query is answered in any case
}

// Run answers queries. The bits of an answer depend on the compiled network, the tree and the query alone. The error is the context's.
// Time: the flops of the answers, or less.
func (t *Tree) Run(ctx context.Context, queries []Query, o Options) ([]Answer, error) {
	answers := make([]Answer, len(queries))
	batches := (len(queries) + Lanes - 1) / Lanes
	threads := sumproduct.Threads(o.Threads)
	each := 2 * Lanes * t.bytes() // of a run of all lanes, with its way back
	if o.Memory > 0 {
		threads = max(1, min(threads, int(o.Memory/each)))
	}
	mayJoin := o.Memory <= 0 || each <= o.Memory
	err := sumproduct.Share(ctx, threads, batches, func(_, batch int) error {
		from, to := batch*Lanes, min((batch+1)*Lanes, len(queries))
		r := t.take()
		defer t.give(r)
		return r.batch(ctx, queries[from:to], answers[from:to], mayJoin)
	})
	return answers, err
}

// batch answers at most Lanes queries: all lanes together if mayJoin and that takes less time, else one by one.
func (r *run) batch(ctx context.Context, queries []Query, answers []Answer, mayJoin bool) error {
	r.ctx = ctx
	if r.begin(queries) && mayJoin {
		copy(answers, r.answer())
		return ctx.Err()
	}
	for k := range queries {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.begin(queries[k : k+1])
		answers[k] = r.answer()[0]
	}
	return nil
}

// begin finds the tables that the evidence of some queries changes. It reports whether the queries take less together than one by one.
func (r *run) begin(queries []Query) (together bool) {
	r.queries, r.isWide, r.lost = queries, len(queries) > 1, 0
	r.findChanges()
	all, each := 0.0, 0.0 // flops of one lane if all queries run together, and of all queries one by one
	for k := range r.merges {
		m, out := &r.merges[k], len(r.leaves)+k
		r.changed[out] = r.changed[m.left] | r.changed[m.right]
		if r.changed[out] != 0 {
			all += m.flops
			each += m.flops * float64(bits.OnesCount8(uint8(r.changed[out])))
		}
		for _, q := range queries {
			if q.Marginals != nil {
				all += 2 * m.flops / float64(len(queries))
				each += 2 * m.flops
			}
		}
	}
	return Lanes*all < gain*each
}

// answer returns the answers to the queries of begin, and fills their marginals.
func (r *run) answer() []Answer {
	answers := make([]Answer, len(r.queries))
	hasMarginals := slices.ContainsFunc(r.queries, func(q Query) bool { return q.Marginals != nil })
	r.forward(answers, hasMarginals)
	if r.ctx.Err() != nil {
		return answers
	}
	for lane := range answers {
		answers[lane].OK = !r.lost.has(lane) && answers[lane].Z.IsFinite()
	}
	if hasMarginals {
		r.backward(answers)
		r.setSingleValues(answers)
	}
	for lane, q := range r.queries {
		if q.Marginals == nil {
			continue
		}
		answers[lane].OK = answers[lane].OK && !answers[lane].Z.IsZero() && !r.lost.has(lane)
		if !answers[lane].OK {
			clear(q.Marginals)
		}
	}
	return answers
}

// setSingleValues sets the marginal of each variable with a single value left: it is Z.
func (r *run) setSingleValues(answers []Answer) {
	for lane, q := range r.queries {
		for v := range r.weights {
			if w := &r.weights[v]; w.leaf < 0 && q.Marginals != nil {
				q.Marginals[w.offset+w.value(0)] = answers[lane].Z
			}
		}
	}
}

// lanes returns the number of lanes that are computed.
func (r *run) lanes() int {
	if r.isWide {
		return Lanes
	}
	return 1
}

// longMerge is the number of flops of a merge from which the context is looked at before the merge.
const longMerge = 1 << 16

// isOver reports whether the context has ended before a long merge. Then the numbers of this run are void.
func (r *run) isOver(m *merge) bool { return m.flops > longMerge && r.ctx.Err() != nil }

// forward computes the changed tables and Z, and keeps the tables if there is a way back.
func (r *run) forward(answers []Answer, keep bool) {
	for k := range r.leaves {
		if r.tables[k] = r.base[k]; r.changed[k] != 0 {
			r.weigh(k)
		}
	}
	for k := range r.merges {
		m, out := &r.merges[k], len(r.leaves)+k
		if r.tables[out] = r.base[out]; r.changed[out] == 0 {
			continue
		}
		if r.isOver(m) {
			break
		}
		r.multiply(&r.tables[out], &r.tables[m.left], &r.tables[m.right], &r.products[k].forth)
		for lane := range answers {
			if r.changed[out].has(lane) {
				answers[lane].Flops += m.flops
			}
		}
		if !keep {
			r.release(m.left)
			r.release(m.right)
		}
	}
	if r.ctx.Err() != nil {
		return
	}
	root := len(r.tables) - 1
	for lane := range answers {
		answers[lane].Z = r.factor[lane].Mul(scaled.Make(r.tables[root].at(0, lane), r.tables[root].exp[lane]))
	}
	if !keep {
		r.release(root)
	}
}

// release gives the memory of a table back, if the table is not that of base.
func (r *run) release(table int) {
	if r.changed[table] != 0 {
		r.pool.give(r.tables[table].data)
		r.tables[table].data = nil
	}
}

// findChanges finds the leaves that the evidence of each lane changes, and the factors of Z that are in no table.
func (r *run) findChanges() {
	clear(r.changed)
	for lane, q := range r.queries {
		r.factor[lane] = r.scale.Mul(q.Net.Scale)
		for v := range r.weights {
			w := &r.weights[v]
			switch {
			case w.leaf < 0:
				r.factor[lane] = r.factor[lane].Mul(scaled.FromFloat(w.under(q.Net)[w.value(0)]))
			case !w.equalsEvidenceFree(q.Net):
				r.changed[w.leaf] |= 1 << lane
			}
		}
	}
}

// multiply sets out to the product p of two tables, in memory of the pool, and notes the lanes in which digits may be lost.
func (r *run) multiply(out, a, b *table, p *product) {
	p.laid.Do(p.lay)
	out.isWide = r.isWide
	out.data = r.pool.take(p.size() * r.lanes())
	r.lost |= out.bound(a, b, p.terms)
	if r.isWide {
		p.multiplyWide(out.data, r.wide(a, 0), r.wide(b, 1))
	} else {
		p.multiply(&r.matrix, out.data, a.data, b.data)
	}
	out.keepInRange()
}

// wide returns the data of a table in all lanes.
func (r *run) wide(t *table, operand int) []float64 {
	if t.isWide {
		return t.data
	}
	if room := &r.widened[operand]; len(*room) < len(t.data)*Lanes {
		*room = make([]float64, len(t.data)*Lanes)
	}
	wide := t.widen(r.widened[operand])
	return wide.data
}

// weigh computes leaf k, the table of the network times the weights of variables.
func (r *run) weigh(k int) {
	l := &r.leaves[k]
	t := table{data: l.data}
	for lane := range Lanes {
		t.low[lane] = l.low
	}
	room := r.pool.take(len(l.data) * r.lanes())
	if r.isWide {
		t = t.widen(room)
	} else {
		t.data = room[:copy(room, l.data)]
	}
	for _, v := range l.weighted {
		r.multiplyWeights(&t, &r.weights[v])
	}
	for lane := range Lanes {
		if t.low[lane] < deepest {
			r.lost |= 1 << lane
		}
	}
	t.measure()
	t.rescale()
	r.tables[k] = t
}

// multiplyWeights multiplies the weights of one variable into a leaf. Lanes without a query get the weights without evidence.
func (r *run) multiplyWeights(t *table, w *weights) {
	n := r.lanes()
	r.list = append(r.list[:0], make([]float64, n*w.dim)...)
	for lane := range n {
		all := w.without
		if lane < len(r.queries) {
			all = w.under(r.queries[lane].Net)
		}
		list := r.list[lane*w.dim:][:w.dim]
		for k := range list {
			list[k] = all[w.value(k)]
		}
		low, exp, ok := normaliseWeights(list)
		if !ok {
			r.lost |= 1 << lane
		}
		t.exp[lane] += exp
		t.low[lane] += low
	}
	for at := 0; at < len(t.data); {
		for k := range w.dim {
			for end := at + w.stride*n; at < end; at += n {
				for lane := range n {
					t.data[at+lane] *= r.list[lane*w.dim+k]
				}
			}
		}
	}
}

// normaliseWeights divides weights, in place, by the power of two 2^exp of the largest, if one is outside the margin. low is the exponent
// of the smallest that is not 0, after the division. ok is false if they are too far apart, or if one is below 0.
func normaliseWeights(list []float64) (low int, exp int64, ok bool) {
	top, low, isNegative := floats.Extent(list)
	if isNegative || top-low > spanLimit || top >= 1024 {
		return 0, 0, false
	}
	if top > margin || low < -margin {
		exp = floats.Normalise(list).Exp
	}
	return low - int(exp), exp, true
}

// backward computes the derivatives by the leaves that have the weights of targets, and the marginals.
func (r *run) backward(answers []Answer) {
	r.markNeeded()
	r.by[len(r.by)-1] = table{data: append(r.pool.take(1)[:0], 1)}
	for k := len(r.merges) - 1; k >= 0; k-- {
		m, p, out := &r.merges[k], &r.products[k], len(r.leaves)+k
		if r.isOver(m) {
			return
		}
		if r.needed[out] {
			r.differentiate(answers, m.flops, out, m.left, m.right, &p.toLeft)
			r.differentiate(answers, m.flops, out, m.right, m.left, &p.toRight)
			r.pool.give(r.by[out].data)
		}
		r.release(out)
	}
	for k := range r.leaves {
		r.release(k)
	}
}

// differentiate computes the derivative by one of the two tables of a merge from that by its output, if it is needed, and the marginals of
// a leaf.
func (r *run) differentiate(answers []Answer, flops float64, out, by, other int, p *product) {
	if !r.needed[by] {
		return
	}
	r.multiply(&r.by[by], &r.by[out], &r.tables[other], p)
	for lane, q := range r.queries {
		if q.Marginals != nil {
			answers[lane].Flops += flops
		}
	}
	if by < len(r.leaves) {
		r.lost |= new(table).bound(&r.tables[by], &r.by[by], len(r.leaves[by].data))
		for lane, q := range r.queries {
			if q.Marginals != nil {
				r.readMarginals(lane, by)
			}
		}
		r.pool.give(r.by[by].data)
	}
}

// markNeeded finds the tables whose derivatives are needed: leaves with the weights of a target, and all merges above these.
func (r *run) markNeeded() {
	clear(r.needed)
	for _, q := range r.queries {
		if q.Marginals == nil {
			continue
		}
		for v := range r.variables(q.Targets) {
			if k := r.weights[v].leaf; k >= 0 {
				r.needed[k] = true
			}
		}
	}
	for k := range r.merges {
		r.needed[len(r.leaves)+k] = r.needed[r.merges[k].left] || r.needed[r.merges[k].right]
	}
}

// variables yields the targets, or all variables if targets is nil.
func (t *Tree) variables(targets []int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		if targets == nil {
			for v := range t.weights {
				if !yield(v) {
					return
				}
			}
		}
		for _, v := range targets {
			if !yield(v) {
				return
			}
		}
	}
}

// readMarginals fills the marginals of a lane for all variables whose weights a leaf has, asked for or not.
func (r *run) readMarginals(lane, leaf int) {
	t, by := &r.tables[leaf], &r.by[leaf]
	entries := len(r.leaves[leaf].data)
	for _, v := range r.leaves[leaf].weighted {
		w := &r.weights[v]
		for k := range w.dim {
			sum := 0.0
			for from := k * w.stride; from < entries; from += w.stride * w.dim {
				for at := from; at < from+w.stride; at++ {
					sum = math.FMA(t.at(at, lane), by.at(at, lane), sum)
				}
			}
			r.queries[lane].Marginals[w.offset+w.value(k)] = r.factor[lane].Mul(scaled.Make(sum, t.exp[lane]+by.exp[lane]))
		}
	}
}

// calibrate computes all tables without evidence, which become base. It returns false if digits may be lost.
func (t *Tree) calibrate(net *btn.Network) (ok bool) {
	r := t.take()
	r.queries = []Query{{Net: net}}
	for k := range t.leaves {
		r.weigh(k)
	}
	for k := range t.merges {
		m := &t.merges[k]
		r.multiply(&r.tables[len(t.leaves)+k], &r.tables[m.left], &r.tables[m.right], &t.products[k].forth)
	}
	t.base = r.tables
	for k := range t.base {
		t.base[k].spread()
	}
	return r.lost&1 == 0
}
