package structured

// Nearly structured networks: chains from the low-rank part, whose draws are exact and whose Z̃ is known, to the network.
//
//	Z = Z̃ · E Π_t (B/B̃)^{β_{t+1} − β_t}(x_t),   x_0 ~ B̃ L / Z̃,   x_t after a sweep that keeps B̃^{1−β_t} B^{β_t} L
//
// The mean is unbiased for any number of rungs (Neal, Annealed importance sampling); with one, the relative variance of a weight is
// Σ_x L (B/Z − B̃/Z̃)² / (B̃/Z̃), the residual of the fit in the norm that the environment gives.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

const (
	chainsPerBlock = 16 // chains that a goroutine takes at a time
	noValue        = -1 // of a variable that has none yet
)

// Path is a sequence of distributions from a fit to the network, along which chains go: rung t of Rungs weighs B̃^{1−t/Rungs} B^{t/Rungs}.
type Path struct {
	Fit   *Fit `msgpack:"fit"`
	Rungs int  `msgpack:"rungs"`
}

// Fits returns an error unless the path is valid for network n: it has at least one rung, a step of a chain, and a fit without leaves. All
// λ of the fit have to be above 0, so that its components can be drawn from.
func (p *Path) Fits(n *btn.Network) error {
	if p.Rungs < 1 || p.Rungs > 1<<24 {
		return btn.Misfit("%d rungs", p.Rungs)
	}
	if p.Fit != nil && len(p.Fit.Leaves) > 0 {
		return btn.Misfit("chains from a fit with %d leaves", len(p.Fit.Leaves))
	}
	for _, lambda := range p.Fit.lambdas() {
		if !(lambda > 0) {
			return btn.Misfit("a statistic with λ = %v cannot be drawn from", lambda)
		}
	}
	return (&Nodes{Fit: p.Fit, To: WholeShare}).Fits(n)
}

// lambdas returns Lambda, or nil for a nil fit.
func (f *Fit) lambdas() []float64 {
	if f == nil {
		return nil
	}
	return f.Lambda
}

// chains weighs chains from a fit to the network under the evidence.
type chains struct {
	*evaluator              // of the fit
	nodes            []node // of the fit's quadrature
	interactions     *interactions
	residual         []float64 // the network's matrix less that of the fit, with blocks of single variables 0
	cumulative       []float64 // by node: the sum of the weighted components up to it
	lnZ              float64   // ln Z̃ without the network's scale
	lnBoundOfWeights float64   // ln of an upper bound of all weights
	tablesOf         [][]int   // by variable: the tables of the rest that have it
	rungs            int
}

// chainsSlot is the slot of chains in a problem's memory.
type chainsSlot struct{}

// chainsOf returns the chains of a problem along a path. They are made once for a problem and a path.
func chainsOf(ctx context.Context, p *problem.Problem, path *Path) (*chains, error) {
	return problem.Form(ctx, p, chainsSlot{}, path, func() (*chains, error) {
		const sumsLeaves = false // chains need all variables
		m, err := readInteractions(ctx, p.Net, p.Memory, sumsLeaves)
		if err != nil {
			return nil, err
		}
		if m == nil {
			return nil, fault.New(fault.Internal, "structured: the network has no tables of pairs")
		}
		c, err := m.newChains(ctx, p.Net, path)
		if err == nil && !c.isZero { // chains of Z̃ = 0 have no residual
			c.lnBoundOfWeights = c.lnZ + m.boundDeviation(c.residual)
		}
		return c, err
	})
}

