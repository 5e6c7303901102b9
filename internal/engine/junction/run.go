package junction

// Runs: tables from the leaves to the root, for the lanes whose evidence changes them, and derivatives from the root to the leaves.

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
	ctx     context.Context // of the current batch
	queries []Query         // by lane
	isWide  bool            // all lanes are computed; else only the first
	changed []lanes         // by table: the lanes in which evidence changes it
	tables  []table         // by table: its entries; those of base if no lane is changed
	// derivatives has, by table, the derivative of Z by each of its entries, if isNeeded of the table is set.
	derivatives []table
	isNeeded    []bool
	pool        pool         // memory of tables and derivatives
	widened     [2][]float64 // copies of tables of one lane for all lanes, for the two operands of a product
	matrix      kernel.Product
	factor      [Lanes]scaled.Number // by lane, of Z and of every marginal: the scale, and weights that are in no table
	lossy       lanes                // the lanes in which digits may be lost
	laneWeights []float64            // scratch: the weights of one variable in all lanes
}

// maxFreeRuns bounds the runs whose memory is kept for the next ones, maxRunBytes the memory of each.
const (
	maxFreeRuns = 4
	maxRunBytes = 32 << 20
)

// getRun returns a run with the memory of a finished one if there is one, else a new run. putRun gives it back.
func (t *Tree) getRun() *run {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		r := t.free[n-1]
		t.free = t.free[:n-1]
		return r
	}
	tables := len(t.leaves) + len(t.merges)
	return &run{
		Tree:        t,
		ctx:         context.Background(),
		changed:     make([]lanes, tables),
		tables:      make([]table, tables),
		derivatives: make([]table, tables),
		isNeeded:    make([]bool, tables),
	}
}

