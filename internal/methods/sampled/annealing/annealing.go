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

// Step is the way in which an index takes a step.
type Step uint8

const (
	// HeatBath draws an index from its conditional distribution.
	HeatBath Step = iota
	// Metropolis proposes another value and accepts it as often as keeps the distribution, which mixes faster if values are rarely left.
	// Indices of more than two values take heat-bath steps instead.
	Metropolis
	// Forests draws spins together whose couplings among themselves make no cycle, given all others. Models without forests (see
	// Model.Forests) take heat-bath steps instead.
	Forests
)

// Path describes how chains are carried.
type Path struct {
	Rungs int
	Step  Step
	// FromBeliefs lets chains begin with independent draws from beliefs, else from uniform distributions.
	FromBeliefs bool
	// Knots are β at the ends of as many equal parts of the rungs. They rise, and the last is 1. β is linear between them, and from 0 to 1
	// if there are none.
	Knots []float64
	Seed  uint64
	// Modes limits the starts in addition to the path's first one: uniform draws, if the first are from beliefs, and modes (package modes).
	// A component then is one chain from each start.
	Modes int
	// ExtraStarts are further starts: product distributions, a row of probabilities for each index.
	ExtraStarts [][][]float64

	checkpoints *checkpoints // nil: log-weights on the way are not recorded
}

// checkpoints record the log-weights of chains on the way. The rungs are divided into equal parts: lnWeights[k][c] is the log-weight of
// chain first+c at the end of part k.
type checkpoints struct {
	first     int64
	lnWeights [][]float64
}

// checkpointAt returns the number of the part that ends with rung k, or −1 if none does or log-weights are not recorded. The rungs, the
// steps of a chain, are divided into equal parts. Example: of 8 rungs in 4 parts, part 0 ends with rung 2.
func (p *Path) checkpointAt(k int) int {
	if p.checkpoints == nil {
		return -1
	}
	parts := len(p.checkpoints.lnWeights)
	if k*parts%p.Rungs != 0 {
		return -1
	}
	return k*parts/p.Rungs - 1
}

// Beta returns β after k of the p.Rungs steps of a chain, called rungs. Knots divide the rungs into equal parts: Knots[j] is β at the end
// of part j, and β is linear within a part, from 0 in the first. Without knots β = k/p.Rungs.
func (p *Path) Beta(k int) float64 {
	if len(p.Knots) == 0 || k >= p.Rungs { // at rung p.Rungs β is 1
		return float64(k) / float64(p.Rungs)
	}
	position := float64(k) * float64(len(p.Knots)) / float64(p.Rungs) // in parts
	part := int(position)
	begin := 0.0 // β at the begin of the part
	if part > 0 {
		begin = p.Knots[part-1]
	}
	return begin + (position-float64(part))*(p.Knots[part]-begin)
}

// GroupSize is the number of chains that run side by side. The number of chains is a multiple of it.
const GroupSize = 8

// hardness is λ: on the way an entry of 0 counts e^−λ times the least of its table. Chosen: e^−12 is rare at the end, and walls are crossed
// in the first half.
const hardness = 12

// Model is an expression with the walkers that carry chains over it. It may be used by several goroutines.
type Model struct {
	expression     *sumproduct.Expression
	dims           []int
	uniform        *walker        // of chains that begin with uniform draws
	forestClasses  func() [][]int // the spins of each forest, computed when they are first asked for
	mu             sync.Mutex     // of the fields below
	fromBeliefs    *walker        // of chains that begin with beliefs; nil until it is asked for
	fromModes      []*walker      // of chains that begin at a mode
	hasSoughtModes bool           // fromModes is complete
	fromGiven      givenWalkers   // of chains that begin with Path.ExtraStarts
}