// cumulativeWeights returns, by node, the sum of all components up to that node, each times its quadrature weight. The component of a node
// is the sum over all assignments under the weights of the node. Numbers are in units of the largest component, e^lnUnit. lnUnit is −Inf if
// all components are 0. evaluation is room to evaluate them in.
func (e *evaluator) cumulativeWeights(
	ctx context.Context, evaluation *elimination[plain], nodes []node,
) (cumulative []float64, lnUnit float64, err error) {
	// First ln of each component, then the sums.
	cumulative, lnUnit = make([]float64, len(nodes)), math.Inf(-1)
	for k, n := range nodes {
		if k%256 == 0 && ctx.Err() != nil { // 256: chosen
			return nil, 0, ctx.Err()
		}
		cumulative[k] = e.fillWeights(n, evaluation) + e.lnWeight(n) // ln of the weights' scale, and of the quadrature weight
		z, exp := evaluation.computeTotal()
		cumulative[k] += math.Log(float64(z)) + float64(exp)*math.Ln2
		lnUnit = max(lnUnit, cumulative[k])
	}
	total := 0.0
	for k, ln := range cumulative {
		if !math.IsInf(lnUnit, -1) {
			total += math.Exp(ln - lnUnit)
		}
		cumulative[k] = total
	}
	return cumulative, lnUnit, nil
}

// newChains returns the chains along a path from a fit B̃ to the network's base tensor B, with the nodes of the fit's quadrature. lnZ of
// the result is −Inf if Z̃, the sum of B̃ under the evidence, is 0. Cost O(nodes · Σd + K · (Σ(d−1))²) for K statistics and domains d.
func (m *interactions) newChains(ctx context.Context, net *btn.Network, path *Path) (*chains, error) {
	weights, err := weightsOf(net)
	if err != nil {
		return nil, err
	}
	e, err := newEvaluator(path.Fit, weights)
	if err != nil {
		return nil, err
	}
	c := &chains{evaluator: e, interactions: m, lnZ: math.Inf(-1), rungs: path.Rungs}
	if e.isZero {
		return c, nil
	}
	if c.nodes, err = e.listAllNodes(ctx, planWork); err != nil {
		return nil, err
	}

	// Z̃ is the sum of all components.
	const hasShares = false
	evaluation := newElimination[plain](e.program, e.fit, e.firstValue, hasShares)
	lnUnit := 0.0
	if c.cumulative, lnUnit, err = e.cumulativeWeights(ctx, evaluation, c.nodes); err != nil {
		return nil, err
	}
	if n := len(c.cumulative); n > 0 && c.cumulative[n-1] > 0 {
		c.lnZ = lnUnit + math.Log(c.cumulative[n-1]) + path.Fit.Ln
	}

	// What a sweep needs.
	c.residual = m.residualOf(path.Fit)
	c.tablesOf = make([][]int, len(m.domains))
	for t, table := range path.Fit.Rest {
		for _, v := range table.Scope {
			c.tablesOf[v] = append(c.tablesOf[v], t)
		}
	}
	return c, nil
}

// residualOf returns R: the matrix of interactions less the low-rank part of a fit, Σ_k λ_k w_k w_kᵀ, with the blocks of single variables
// set to 0. w_k has the coordinates of statistic k in the basis functions of all variables.
func (m *interactions) residualOf(f *Fit) []float64 {
	residual := slices.Clone(m.matrix)
	values := len(m.field)
	for k, lambda := range f.Lambda {
		// The coordinates of statistic k: w_k for basis function p of variable i is Σ_a functions[i][p*d+a] · v_k(i, a).
		w := make([]float64, m.order)
		for i, d := range m.domains {
			for p := range d - 1 {
				for a := range d {
					w[m.firstCoordinate[i]+p] += m.functions[i][p*d+a] * f.Vectors[k*values+m.firstValue[i]+a]
				}
			}
		}
		for r, x := range w {
			row := residual[r*m.order:][:m.order]
			for c, y := range w {
				row[c] -= lambda * x * y
			}
		}
	}

	for i, d := range m.domains {
		for r := m.firstCoordinate[i]; r < m.firstCoordinate[i]+d-1; r++ {
			clear(residual[r*m.order+m.firstCoordinate[i]:][:d-1])
		}
	}
	return residual
}

// chainFlops estimates the flops of one chain: of its start, and of a sweep for each rung, a step of the path. The terms are those of the
// weights and statistics by value, of the tables of the rest, and of residualField, whose row of the matrix a changed variable adds. The
// factors are estimates.
func (c *chains) chainFlops() float64 {
	n, values := float64(len(c.interactions.domains)), float64(len(c.field))
	sweep := values*(26+4*float64(len(c.axes))) + 0.7*n*float64(c.interactions.order)
	return 30*values + 3*float64(c.program.entries) + 2*n*float64(c.interactions.order) + float64(c.rungs)*sweep
}

