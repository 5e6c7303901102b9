// Package annealing weighs chains that are carried from independent draws to the product of an expression's tables, so that the mean of
// their weights is Z (annealed importance sampling).
//
// The path is ψ_β(x) = p(x)^{1−β} Π_t T_t(x)^β with β = 1/T, 2/T … 1, where p is uniform or a product of beliefs that is nowhere 0. A
// chain begins with a draw from p. Over indices of any number of values its weight is multiplied, at every rung, by the ratio of the new ψ
// to the one before at the state it is in, and then every index takes a step that keeps the new ψ. Spins with pairwise couplings go from
// one rung to the next one by one, and each is summed out of the weight while it does (lanes.go). E w = Z for any number of rungs that was
// fixed beforehand, because nothing adapts within a chain. An entry of 0 counts e^{−hardness} times the least of its table on the way and
// 0 at the end. Neal, Annealed importance sampling, 2001.
//
// Every chain is a rank-one component of the network at the state where it ends (docs/explanation/estimates.md): its random numbers
// depend on the seed and on its number alone, so that any share of the chains has the same bits on any worker. Conditional
// probabilities are computed in float32, which moves ln Z by less than 1e-5 of itself; weights are in float64.
package annealing

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Step is how an index is moved.
type Step uint8

const (
	// HeatBath draws an index from its conditional distribution.
	HeatBath Step = iota
	// Metropolis leaves a value as often as keeps the distribution, which mixes faster where values are rarely left. Indices of more than two
	// values take heat-bath steps instead.
	Metropolis
	// Forests draws spins together whose couplings among themselves make no cycle, given all others. Models without forests (see
	// Model.Forests) take heat-bath steps instead.
	Forests
)

// Path is how chains are carried.
type Path struct {
	Rungs int
	Step  Step
	// Product lets chains begin with independent draws from beliefs, else from uniform distributions.
	Product bool
	// Knots are β at as many equal parts of the rungs, rising, the last of them 1; β is linear between them, and from 0 to 1 without any.
	Knots []float64
	Seed  uint64
	// Modes is the number of starts beside the path's own, at most: uniform draws, if its own are from beliefs, and modes
	// (package modes). A component then is one chain from each start.
	Modes int
	// Given are further starts: product distributions that add up to 1 by index.
	Given [][][]float64

	halts *halts
}

// halts is where the weights of chains are noted at the ends of equal parts of the rungs: ln[k][c] of chain first+c.
type halts struct {
	first int64
	ln    [][]float64
}

// part is the number of the part that ends with rung k, −1 where none does.
func (p *Path) part(k int) int {
	if p.halts == nil || k*len(p.halts.ln)%p.Rungs != 0 {
		return -1
	}
	return k*len(p.halts.ln)/p.Rungs - 1
}

// Beta is β at rung k of p.Rungs.
func (p *Path) Beta(k int) float64 {
	if len(p.Knots) == 0 || k >= p.Rungs {
		return float64(k) / float64(p.Rungs)
	}
	x := float64(k) * float64(len(p.Knots)) / float64(p.Rungs)
	at := int(x)
	from := 0.0
	if at > 0 {
		from = p.Knots[at-1]
	}
	return from + (x-float64(at))*(p.Knots[at]-from)
}

// Group is the number of chains run side by side: chains come in multiples of it.
const Group = 8

// hardness is λ. Chosen: e^−12 is rare at the end, and walls are crossed in the first half.
const hardness = 12

// Model is an expression as chains walk over it. It may be used by several goroutines.
type Model struct {
	e       *sumproduct.Expression
	dims    []int
	uniform *walk
	classes func() [][]int // of the forests, searched for when they are first asked for
	mu      sync.Mutex
	product *walk // nil until it is asked for
	modes   []*walk
	sought  bool // the search for modes has run
	given   given
}