// New returns the model of an expression whose entries are at least 0. Errors: unsupported if an entry is below 0, if an index has more
// than 256 values, or if there are more than 2^26 differences between entries; those of Expression.CheckFit. Cost: the tables' entries
// times their order; dense models of n spins take 4 n² bytes.
func New(e *sumproduct.Expression) (*Model, error) {
	if e.Signed() {
		return nil, fault.New(fault.Unsupported, "annealing: an entry is below 0, and weights are not")
	}
	if err := e.CheckFit(); err != nil {
		return nil, err
	}
	for i, d := range e.Dims {
		if d > 1<<8 { // last states have a byte for each index
			return nil, fault.New(fault.Unsupported, "annealing: index %d has %d values, at most %d", i, d, 1<<8)
		}
	}

	uniformLn := make([][]float64, len(e.Dims)) // log-probability of each value, by index
	for i, d := range e.Dims {
		uniformLn[i] = slices.Repeat([]float64{-math.Log(float64(d))}, d)
	}
	w, err := newWalker(e, uniformLn)
	if err != nil {
		return nil, err
	}
	m := &Model{expression: e, dims: e.Dims, uniform: w}
	if w.spins != nil {
		m.forestClasses = sync.OnceValue(w.model.Forests) // computed when they are needed first
	}
	return m, nil
}

// uniformShare is the weight of the uniform distribution in every start, so that no value has a probability near 0.
const uniformShare = 0.01

// startUpdates is the number of updates per message for the beliefs where chains begin. Measured on 24 families: with 4 the weights
// of models with evidence vary about as little as with 50 (parity codes excepted, 0.4 and 0.03), and beliefs decide less between
// modes.
const startUpdates = 4

// damping is the share of the old message in an updated one, in runs of belief propagation. Chosen.
const damping = 0.3

// beliefWalker returns the walker of chains that begin with draws from beliefs. It computes the beliefs once. If belief propagation fails,
// it is the walker of uniform draws. Errors: those of the context and of newWalker.
func (m *Model) beliefWalker(ctx context.Context) (*walker, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fromBeliefs != nil {
		return m.fromBeliefs, nil
	}
	options := bp.Options{Updates: m.beliefUpdates(), Damping: damping, Schedule: bp.Sequential}
	state, err := bp.Run(ctx, m.expression, options)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil { // no messages in the range of float64
		m.fromBeliefs = m.uniform
		return m.fromBeliefs, nil
	}
	beliefs := make([][]float64, len(m.dims))
	for i := range beliefs {
		beliefs[i] = state.Belief(i)
	}
	m.fromBeliefs, err = newWalker(m.expression, mixWithUniform(beliefs))
	return m.fromBeliefs, err
}

// forestSpins returns the spins of a walker in the form for steps of forests. It is nil if the model is not of spins, or their odds are too
// large for float32 (newForests).
func (m *Model) forestSpins(w *walker) *spinModel {
	if w.spins != nil {
		w.forestsOnce.Do(func() { w.forests = newForests(w.model, w.startOdds, m.forestClasses()) })
	}
	return w.forests
}

// How HasSeveralBeliefs compares the fixed points of belief propagation: divisionStarts is the number of random starts, divisionPatience
// the factor by which they run longer than the first run, and divisionDifference the difference of a probability from which they are
// another mode. Chains from uniform draws tell nothing about modes that they do not reach.
// Measured: an attractive grid of 12×12, Δ = 2, lost a quarter of Z, which 4,000 chains did not see. Chosen: two modes that are reached
// alike are missed by one model of 128.
const (
	divisionStarts     = 7
	divisionPatience   = 4
	divisionDifference = 0.5
)

// HasSeveralBeliefs reports whether beliefs depend on where belief propagation begins. It runs belief propagation from divisionStarts
// random starts. The result is true if the belief of some value differs from that of chains by more than divisionDifference, or if a run
// fails. Errors: those of the context and of newWalker.
func (m *Model) HasSeveralBeliefs(ctx context.Context) (bool, error) {
	w, err := m.beliefWalker(ctx)
	if err != nil {
		return false, err
	}
	for seed := range uint64(divisionStarts) {
		o := bp.Options{Updates: divisionPatience * m.beliefUpdates(), Damping: damping, Schedule: bp.Sequential, Seed: seed + 1}
		state, err := bp.Run(ctx, m.expression, o)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil { // a failed run is no sign that beliefs agree
			return true, nil
		}
		for i := range m.dims {
			for a, p := range state.Belief(i) {
				if math.Abs(p-math.Exp(w.startLn[i][a])) > divisionDifference {
					return true, nil
				}
			}
		}
	}
	return false, nil
}