// Weights are the weights of some chains, and with marginals the states in which they end.
type Weights struct {
	Ln []float64 // by chain: ln of its weight, nats. The mean of the weights is Z without the network's scale.
	// LnBound is ln of an upper bound of all weights, and so of Z, nats. It is infinite if no bound is known.
	LnBound   float64
	LnLargest float64 // the largest of Ln
	// WeightByValue is, by value, Σ e^{Ln−LnLargest} over the chains that end with a variable at the value; SquareByValue is the same of
	// e^{2(Ln−LnLargest)}. They are nil without marginals.
	WeightByValue, SquareByValue []float64
}

// WeighChains runs the chains of a problem with the numbers from ≤ number < to, and returns their weights and their flops. A chain goes
// along the path, from a draw of its fit to the network, and the mean of the weights is Z. The same arguments give the same bits for any
// number of threads. It returns an internal error for a network of another kind, and errors over budget and of the context.
func WeighChains(
	ctx context.Context, p *problem.Problem, path *Path, seed uint64, from, to int64, marginals bool,
) (*Weights, float64, error) {
	c, err := chainsOf(ctx, p, path)
	if err != nil {
		return nil, 0, err
	}
	w, err := c.weighChains(ctx, seed, from, to, p.Threads, marginals)
	return w, c.chainFlops() * float64(to-from), err
}

// weighChains runs the chains with the numbers from ≤ number < to and returns their weights. It is WeighChains without the preparation.
func (c *chains) weighChains(ctx context.Context, seed uint64, from, to int64, threads int, marginals bool) (*Weights, error) {
	ln, ends, err := c.runChains(ctx, seed, from, to, threads, marginals)
	if err != nil {
		return nil, err
	}
	w := &Weights{Ln: ln, LnLargest: slices.Max(ln), LnBound: c.lnBoundOfWeights}
	if !marginals || math.IsInf(w.LnLargest, -1) {
		return w, nil
	}

	// Add the weights of the chains by the values that they end with.
	w.WeightByValue, w.SquareByValue = make([]float64, len(c.field)), make([]float64, len(c.field))
	for k, ln := range w.Ln {
		weight := math.Exp(ln - w.LnLargest)
		for v, x := range ends[k] {
			w.WeightByValue[c.firstValue[v]+x] += weight
			w.SquareByValue[c.firstValue[v]+x] += weight * weight
		}
	}
	return w, nil
}

// runChains runs the chains with the numbers from ≤ number < to, in blocks that threads take one after the other. It returns for each chain
// ln of the chain's weight and, with hasEnds, the state in which the chain ends. Each chain has a random stream of its own, so the threads
// do not matter.
func (c *chains) runChains(
	ctx context.Context, seed uint64, from, to int64, threads int, hasEnds bool,
) (ln []float64, ends [][]int, err error) {
	ln, ends = make([]float64, to-from), make([][]int, to-from)
	blocks := (len(ln) + chainsPerBlock - 1) / chainsPerBlock
	walkers := make([]*walker, max(1, sumproduct.Threads(threads)))
	err = sumproduct.RunChunks(ctx, len(walkers), blocks, func(thread, b int) error {
		if walkers[thread] == nil {
			walkers[thread] = c.newWalker()
		}
		for k := b * chainsPerBlock; k < min((b+1)*chainsPerBlock, len(ln)); k++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			ln[k] = walkers[thread].runChain(ctx, rand.New(rand.NewPCG(seed, uint64(from)+uint64(k))))
			if hasEnds {
				ends[k] = slices.Clone(walkers[thread].state)
			}
		}
		return nil
	})
	if err == nil {
		err = ctx.Err() // a chain that the context ends returns without an error
	}
	if err != nil {
		return nil, nil, err
	}
	return ln, ends, nil
}