// putRun keeps a finished run for getRun, without its tables if they take more than maxRunBytes. If maxFreeRuns are kept already, it does
// nothing.
func (t *Tree) putRun(r *run) {
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

// wideSpeedup is the ratio of the flops per second in all lanes to those in one lane. Measured on networks of 20 to 1,000 variables: 2.3
// to 6.
const wideSpeedup = 3.0

// Options of a run. The zero value works.
type Options struct {
	Threads int   // goroutines; 0: all processors
	Memory  int64 // bytes of all tables that evidence changes; 0: any number. One query is answered in any case
}

// Run answers queries, in batches of at most Lanes that share goroutines. The bits of an answer depend on the compiled network, the tree
// and the query alone. The error is the context's. Time: the flops of the answers, or less.
func (t *Tree) Run(ctx context.Context, queries []Query, o Options) ([]Answer, error) {
	answers := make([]Answer, len(queries))
	batches := (len(queries) + Lanes - 1) / Lanes
	threads := sumproduct.Threads(o.Threads)
	runBytes := 2 * Lanes * t.bytes() // tables and derivatives in all lanes
	if o.Memory > 0 {
		threads = max(1, min(threads, int(o.Memory/runBytes)))
	}
	mayUseAllLanes := o.Memory <= 0 || runBytes <= o.Memory
	err := sumproduct.RunChunks(ctx, threads, batches, func(_, batch int) error {
		start, end := batch*Lanes, min((batch+1)*Lanes, len(queries))
		r := t.getRun()
		defer t.putRun(r)
		return r.answerBatch(ctx, queries[start:end], answers[start:end], mayUseAllLanes)
	})
	return answers, err
}

// answerBatch answers at most Lanes queries: side by side in all lanes if mayUseAllLanes is set and that takes less time, else one by one.
func (r *run) answerBatch(ctx context.Context, queries []Query, answers []Answer, mayUseAllLanes bool) error {
	r.ctx = ctx
	if r.setQueries(queries) && mayUseAllLanes {
		copy(answers, r.answer())
		return ctx.Err()
	}
	for k := range queries {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.setQueries(queries[k : k+1])
		answers[k] = r.answer()[0]
	}
	return nil
}

// setQueries begins the work on some queries: it marks the tables that their evidence changes. It reports whether all queries side by side,
// one in each lane, take less time than one by one.
func (r *run) setQueries(queries []Query) (isFasterWide bool) {
	r.queries, r.isWide, r.lossy = queries, len(queries) > 1, 0
	r.findChanges()

	// A merge in all lanes costs its flops in each lane if the evidence of any query changes its output; one by one, only those queries
	// pay that change it. Derivatives cost two more products for each query with marginals.
	flopsPerLane, flopsOneByOne := 0.0, 0.0
	for k := range r.merges {
		m, out := &r.merges[k], r.outputOf(k)
		r.changed[out] = r.changed[m.left] | r.changed[m.right]
		if r.changed[out] != 0 {
			flopsPerLane += m.flops
			flopsOneByOne += m.flops * float64(bits.OnesCount8(uint8(r.changed[out])))
		}
		for _, q := range queries {
			if q.Marginals != nil {
				flopsPerLane += 2 * m.flops / float64(len(queries))
				flopsOneByOne += 2 * m.flops
			}
		}
	}
	return Lanes*flopsPerLane < wideSpeedup*flopsOneByOne
}

// answer returns the answers to the current queries, which are computed side by side, one in each lane, and fills their marginals. An
// answer whose OK is false has marginals of 0. If the context ends, the answers mean nothing.
func (r *run) answer() []Answer {
	answers := make([]Answer, len(r.queries))
	hasMarginals := slices.ContainsFunc(r.queries, func(q Query) bool { return q.Marginals != nil })
	r.forward(answers, hasMarginals)
	if r.ctx.Err() != nil {
		return answers
	}
	for lane := range answers {
		answers[lane].OK = !r.lossy.has(lane) && answers[lane].Z.IsFinite()
	}
	// The pass back may lose digits as well, and there are no marginals of a Z of 0.
	if hasMarginals {
		r.backward(answers)
		r.setSingleValues(answers)
	}
	for lane, q := range r.queries {
		if q.Marginals == nil {
			continue
		}
		answers[lane].OK = answers[lane].OK && !answers[lane].Z.IsZero() && !r.lossy.has(lane)
		if !answers[lane].OK {
			clear(q.Marginals)
		}
	}
	return answers
}

// setSingleValues sets the marginals of the variables for which the network's zeros leave one value (leaf < 0): that value has the marginal
// Z.
func (r *run) setSingleValues(answers []Answer) {
	for lane, q := range r.queries {
		for v := range r.weights {
			if w := &r.weights[v]; w.leaf < 0 && q.Marginals != nil {
				q.Marginals[w.offset+w.variableValue(0)] = answers[lane].Z
			}
		}
	}
}

// laneCount returns the number of lanes that are computed: all or one.
func (r *run) laneCount() int {
	if r.isWide {
		return Lanes
	}
	return 1
}

// longMerge is the number of flops above which the context is checked before a merge.
const longMerge = 1 << 16

// isCancelled reports whether m is long and the context has ended. Then the numbers of this run mean nothing.
func (r *run) isCancelled(m *merge) bool { return m.flops > longMerge && r.ctx.Err() != nil }

// forward computes the tables that evidence changes, from the leaves to the root, and sets Z and the flops of each lane's answer. Tables
// that no evidence changes are those of base. keepTables keeps the memory of all tables, for the derivatives. A lane is one of the queries
// that are computed side by side.
func (r *run) forward(answers []Answer, keepTables bool) {
	for k := range r.leaves {
		if r.tables[k] = r.base[k]; r.changed[k] != 0 {
			r.computeLeaf(k)
		}
	}

	for k := range r.merges {
		m, out := &r.merges[k], r.outputOf(k)
		if r.tables[out] = r.base[out]; r.changed[out] == 0 {
			continue
		}
		if r.isCancelled(m) {
			break
		}
		r.multiply(&r.tables[out], &r.tables[m.left], &r.tables[m.right], &r.products[k].forth)
		for lane := range answers {
			if r.changed[out].has(lane) {
				answers[lane].Flops += m.flops
			}
		}
		if !keepTables {
			r.releaseTable(m.left)
			r.releaseTable(m.right)
		}
	}
	if r.ctx.Err() != nil {
		return
	}

	root := len(r.tables) - 1 // its only entry is Z, without the factors that are in no table
	for lane := range answers {
		answers[lane].Z = r.factor[lane].Mul(scaled.Make(r.tables[root].at(0, lane), r.tables[root].exp[lane]))
	}
	if !keepTables {
		r.releaseTable(root)
	}
}

// releaseTable gives the memory of a table back to the pool. It does nothing if the table is the one without evidence, which others use.
func (r *run) releaseTable(table int) {
	if r.changed[table] != 0 {
		r.pool.put(r.tables[table].data)
		r.tables[table].data = nil
	}
}

// findChanges sets changed for all leaves, the set of lanes (queries computed side by side) whose evidence changes them, and factor: by
// lane, the product of the scale and of the weights of variables with a single value, which are in no leaf.
func (r *run) findChanges() {
	clear(r.changed)
	for lane, q := range r.queries {
		r.factor[lane] = r.scale.Mul(q.Net.Scale)
		for v := range r.weights {
			w := &r.weights[v]
			switch {
			case w.leaf < 0:
				r.factor[lane] = r.factor[lane].Mul(scaled.FromFloat(w.in(q.Net)[w.variableValue(0)]))
			case w.isChangedBy(q.Net):
				r.changed[w.leaf] |= 1 << lane
			}
		}
	}
}

// multiply sets out to the product p of the tables a and b, in all lanes if the run has more than one. It adds to r.lossy the lanes in
// which digits may be lost. A lane is one of the queries that are computed side by side.
func (r *run) multiply(out, a, b *table, p *product) {
	p.positionsOnce.Do(p.listPositions)
	out.isWide = r.isWide
	out.data = r.pool.get(p.size() * r.laneCount())
	r.lossy |= out.setProductBounds(a, b, p.terms)
	if r.isWide {
		const first, second = 0, 1 // wideData has a buffer for each operand
		p.multiplyWide(out.data, r.wideData(a, first), r.wideData(b, second))
	} else {
		p.multiply(&r.matrix, out.data, a.data, b.data)
	}
	out.keepInRange()
}

// wideData returns the entries of a table in all lanes. If the table has one lane, they are a copy, which is valid until the next call for
// the same operand (0 or 1) of a product. A lane is one of the queries that are computed side by side.
func (r *run) wideData(t *table, operand int) []float64 {
	if t.isWide {
		return t.data
	}
	if buffer := &r.widened[operand]; len(*buffer) < len(t.data)*Lanes {
		*buffer = make([]float64, len(t.data)*Lanes)
	}
	wide := t.widen(r.widened[operand])
	return wide.data
}

// computeLeaf sets the table of leaf k to the table of the network times the weights of its variables, in each lane under that lane's
// evidence.
func (r *run) computeLeaf(k int) {
	l := &r.leaves[k]
	t := table{data: l.data}
	for lane := range Lanes {
		t.low[lane] = l.low // the exponent of the smallest entry but 0; multiplyWeights adds those of the weights
	}
	memory := r.pool.get(len(l.data) * r.laneCount())
	if r.isWide {
		t = t.widen(memory)
	} else {
		t.data = memory[:copy(memory, l.data)]
	}
	for _, v := range l.weighted {
		r.multiplyWeights(&t, &r.weights[v])
	}
	for lane := range Lanes {
		if t.low[lane] < minLow { // digits may be lost
			r.lossy |= 1 << lane
		}
	}
	t.measure()
	t.rescale()
	r.tables[k] = t
}

// multiplyWeights multiplies the weights of one variable into the table of its leaf, in each lane those under the lane's evidence. Lanes
// without a query get the weights without evidence. Lanes in which digits may be lost are added to r.lossy.
func (r *run) multiplyWeights(t *table, w *weights) {
	n := r.laneCount()

	// Collect the weights: laneWeights[lane*w.dim+k] is that of value k of the leaf's index.
	r.laneWeights = append(r.laneWeights[:0], make([]float64, n*w.dim)...)
	for lane := range n {
		byValue := w.evidenceFree
		if lane < len(r.queries) {
			byValue = w.in(r.queries[lane].Net)
		}
		list := r.laneWeights[lane*w.dim:][:w.dim]
		for k := range list {
			list[k] = byValue[w.variableValue(k)]
		}
		low, exp, ok := normaliseWeights(list)
		if !ok {
			r.lossy |= 1 << lane
		}
		t.exp[lane] += exp
		t.low[lane] += low
	}

	// Multiply. The index has each value k for w.stride entries in a row, and an entry has a number for each lane.
	for entry := 0; entry < len(t.data); {
		for k := range w.dim {
			for end := entry + w.stride*n; entry < end; entry += n {
				for lane := range n {
					t.data[entry+lane] *= r.laneWeights[lane*w.dim+k]
				}
			}
		}
	}
}

// normaliseWeights divides the weights of a variable, in place, by 2^exp, and returns the exponent low of the smallest that is then not 0.
// exp is 0 if all weights are within 2^±margin, else the largest weight comes out in [1, 2).
//
// ok is false if a weight is not finite or below 0, or if their exponents differ by more than spanLimit.
func normaliseWeights(weights []float64) (low int, exp int64, ok bool) {
	top, low, hasNegative := floats.Extent(weights)
	isFinite := top < 1024 // Extent returns 1024 if an entry is infinite or NaN
	if hasNegative || top-low > spanLimit || !isFinite {
		return 0, 0, false
	}
	if top > margin || low < -margin {
		exp = floats.Normalise(weights).Exp
	}
	return low - int(exp), exp, true
}

// backward computes the derivatives of Z by all tables between the root and the leaves that have the weights of targets, and the marginals.
// It begins with ∂Z/∂root = 1, and releases all tables.
func (r *run) backward(answers []Answer) {
	r.markNeeded()
	root := len(r.derivatives) - 1
	r.derivatives[root] = table{data: append(r.pool.get(1)[:0], 1)}
	for k := len(r.merges) - 1; k >= 0; k-- {
		m, p, out := &r.merges[k], &r.products[k], r.outputOf(k)
		if r.isCancelled(m) { // the answers mean nothing now
			return
		}
		if r.isNeeded[out] {
			r.differentiate(answers, m.flops, out, m.left, m.right, &p.toLeft)
			r.differentiate(answers, m.flops, out, m.right, m.left, &p.toRight)
			r.pool.put(r.derivatives[out].data)
		}
		r.releaseTable(out)
	}
	for k := range r.leaves {
		r.releaseTable(k)
	}
}

// differentiate computes ∂Z/∂input = Σ ∂Z/∂out · sibling by the product p, where a merge has made the table out of input and sibling. It
// does nothing if the derivative is not needed. If input is a leaf, it reads the marginals from the derivative and releases it.
func (r *run) differentiate(answers []Answer, flops float64, out, input, sibling int, p *product) {
	if !r.isNeeded[input] {
		return
	}
	r.multiply(&r.derivatives[input], &r.derivatives[out], &r.tables[sibling], p)
	for lane, q := range r.queries {
		if q.Marginals != nil {
			answers[lane].Flops += flops
		}
	}
	if input < len(r.leaves) {
		// Marginals are sums of products of an entry and its derivative, of which only the bounds are needed here.
		r.lossy |= new(table).setProductBounds(&r.tables[input], &r.derivatives[input], len(r.leaves[input].data))
		for lane, q := range r.queries {
			if q.Marginals != nil {
				r.readMarginals(lane, input)
			}
		}
		r.pool.put(r.derivatives[input].data)
	}
}

// markNeeded sets isNeeded for the tables whose derivatives are needed: leaves that have the weights of a target, and all tables on the way
// from these to the root.
func (r *run) markNeeded() {
	clear(r.isNeeded)
	for _, q := range r.queries {
		if q.Marginals == nil {
			continue
		}
		for v := range r.targetsOrAll(q.Targets) {
			if leaf := r.weights[v].leaf; leaf >= 0 {
				r.isNeeded[leaf] = true
			}
		}
	}
	for k, m := range r.merges {
		r.isNeeded[r.outputOf(k)] = r.isNeeded[m.left] || r.isNeeded[m.right]
	}
}

// targetsOrAll yields the targets, or all variables if targets is nil.
func (t *Tree) targetsOrAll(targets []int) func(yield func(int) bool) {
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

// readMarginals fills the marginals of a lane for all variables whose weights a leaf has, asked for or not. The marginal of a value is the
// sum of entry · ∂Z/∂entry over the leaf's entries of that value. A lane is one of the queries that are computed side by side.
func (r *run) readMarginals(lane, leaf int) {
	t, derivative := &r.tables[leaf], &r.derivatives[leaf]
	entries := len(r.leaves[leaf].data)
	for _, v := range r.leaves[leaf].weighted {
		w := &r.weights[v]
		for k := range w.dim {
			// The entries of value k are blocks of w.stride neighbours, one block in every w.stride·w.dim entries.
			sum := 0.0
			for start := k * w.stride; start < entries; start += w.stride * w.dim {
				for entry := start; entry < start+w.stride; entry++ {
					sum = math.FMA(t.at(entry, lane), derivative.at(entry, lane), sum)
				}
			}
			marginal := r.factor[lane].Mul(scaled.Make(sum, t.exp[lane]+derivative.exp[lane]))
			r.queries[lane].Marginals[w.offset+w.variableValue(k)] = marginal
		}
	}
}

// computeBase computes all tables without evidence and stores them in t.base. ok is false if digits may be lost. Its run does not go back
// to the free ones, since t.base keeps the run's tables.
func (t *Tree) computeBase(net *btn.Network) (ok bool) {
	r := t.getRun()
	r.queries = []Query{{Net: net}} // one, in lane 0
	for k := range t.leaves {
		r.computeLeaf(k)
	}
	for k := range t.merges {
		m := &t.merges[k]
		r.multiply(&r.tables[t.outputOf(k)], &r.tables[m.left], &r.tables[m.right], &t.products[k].forth)
	}
	t.base = r.tables
	for k := range t.base {
		t.base[k].copyFirstLane() // without evidence all lanes are alike
	}
	return !r.lossy.has(0)
}