// beliefUpdates returns the number of message updates for the beliefs: startUpdates for each index of each table.
func (m *Model) beliefUpdates() int64 {
	messages := 1
	for _, t := range m.expression.Tables {
		messages += len(t.Scope)
	}
	return startUpdates * int64(messages)
}

// StartFlops returns the cost of the beliefs that a path with FromBeliefs begins with.
func (m *Model) StartFlops() float64 { return float64(m.beliefUpdates()) * policy.UpdateFlops }

// Indices returns the number of indices of a state.
func (m *Model) Indices() int { return len(m.dims) }

// HasBinaryIndex reports whether some index has two values. Only for such an index does a Metropolis step differ from the heat bath.
func (m *Model) HasBinaryIndex() bool { return slices.Contains(m.dims, 2) }

// Flops returns the time of a chain in flops, at 3e9 a second: a sweep per rung, and the fixed work before and after them.
func (m *Model) Flops(step Step, rungs int) float64 {
	sweep, fixed := m.prices(step)
	return fixed + float64(rungs)*sweep
}

// RungsWithin returns how many rungs a chain may have so that it takes at most the given flops, rounded down. It is below 1 if not even
// one fits.
func (m *Model) RungsWithin(step Step, flops float64) float64 {
	sweep, fixed := m.prices(step)
	return math.Floor((flops - fixed) / sweep)
}

// FixedRungs returns the work of a chain that does not depend on its rungs, in units of the work of one rung.
func (m *Model) FixedRungs(step Step) float64 {
	sweep, fixed := m.prices(step)
	return fixed / sweep
}

// prices returns the flops of a sweep, one step of a chain, and the further flops of a chain, which are the same for any number of steps.
func (m *Model) prices(step Step) (sweep, fixed float64) {
	switch s := m.uniform.spins; {
	case s == nil:
		return m.uniform.tables.sweepFlops, 0
	case step == Forests:
		return s.forestSweepFlops(), s.fixedFlops()
	default:
		return s.sweepFlops(), s.fixedFlops()
	}
}

// forestDegree is the largest average number of neighbours of a spin at which forests are tried. Chosen: forests hold fewer couplings than
// there are spins. With six neighbours that is a third of all couplings, and wins nothing on three-dimensional ±J models.
const forestDegree = 6

// MayUseForests reports whether forests may be worth their work: all indices are spins, with forestDegree neighbours on average at most.
func (m *Model) MayUseForests() bool {
	s := m.uniform.model
	return s != nil && len(s.To) > 0 && float64(len(s.To)) <= forestDegree*float64(s.N)
}

// ForestFlops bounds the cost of the search for forests, which runs once. It is 0 for a model that is not of spins.
func (m *Model) ForestFlops() float64 {
	if m.uniform.model == nil {
		return 0
	}
	return m.uniform.model.ForestFlops()
}

// Bytes returns the memory that a Run of some components takes on the given number of threads. It counts the memory for p.ExtraStarts, but
// not that of the model. A component has a chain from every start.
func (m *Model) Bytes(p Path, components int64, threads int, marginals bool) float64 {
	// A thread carries a group of chains: a number per chain and spin, or per chain and row of tables.
	perThread := 0.0
	if m.uniform.spins != nil {
		perThread = float64(m.uniform.spins.n+GroupSize) * GroupSize * 8 // a spin and its field, 4 bytes each
		if p.Step == Forests {
			perThread *= 2 + 1.0/GroupSize // messages, and couplings to parents
		}
	} else {
		perThread = float64(m.uniform.tables.rowCount+2*m.uniform.tables.maxValues) * GroupSize * 4 // with a buffer for the step
	}

	chains := float64(components) * p.Starts()
	bytes := perThread*float64(threads) + 8*float64(components) + float64(len(p.ExtraStarts))*m.uniform.bytes()
	if p.Starts() > 1 {
		bytes += 8 * chains * (2 + p.Starts()) // chainLn, LnContributions and lnGs
	}
	if marginals || p.Starts() > 1 {
		bytes += chains * float64(len(m.dims)) // last states, a byte per index
	}
	return bytes
}