// walker runs one chain after the other.
type walker struct {
	*chains
	elimination   *elimination[plain]
	state         []int     // by variable: its value
	statistics    []float64 // s_k of the state
	residualField []float64 // R ξ for the residual R, where ξ has functions[v][p*d+x] for each variable v at value x and function p
	lnWeights     []float64 // room for the conditional weights of a variable's values
	lastNode      int       // that the elimination was run for; −1: none
}

// newWalker returns a walker with room for a state and what depends on it: its statistics and residualField.
func (c *chains) newWalker() *walker {
	n := len(c.interactions.domains)
	const hasShares = false // a walker computes totals and draws, without a way back
	return &walker{
		chains: c, elimination: newElimination[plain](c.program, c.fit, c.firstValue, hasShares), lastNode: -1,
		state: make([]int, n), statistics: make([]float64, len(c.axes)), residualField: make([]float64, c.interactions.order),
		lnWeights: make([]float64, maxDomain),
	}
}

// runChain runs one chain of annealed importance sampling from a fit B̃ to the base tensor B, and returns ln of its weight. It draws a
// state from the fit, and at each rung t, the distribution B̃^{1−t/rungs} B^{t/rungs}, sweeps once over its variables. The weight is Z̃
// times (B/B̃)^{1/rungs} at the state before each rung. It returns −Inf if Z̃ is 0.
func (w *walker) runChain(ctx context.Context, r *rand.Rand) float64 {
	if math.IsInf(w.lnZ, -1) {
		return w.lnZ
	}
	w.drawStart(r)
	ln := w.lnZ
	for t := 1; ; t++ {
		ln += w.lnDeviation() / float64(w.rungs)
		if t == w.rungs || ctx.Err() != nil { // the caller looks at ctx, too
			return ln
		}
		w.sweep(r, float64(t)/float64(w.rungs))
	}
}

// drawStart draws a state from the fit, a sum of components, one for each node of its quadrature: first a component with a probability
// proportional to its sum over all states, then the values of all variables from that component. cumulative[k] is the sum of the components
// up to k. It also computes the state's statistics, s_k = Σ_v Vectors[k, value of v], and residualField, the product of the residual and
// the state's basis functions.
func (w *walker) drawStart(r *rand.Rand) {
	total := w.cumulative[len(w.cumulative)-1]
	component := min(sort.SearchFloat64s(w.cumulative, r.Float64()*total), len(w.nodes)-1)
	if component != w.lastNode {
		w.fillWeights(w.nodes[component], w.elimination) // scales do not matter for a draw
		if len(w.program.cliques) > 0 {
			w.elimination.computeTotal() // fills the tables that drawVariables reads
		}
		w.lastNode = component
	}
	w.elimination.drawVariables(r, w.state)
	clear(w.statistics)
	clear(w.residualField)
	values := len(w.field)
	for v, x := range w.state {
		for k := range w.statistics {
			w.statistics[k] += w.fit.Vectors[k*values+w.firstValue[v]+x]
		}
		w.addResidual(v, noValue, x)
	}
}

// addResidual updates residualField = R ξ for a change of variable v from value old to value. R is the matrix of interactions less that of
// the fit. ξ has the basis functions of all variables at the state, of which only those of v change: for each it adds the change times the
// function's row of R. If old is noValue, the variable had no value before.
func (w *walker) addResidual(v, old, value int) {
	m := w.interactions
	d, n := m.domains[v], m.order
	for p := range d - 1 {
		change := m.functions[v][p*d+value]
		if old != noValue {
			change -= m.functions[v][p*d+old]
		}
		if change == 0 {
			continue
		}
		row := w.residual[(m.firstCoordinate[v]+p)*n:][:n]
		field := w.residualField[:n]
		for c, y := range row {
			field[c] += change * y
		}
	}
}

// lnDeviation returns ln B − ln B̃ at the state, for the base tensor B and the fit B̃. It is ½ ξᵀ R ξ, where ξ has the basis functions of
// all variables at the state, R is the interactions' matrix less that of the fit, and R ξ is residualField.
func (w *walker) lnDeviation() (ln float64) {
	m := w.interactions
	for v, x := range w.state {
		d := m.domains[v]
		for p := range d - 1 {
			ln += m.functions[v][p*d+x] * w.residualField[m.firstCoordinate[v]+p]
		}
	}
	return ln / 2
}