// New returns the model of an expression whose entries are at least 0. Errors: unsupported where an entry is below 0, where an index has
// more than 256 values, where there are more than 2^26 differences between entries, and for entries with exponents of their own.
// Cost: the tables' entries times their order; dense models of n spins take 4 n² bytes.
func New(e *sumproduct.Expression) (*Model, error) {
	if e.Signed() {
		return nil, fault.New(fault.Unsupported, "annealing: an entry is below 0, and weights are not")
	}
	if err := e.Fits(); err != nil {
		return nil, err
	}
	for i, d := range e.Dims {
		if d > 1<<8 {
			return nil, fault.New(fault.Unsupported, "annealing: index %d has %d values, at most %d", i, d, 1<<8)
		}
	}
	start := make([][]float64, len(e.Dims))
	for i, d := range e.Dims {
		start[i] = slices.Repeat([]float64{-math.Log(float64(d))}, d)
	}
	w, err := newWalk(e, start)
	if err != nil {
		return nil, err
	}
	m := &Model{e: e, dims: e.Dims, uniform: w}
	if w.spins != nil {
		m.classes = sync.OnceValue(w.model.Forests)
	}
	return m, nil
}

// leastStart is the least probability of a value where chains begin, but for their number.
const leastStart = 0.01

// startUpdates is the number of updates per message for the beliefs where chains begin. Measured on 24 families: with 4 the weights
// of models with evidence vary about as little as with 50 (parity codes excepted, 0.4 and 0.03), and beliefs decide less between
// modes.
const startUpdates = 4