// Weights are the weights of components. A component has one chain from each start, and its weight is the sum of what they contribute.
type Weights struct {
	// Ln are the components' log-weights in sequence, −Inf for 0. The mean weight estimates Z.
	Ln []float64
	// LnContributions are the logarithms of the chains' contributions. The chains of a component stand together, in the sequence of the
	// starts. With one start it is Ln itself.
	LnContributions []float64
	// Top is the largest of Ln. Share[i][a] is Σ e^{LnContributions−Top} over the chains that end with index i at value a, Squares[i][a]
	// is Σ e^{LnContributions+Ln−2Top} over them. Share and Squares are nil without marginals.
	Top            float64
	Share, Squares [][]float64

	// endStates has the last states of each group of chains: endStates[k·groups+g][i·GroupSize+c] is the value of index i in chain c of
	// group g from start k.
	endStates [][]uint8
	// With several starts, S of them: chainLn[c·S+k] is the log-weight of the chain of component c from start k, and lnGs[(c·S+k)·S+j] is
	// ln g of start j at that chain's last state (starts.go).
	chainLn, lnGs []float64
}

// ReadState writes the last state of chain c, in the sequence of w.Each, to state, which has a value per index. w has to be from a Run with
// marginals.
func (m *Model) ReadState(w *Weights, c int, state []int) {
	starts := len(w.LnContributions) / len(w.Ln)
	m.writeState(w, c/starts, c%starts, state)
}

// writeState writes the last state of a component's chain from the given start to state.
func (m *Model) writeState(w *Weights, component, start int, state []int) {
	groups := len(w.Ln) / GroupSize
	end := w.endStates[start*groups+component/GroupSize] // the value of index i in chain c is end[i*GroupSize+c]
	for i, d := range m.dims {
		state[i] = min(int(end[i*GroupSize+component%GroupSize]), d-1) // a spin without couplings stands for an index of one value
	}
}

// LnBeliefs returns, for the last state of each chain of w, the log-probability that independent draws from beliefs give that state. The
// beliefs are the distributions of the first states on paths with FromBeliefs (beliefWalker); the path of w may have begun with others. w
// has to be from a Run with marginals, because other runs may not keep the last states. Errors: those of beliefWalker, which are the
// context's and those of making a walker.
func (m *Model) LnBeliefs(ctx context.Context, w *Weights) ([]float64, error) {
	fromBeliefs, err := m.beliefWalker(ctx)
	if err != nil {
		return nil, err
	}
	ln, state := make([]float64, len(w.LnContributions)), make([]int, len(m.dims))
	for c := range ln {
		m.ReadState(w, c, state)
		ln[c] = fromBeliefs.lnProbability(state)
	}
	return ln, nil
}

// Run carries the chains of components from ≤ c < to, both multiples of GroupSize, and returns their weights. It takes the given number of
// goroutines (0: one per processor). Cost: Flops of every chain. Errors: those of the context, checked at every step of a chain, of
// modes.Find and of newWalker.
func (m *Model) Run(ctx context.Context, p Path, from, to int64, threads int, marginals bool) (*Weights, error) {
	// A walker carries the chains from one start.
	walkers, err := m.walkers(ctx, p)
	if err != nil {
		return nil, err
	}
	fromGiven, err := m.fromGiven.walkersOf(m.expression, p.ExtraStarts)
	if err != nil {
		return nil, err
	}
	walkers = slices.Concat(walkers, fromGiven)

	w := &Weights{Top: math.Inf(-1)}
	hasSeveral := len(walkers) > 1
	keepsStates := marginals || hasSeveral // the weights of chains from several starts depend on their last states
	chainLn, err := m.runStarts(ctx, walkers, p, from, to, threads, w, keepsStates)
	if err != nil {
		return nil, err
	}
	if hasSeveral { // add up the contributions of a component's chains
		w.Ln, w.chainLn = make([]float64, to-from), chainLn
		m.recordLnG(w, walkers)
		w.Ln, w.LnContributions = w.WithFirstStarts(len(walkers))
	} else { // a component is one chain
		w.Ln, w.LnContributions = chainLn, chainLn
	}
	for _, l := range w.Ln {
		w.Top = max(w.Top, l)
	}
	if marginals {
		m.addShares(w)
	}
	return w, nil
}