// sweep redraws every variable once, given all others, from the distribution B̃^{1−β} B^β L. B̃ is the fit, B the base tensor, and L the
// product of the weights of the values. For one variable, ln of the distribution by value a is, up to a constant,
//
//	field(a) + Σ_k ½ λ_k s_k² + β · Σ_p (R ξ)_p functions[p](a) + ln of the tables of the rest
//
// where s_k is the statistic with the variable at a. R is the matrix of interactions less that of the fit, and ξ are the basis functions at
// the state; residualField has R ξ. R is 0 in the variable's own block, so R ξ there does not depend on the variable's value. field has the
// logarithms of its weights.
func (w *walker) sweep(r *rand.Rand, beta float64) {
	values := len(w.field)
	for v, old := range w.state {
		value := drawByLn(r, w.lnConditional(v, beta))
		if value == old {
			continue
		}
		w.state[v] = value
		for k := range w.statistics {
			vectors := w.fit.Vectors[k*values+w.firstValue[v]:]
			w.statistics[k] += vectors[value] - vectors[old]
		}
		w.addResidual(v, old, value)
	}
}

// lnConditional returns, by value a of variable v, ln of the unnormalised probability of the value given the values of all other variables
// in the state, for a step of sweep: field(a) + ½ Σ_k λ_k s_k(a)² + β Σ_p h_p(a) (R ξ)_p and the logarithms of the tables of the fit's
// rest. s_k(a) is statistic k with v at a. The result is valid until the next call.
func (w *walker) lnConditional(v int, beta float64) []float64 {
	m, values := w.interactions, len(w.field)
	d := m.domains[v]
	ln := w.lnWeights[:d]
	copy(ln, w.field[w.firstValue[v]:])
	for k := range w.statistics {
		vectors := w.fit.Vectors[k*values+w.firstValue[v]:][:d]
		sumOfOthers := w.statistics[k] - vectors[w.state[v]] // the statistic without v
		half := w.fit.Lambda[k] / 2
		for a, y := range vectors {
			ln[a] += half * (sumOfOthers + y) * (sumOfOthers + y)
		}
	}
	for p := range d - 1 { // the basis functions of v: function p has the value h at value a
		f := beta * w.residualField[m.firstCoordinate[v]+p]
		for a, h := range m.functions[v][p*d:][:d] {
			ln[a] += h * f
		}
	}
	for _, t := range w.tablesOf[v] {
		w.addTableLn(t, v, ln)
	}
	return ln
}

// addTableLn adds to ln[a], for each value a of variable v, the logarithm of an entry of table t of the fit's rest: the entry with v at a
// and all other variables as in the walker's state. The last variable of a table changes fastest.
func (w *walker) addTableLn(t, v int, ln []float64) {
	table := &w.fit.Rest[t]
	entry, stride, strideOfV := 0, 1, 0 // entry: the one with v at 0
	for k := len(table.Scope) - 1; k >= 0; k-- {
		if u := table.Scope[k]; u == v {
			strideOfV = stride
		} else {
			entry += stride * w.state[u]
		}
		stride *= w.interactions.domains[table.Scope[k]]
	}
	for a := range ln {
		ln[a] += math.Log(table.Values[entry+a*strideOfV])
	}
}

// drawByLn draws an index with a probability proportional to e^ln. If there are more than two, it overwrites ln.
func drawByLn(r *rand.Rand, ln []float64) int {
	if len(ln) == 2 {
		if r.Float64()*(1+math.Exp(ln[1]-ln[0])) < 1 {
			return 0
		}
		return 1
	}
	largest := slices.Max(ln)
	weights := ln
	total := 0.0
	for a, l := range ln {
		weights[a] = math.Exp(l - largest)
		total += weights[a]
	}
	u := r.Float64() * total
	for a, x := range weights {
		if u -= x; u < 0 && x > 0 {
			return a
		}
	}
	return slices.Index(weights, slices.Max(weights)) // rounding left u at 0
}
