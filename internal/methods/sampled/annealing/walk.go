package annealing

// Walks: the loops of chains that begin with one product distribution.

import (
	"math"
	"sync"

	"github.com/basetensor/basetensor/internal/network/ising"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// walker carries the chains of a model that begin with one product distribution. It has either spins or tables.
type walker struct {
	lnConstant  float64     // ln of the constant factors that the weights of chains leave out
	startLn     [][]float64 // startLn[i][a] is the log-probability that a chain begins with value a of index i
	rareLevel   float64     // log-probability below which the start rarely draws a state
	spins       *spinModel
	tables      *tableModel
	model       *ising.Model // nil if not all indices are spins
	startOdds   []float32    // by spin of model: log odds of +1 where chains begin, in powers of 2
	forestsOnce sync.Once
	forests     *spinModel // nil until it is asked for, or if there are none
}

// newWalker returns the walker of chains that begin with independent draws: startLn[i][a] is the log-probability of value a of index i. It
// uses the form for spins if e is a product of fields and pairwise couplings of binary indices. Errors: those of newTableModel.
func newWalker(e *sumproduct.Expression, startLn [][]float64) (w *walker, err error) {
	w = &walker{lnConstant: e.Scale.LogAbs(), startLn: startLn, rareLevel: rareLevelOf(startLn)}
	s := ising.New(e)
	if s == nil { // e is no model of spins
		w.tables, err = newTableModel(e, startLn)
		return w, err
	}

	w.lnConstant += s.Constant
	startOdds := make([]float32, s.N)
	for i, ln := range startLn {
		if len(ln) == 2 {
			startOdds[i] = float32((ln[1] - ln[0]) * math.Log2E)
		}
		// Chains weigh states relative to the start, e^{field·s}/(2cosh field) for spin s: its field is subtracted. A field of 1 has log
		// odds unit in powers of 2.
		field := float64(startOdds[i]) / unit
		s.H[i] -= field
		w.lnConstant += math.Ln2 + math.Log(math.Cosh(field))
	}
	w.spins, w.model, w.startOdds = newSpinModel(s, startOdds), s, startOdds
	return w, nil
}

// bytes returns an upper bound of the memory of a walker: at most 32 bytes for each entry of its lists.
func (w *walker) bytes() float64 {
	if w.spins != nil {
		return 32 * float64(len(w.spins.couplings)+w.spins.n+GroupSize)
	}
	return 32 * float64(len(w.tables.differences)+len(w.tables.unaryDifferences)+w.tables.rowCount)
}

// lnProbability returns the log-probability that a chain begins with a state.
func (w *walker) lnProbability(state []int) (ln float64) {
	for i, a := range state {
		ln += w.startLn[i][a]
	}
	return ln
}