// runStarts carries the chains from ≤ c < to from every start, each with a walker and random numbers of its own. It returns their
// log-weights: with S starts, that of chain c from start k is chainLn[(c−from)·S+k]. With keepsStates it adds their last states to
// w.endStates.
func (m *Model) runStarts(
	ctx context.Context, walkers []*walker, p Path, from, to int64, threads int, w *Weights, keepsStates bool,
) (chainLn []float64, err error) {
	starts := len(walkers)
	chainLn = make([]float64, starts*int(to-from))
	for k, start := range walkers {
		path := p
		path.Seed ^= streams * uint64(k) // other random numbers for every start
		ln := make([]float64, to-from)
		endStates, err := m.runChains(ctx, start, path, from, ln, threads, keepsStates)
		if err != nil {
			return nil, err
		}
		for c, l := range ln {
			chainLn[c*starts+k] = l + start.lnConstant // of the factors that the chains leave out
		}
		w.endStates = append(w.endStates, endStates...)
	}
	return chainLn, nil
}

// streams separates the random numbers of the starts: the seed of start k is Seed XOR k·streams.
const streams = 0x9e3779b97f4a7c15

// runChains carries chains from ≤ c < from+len(ln), which begin at one start, and adds their log-weights to ln. A group is GroupSize
// chains, which are carried together. endStates[g] has the last states of group g (Weights.endStates); it is nil without keepsStates. Steps
// of forests are replaced by those of the heat bath if the model has no form for them. The error is that of the context.
func (m *Model) runChains(
	ctx context.Context, start *walker, p Path, from int64, ln []float64, threads int, keepsStates bool,
) (endStates [][]uint8, err error) {
	spins := start.spins // nil if the model is not of spins
	if p.Step == Forests {
		if spins = m.forestSpins(start); spins == nil {
			spins, p.Step = start.spins, HeatBath
		}
	}

	endStates = make([][]uint8, len(ln)/GroupSize)
	err = sumproduct.RunChunks(ctx, sumproduct.Threads(threads), len(endStates), func(_, g int) error {
		first, groupLn := from+int64(g*GroupSize), ln[g*GroupSize:(g+1)*GroupSize]
		if spins != nil {
			endStates[g] = spins.anneal(ctx, p, first, groupLn, keepsStates)
		} else {
			endStates[g] = start.tables.anneal(ctx, p, first, groupLn, keepsStates)
		}
		return nil
	})
	return endStates, err
}

// Gains runs the chains from ≤ c < to and returns their weights, and how much their log-weights grow on the way. The way has p.Rungs steps,
// a multiple of parts, and is divided into equal parts: gains[k][c−from] is the growth in part k. Chains that end with weight 0 have gains,
// too. Errors: those of Run.
func (m *Model) Gains(ctx context.Context, p Path, from, to int64, parts int) (gains [][]float64, w *Weights, err error) {
	gains = make([][]float64, parts)
	for k := range gains {
		gains[k] = make([]float64, to-from)
	}
	p.checkpoints = &checkpoints{from, gains}
	const threads, marginals = 1, false
	if w, err = m.Run(ctx, p, from, to, threads, marginals); err != nil {
		return nil, nil, err
	}
	// The run has recorded log-weights at the ends of parts: take the differences.
	for k := parts - 1; k > 0; k-- {
		for c := range gains[k] {
			gains[k][c] -= gains[k-1][c]
		}
	}
	return gains, w, nil
}

// addShares sets w.Share and w.Squares, for each value of each index. Share is the sum of the contributions of the chains that end with the
// value, and Squares the sum of the contributions times the weights of their components: a bound of the sum of squares that standard errors
// need. The sums are relative to e^w.Top.
func (m *Model) addShares(w *Weights) {
	w.Share, w.Squares = make([][]float64, len(m.dims)), make([][]float64, len(m.dims))
	for i, d := range m.dims {
		w.Share[i], w.Squares[i] = make([]float64, d), make([]float64, d)
	}
	if math.IsInf(w.Top, -1) {
		return
	}
	state, starts := make([]int, len(m.dims)), len(w.LnContributions)/len(w.Ln)
	for c, l := range w.LnContributions {
		weight, componentWeight := math.Exp(l-w.Top), math.Exp(w.Ln[c/starts]-w.Top)
		m.ReadState(w, c, state)
		for i, a := range state {
			w.Share[i][a] += weight
			w.Squares[i][a] += weight * componentWeight
		}
	}
}