// from returns the loops of a path.
func (m *Model) from(ctx context.Context, product bool) (*walk, error) {
	if !product {
		return m.uniform, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.product != nil {
		return m.product, nil
	}
	state, err := bp.Run(ctx, m.e, bp.Options{Updates: m.updates(), Damping: 0.3, Schedule: bp.Sequential})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil { // no messages in the range of float64
		m.product = m.uniform
		return m.product, nil
	}
	beliefs := make([][]float64, len(m.dims))
	for i := range beliefs {
		beliefs[i] = state.Belief(i)
	}
	m.product, err = newWalk(m.e, floored(beliefs))
	return m.product, err
}

// forests returns the lattice that carries forests, nil where there are none.
func (m *Model) forests(own *walk) *lattice {
	if own.spins != nil {
		own.once.Do(func() { own.forests = newForests(own.model, own.base, m.classes()) })
	}
	return own.forests
}

// Where chains from uniform draws decide nothing, other starts of belief propagation do:
// productStarts is their number, productPatience the factor by which they run longer, and
// productApart the difference of a probability from which they are another mode.
// Measured: an attractive grid of 12×12, Δ = 2, lost a quarter of Z, which 4,000 chains did not
// see. Chosen: two modes that are reached alike are missed by one model of 128.
const (
	productStarts   = 7
	productPatience = 4
	productApart    = 0.5
)

// Divided reports whether beliefs depend on where belief propagation begins: whether a value has those further apart than
// productApart from one of productStarts random starts, with productPatience times the updates. Errors: the context's.
func (m *Model) Divided(ctx context.Context) (bool, error) {
	own, err := m.from(ctx, true)
	if err != nil {
		return false, err
	}
	for seed := range uint64(productStarts) {
		o := bp.Options{Updates: productPatience * m.updates(), Damping: 0.3, Schedule: bp.Sequential, Seed: seed + 1}
		state, err := bp.Run(ctx, m.e, o)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil {
			return true, nil
		}
		for i := range m.dims {
			for a, p := range state.Belief(i) {
				if math.Abs(p-math.Exp(own.start[i][a])) > productApart {
					return true, nil
				}
			}
		}
	}
	return false, nil
}

// updates is the total number of message updates for the beliefs.
func (m *Model) updates() int64 {
	n := 1
	for _, t := range m.e.Tables {
		n += len(t.Scope)
	}
	return startUpdates * int64(n)
}

// StartFlops is the cost of the beliefs that a path with Product begins with.
func (m *Model) StartFlops() float64 { return float64(m.updates()) * policy.UpdateFlops }

// Indices is the number of indices of a state.
func (m *Model) Indices() int { return len(m.dims) }

// Binary reports whether some index has two values, so that the step makes a difference.
func (m *Model) Binary() bool { return slices.Contains(m.dims, 2) }

// Flops is the time of a chain in flops, at 3e9 a second: a sweep per rung, and the fixed work before and after them.
func (m *Model) Flops(step Step, rungs int) float64 {
	sweep, once := m.prices(step)
	return once + float64(rungs)*sweep
}

// Rungs is the number of rungs of a chain within so many flops, rounded down; below 1 where not even one fits.
func (m *Model) Rungs(step Step, flops float64) float64 {
	sweep, once := m.prices(step)
	return math.Floor((flops - once) / sweep)
}

// Once is the fixed work of a chain, in rungs.
func (m *Model) Once(step Step) float64 {
	sweep, once := m.prices(step)
	return once / sweep
}

// prices are the flops of a sweep, and of a chain beside its rungs.
func (m *Model) prices(step Step) (sweep, once float64) {
	switch s := m.uniform.spins; {
	case s == nil:
		return m.uniform.factors.work, 0
	case step == Forests:
		return s.forestFlops(), s.onceFlops()
	default:
		return s.flops(), s.onceFlops()
	}
}

// forestDegree is the largest average number of neighbours of a spin at which forests are tried.
// Chosen: forests hold fewer couplings than there are spins, a third of all there, and win nothing
// on three-dimensional ±J models.
const forestDegree = 6

// Forests reports whether forests may be worth their while: spins with forestDegree neighbours on average at most.
func (m *Model) Forests() bool {
	s := m.uniform.model
	return s != nil && len(s.To) > 0 && float64(len(s.To)) <= forestDegree*float64(s.N)
}

// ForestFlops bounds the search for forests, once; 0 where there are none.
func (m *Model) ForestFlops() float64 {
	if m.uniform.model == nil {
		return 0
	}
	return m.uniform.model.ForestFlops()
}

// Bytes is the memory of components on so many threads, and of the loops of given starts, beside the model's own. A component has a chain
// from every start.
func (m *Model) Bytes(p Path, components int64, threads int, marginals bool) float64 {
	each := 0.0
	if m.uniform.spins != nil {
		each = float64(m.uniform.spins.n+Group) * Group * 8
		if p.Step == Forests {
			each *= 2 + 1.0/Group // messages, and couplings to parents
		}
	} else {
		each = float64(m.uniform.factors.height+2*m.uniform.factors.most) * Group * 4
	}
	chains := float64(components) * p.Starts()
	bytes := each*float64(threads) + 8*float64(components) + float64(len(p.Given))*m.uniform.bytes()
	if p.Starts() > 1 {
		bytes += 8 * chains * (2 + p.Starts()) // alone, Each and by
	}
	if marginals || p.Starts() > 1 {
		bytes += chains * float64(len(m.dims))
	}
	return bytes
}

// Weights are the weights of components, each with one chain per start.
type Weights struct {
	// Ln are the components' log-weights in sequence, −Inf for 0. The mean weight estimates Z.
	Ln []float64
	// Each are the logarithms of the chains' contributions, component by component: Ln itself where there is one start.
	Each []float64
	// Top is the largest of Ln. Share[i][a] is Σ e^{Each−Top} over the chains that end with index i at value a, Squares[i][a]
	// is Σ e^{Each+Ln−2Top} over them; nil without marginals.
	Top            float64
	Share, Squares [][]float64
	ends           [][]uint8 // last states of every group, index by index, for one start after the other
	// with several starts: the log-weight of every chain by itself, and ln g of every start at its last state
	alone, by []float64
}

// State fills in the last state of the c-th chain of Each, a value per index. It needs a Run with marginals.
func (m *Model) State(w *Weights, c int, into []int) {
	starts := len(w.Each) / len(w.Ln)
	m.state(w, c/starts, c%starts, into)
}

// state fills in the last state of a component's chain from one start.
func (m *Model) state(w *Weights, component, start int, into []int) {
	end := w.ends[start*(len(w.Ln)/Group)+component/Group]
	for i, d := range m.dims {
		into[i] = min(int(end[i*Group+component%Group]), d-1) // an index of one value is a spin without couplings
	}
}

// LnStart returns the logarithm of every chain's last state under the beliefs that a path with Product begins with. It needs a run
// with marginals. Errors: the context's.
func (m *Model) LnStart(ctx context.Context, w *Weights) ([]float64, error) {
	own, err := m.from(ctx, true)
	if err != nil {
		return nil, err
	}
	ln, state := make([]float64, len(w.Each)), make([]int, len(m.dims))
	for c := range ln {
		m.State(w, c, state)
		ln[c] = own.lnStart(state)
	}
	return ln, nil
}

// Run returns the weights of components from ≤ c < to, both multiples of Group, on so many goroutines (0: one per
// processor). Cost: Flops of every chain. The error is the context's, checked after every rung.
func (m *Model) Run(ctx context.Context, p Path, from, to int64, threads int, marginals bool) (*Weights, error) {
	found, err := m.starts(ctx, p)
	if err != nil {
		return nil, err
	}
	given, err := m.given.walksOf(m.e, p.Given)
	if err != nil {
		return nil, err
	}
	starts := slices.Concat(found, given)
	w := &Weights{Ln: make([]float64, to-from), Top: math.Inf(-1)}
	w.Each = w.Ln
	if len(starts) > 1 {
		w.alone = make([]float64, len(starts)*len(w.Ln))
	}
	for k, own := range starts {
		of := p
		of.Seed ^= streams * uint64(k)
		ln := make([]float64, len(w.Ln))
		ends, err := m.carry(ctx, own, of, from, ln, threads, marginals || len(starts) > 1)
		if err != nil {
			return nil, err
		}
		for c, l := range ln {
			if len(starts) > 1 {
				w.alone[c*len(starts)+k] = l + own.ln
			} else {
				w.Ln[c] = l + own.ln
			}
		}
		w.ends = append(w.ends, ends...)
	}
	if len(starts) > 1 {
		m.recordStarts(w, starts)
		w.Ln, w.Each = w.Among(len(starts))
	}
	for _, l := range w.Ln {
		w.Top = max(w.Top, l)
	}
	if marginals {
		m.count(w)
	}
	return w, nil
}

// streams separates the random numbers of the starts: the seed of start k is Seed XOR k·streams.
const streams = 0x9e3779b97f4a7c15

// carry runs the chains from one start and returns the last states of every group. The error is the context's.
func (m *Model) carry(ctx context.Context, own *walk, p Path, from int64, ln []float64, threads int, marginals bool) ([][]uint8, error) {
	spins := own.spins
	if p.Step == Forests {
		if spins = m.forests(own); spins == nil {
			spins, p.Step = own.spins, HeatBath
		}
	}
	ends := make([][]uint8, len(ln)/Group) // of every group, index by index
	err := sumproduct.Share(ctx, sumproduct.Threads(threads), len(ends), func(_, g int) error {
		first, ln := from+int64(g*Group), ln[g*Group:(g+1)*Group]
		if spins != nil {
			ends[g] = spins.anneal(ctx, p, first, ln, marginals)
		} else {
			ends[g] = own.factors.anneal(ctx, p, first, ln, marginals)
		}
		return nil
	})
	return ends, err
}

// Gains returns the parts of the logarithms of weights that chains from ≤ c < to gain over each of so many equal parts of the
// rungs, whose number is a multiple of parts: gains[k][c−from]. Chains that end with weight 0 have gains, too. Errors as of
// Run.
func (m *Model) Gains(ctx context.Context, p Path, from, to int64, parts int) (gains [][]float64, w *Weights, err error) {
	gains = make([][]float64, parts)
	for k := range gains {
		gains[k] = make([]float64, to-from)
	}
	p.halts = &halts{from, gains}
	if w, err = m.Run(ctx, p, from, to, 1, false); err != nil {
		return nil, nil, err
	}
	for k := parts - 1; k > 0; k-- {
		for c := range gains[k] {
			gains[k][c] -= gains[k-1][c]
		}
	}
	return gains, w, nil
}

// count adds up the weights of the chains' last states.
func (m *Model) count(w *Weights) {
	w.Share, w.Squares = make([][]float64, len(m.dims)), make([][]float64, len(m.dims))
	for i, d := range m.dims {
		w.Share[i], w.Squares[i] = make([]float64, d), make([]float64, d)
	}
	if math.IsInf(w.Top, -1) {
		return
	}
	state, starts := make([]int, len(m.dims)), len(w.Each)/len(w.Ln)
	for c, l := range w.Each {
		x, whole := math.Exp(l-w.Top), math.Exp(w.Ln[c/starts]-w.Top)
		m.State(w, c, state)
		for i, a := range state {
			w.Share[i][a] += x
			w.Squares[i][a] += x * whole
		}
	}
}
