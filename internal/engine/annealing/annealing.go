// Package annealing weighs chains that are carried from uniformly random states to the product of an expression's tables, so that the mean
// of their weights is Z (annealed importance sampling).
//
// The path is ψ_β(x) = Π_t T_t(x)^β with β = 1/T, 2/T … 1. A chain begins with a state drawn uniformly; at every rung its weight is
// multiplied by the ratio of the new ψ to the one before, at the state it is in, and then every index takes a step that keeps the new ψ.
// E w = Z for any number of rungs that was fixed beforehand, because nothing adapts within a chain. An entry of 0 counts
// e^{−hardness} times the least of its table on the way and 0 at the end. Neal, Annealed importance sampling, 2001.
//
// Every chain is a rank-one component of the network at the state where it ends (docs/method.md): its random numbers depend on the seed and
// on its number alone, so that any share of the chains has the same bits on any worker. Conditional probabilities of pairwise models of two
// values are computed in float32, which moves ln Z by less than 1e-5 of itself; weights are in float64.
package annealing

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/basetensor/basetensor/internal/ising"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Step is how an index is moved.
type Step uint8

const (
	// HeatBath draws an index from its conditional distribution.
	HeatBath Step = iota
	// Metropolis proposes another value and accepts it by the ratio, which mixes faster where values are rarely left. Indices of more than
	// two values take heat-bath steps instead.
	Metropolis
)

// Path is how chains are carried.
type Path struct {
	Rungs int
	Step  Step
	Seed  uint64
}

// Group is how many chains are run side by side: chains come in multiples of it.
const Group = 8

// hardness is λ. Chosen: e^−12 is rare at the end, and walls are crossed in the first half.
const hardness = 12

// Model is an expression as chains walk over it. It does not change and may be used by several goroutines.
type Model struct {
	dims    []int
	ln      float64 // of Scale · Π dims · the constant that chains leave out
	spins   *lattice
	factors *factors
}

// New returns the model of an expression whose entries are at least 0. Errors: unsupported where an entry is below 0, where an index has
// more than 256 values, and for entries with exponents of their own. Cost: linear in the tables; dense models of n spins take 4 n² bytes.
func New(e *sumproduct.Expression) (*Model, error) {
	if e.Signed() {
		return nil, fault.New(fault.Unsupported, "annealing: an entry is below 0, and weights are not")
	}
	if err := e.Fits(); err != nil {
		return nil, err
	}
	m := &Model{dims: e.Dims}
	uniform := 0.0 // ln of what the sum is where chains begin
	for i, d := range e.Dims {
		if d > 1<<8 {
			return nil, fault.New(fault.Unsupported, "annealing: index %d has %d values, at most %d", i, d, 1<<8)
		}
		uniform += math.Log(float64(d))
	}
	if s := ising.New(e); s != nil {
		uniform = float64(s.N)*math.Ln2 + s.Constant
		m.spins = newLattice(s)
	} else {
		var err error
		if m.factors, err = newFactors(e, nil); err != nil {
			return nil, err
		}
	}
	m.ln = e.Scale.LogAbs() + uniform
	return m, nil
}

// Binary reports whether some index has two values, so that the step makes a difference.
func (m *Model) Binary() bool { return slices.Contains(m.dims, 2) }

// Flops is what the time of a chain is worth, at 3e9 a second: rungs times what a sweep takes.
func (m *Model) Flops(rungs int) float64 {
	if m.spins != nil {
		return float64(rungs) * m.spins.flops()
	}
	return float64(rungs) * m.factors.work
}

// Bytes is what so many chains take beside the model, on so many threads.
func (m *Model) Bytes(chains int64, threads int, marginals bool) float64 {
	each := 0.0
	if m.spins != nil {
		each = float64(m.spins.n+Group) * Group * 8
	} else {
		each = float64(m.factors.height+2*m.factors.most) * Group * 4
	}
	bytes := each*float64(threads) + 8*float64(chains)
	if marginals {
		bytes += float64(chains) * float64(len(m.dims))
	}
	return bytes
}

// Weights are those of some chains.
type Weights struct {
	// Ln are ln w of every chain in sequence, −Inf for 0: their mean is Z.
	Ln []float64
	// Top is the largest of Ln. Share[i][a] is Σ e^{Ln−Top} over the chains that end with index i at value a, Squares the same with
	// e^{2(Ln−Top)}; nil where they were not asked for.
	Top            float64
	Share, Squares [][]float64

	ends [][]uint8 // of every group, index by index; nil with Share
}

// State fills in where the c-th of the chains has ended, a value per index. Marginals were asked for.
func (m *Model) State(w *Weights, c int, into []int) {
	end := w.ends[c/Group]
	for i, d := range m.dims {
		into[i] = min(int(end[i*Group+c%Group]), d-1) // a spin of one value is alone
	}
}

// Run returns the weights of chains from ≤ c < to, both multiples of Group, by so many goroutines (0: one a processor). Cost: Flops each.
// The error is the context's, which is looked at after every rung.
func (m *Model) Run(ctx context.Context, p Path, from, to int64, threads int, marginals bool) (*Weights, error) {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	w := &Weights{Ln: make([]float64, to-from), Top: math.Inf(-1)}
	ends := make([][]uint8, (to-from)/Group) // of every group, index by index
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(threads, len(ends)) {
		running.Go(func() {
			for {
				g := int(next.Add(1)) - 1
				if g >= len(ends) || ctx.Err() != nil {
					return
				}
				ends[g] = m.anneal(ctx, p, from+int64(g*Group), w.Ln[g*Group:(g+1)*Group], marginals)
			}
		})
	}
	running.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for k := range w.Ln {
		w.Ln[k] += m.ln
		w.Top = max(w.Top, w.Ln[k])
	}
	if marginals {
		w.ends = ends
		m.count(w)
	}
	return w, nil
}

// anneal carries the chains from first on along a path, and ends early where the context does. It fills in ln of their weights, without
// the constant, and returns where they ended if asked.
func (m *Model) anneal(ctx context.Context, p Path, first int64, ln []float64, ends bool) []uint8 {
	if m.spins != nil {
		return m.spins.anneal(ctx, p, first, ln, ends)
	}
	return m.factors.anneal(ctx, p, first, ln, ends)
}

// count adds up what the chains' last states weigh.
func (m *Model) count(w *Weights) {
	w.Share, w.Squares = make([][]float64, len(m.dims)), make([][]float64, len(m.dims))
	for i, d := range m.dims {
		w.Share[i], w.Squares[i] = make([]float64, d), make([]float64, d)
	}
	if math.IsInf(w.Top, -1) {
		return
	}
	state := make([]int, len(m.dims))
	for c, l := range w.Ln {
		x := math.Exp(l - w.Top)
		m.State(w, c, state)
		for i, a := range state {
			w.Share[i][a] += x
			w.Squares[i][a] += x * x
		}
	}
}
