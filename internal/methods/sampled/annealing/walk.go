package annealing

// Walks: the loops of chains that begin with one product distribution.

import (
	"math"
	"sync"

	"github.com/basetensor/basetensor/internal/network/ising"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// walk are the loops of a model whose chains begin with a product distribution.
type walk struct {
	ln      float64     // ln of the factors outside the chains
	start   [][]float64 // ln of where chains begin, by value
	level   float64     // log-probability below which draws from start are rare
	spins   *lattice
	factors *factors
	model   *ising.Model // nil where there are others than spins
	base    []float32    // of the model: where chains begin, as lattices have it
	once    sync.Once
	forests *lattice // nil where there are none, and before it was asked for
}

// newWalk returns the loops of chains that begin with independent draws, start their logarithms.
func newWalk(e *sumproduct.Expression, start [][]float64) (w *walk, err error) {
	w = &walk{ln: e.Scale.LogAbs(), start: start, level: levelOf(start)}
	s := ising.New(e)
	if s == nil {
		w.factors, err = newFactors(e, start)
		return w, err
	}
	w.ln += s.Constant
	base := make([]float32, s.N)
	for i, p := range start {
		if len(p) == 2 {
			base[i] = float32((p[1] - p[0]) * math.Log2E)
		}
		b := float64(base[i]) / unit
		s.H[i] -= b
		w.ln += math.Ln2 + math.Log(math.Cosh(b))
	}
	w.spins, w.model, w.base = newLattice(s, base), s, base
	return w, nil
}

// bytes bounds the memory of the loops.
func (w *walk) bytes() float64 {
	if w.spins != nil {
		return 32 * float64(len(w.spins.j)+w.spins.n+Group)
	}
	return 32 * float64(len(w.factors.ln)+len(w.factors.own)+w.factors.height)
}

// lnStart is the log-probability that a chain begins with a state.
func (w *walk) lnStart(state []int) (ln float64) {
	for i, a := range state {
		ln += w.start[i][a]
	}
	return ln
}
