package annealing

// Several starts: chains from modes in addition to chains from independent draws, so that no mode that was found is missed.
//
// With start distributions p_0, p_1 … a component is one chain from each. Its weight is Σ_k w_k φ_k(x_k), where x_k is the
// last state of chain k and φ_k = g_k/Σ_j g_j are mixture weights. E w_k f(x_k) = Σ_x ψ(x) f(x) for any f, and the φ_k add
// up to 1: the mean is Z for any choice of modes. g is 1 for uniform draws, else p_k relative to the probability below
// which draws from p_k are rare (levelOf). A chain from a mode thus counts near that mode, and chains need not cross from
// one mode to another.

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/engine/modes"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Starts returns the largest number of starts of a component's chains.
func (p *Path) Starts() float64 { return float64(1 + p.Modes + len(p.ExtraStarts)) }

// ModesFlops returns the cost of the search for modes and of the beliefs that it begins with.
func (m *Model) ModesFlops() float64 { return modes.Work(m.expression) + m.StartFlops() }

// CountModes returns the number of starts in addition to the path's first one and those given. It does not depend on the weight near them
// or on p.Modes. Errors: those of modes.Find, of the context and of newWalker. Cost: ModesFlops, once.
func (m *Model) CountModes(ctx context.Context, p Path) (int, error) {
	p.Modes = modes.MaxModes + 1 // all modes, and uniform draws
	walkers, err := m.walkers(ctx, p)
	return max(len(walkers)-1, 0), err
}

// givenWalkers are the walkers of the given starts that were asked for last.
type givenWalkers struct {
	mu      sync.Mutex
	starts  [][][]float64
	walkers []*walker
}

// walkersOf returns a walker for each of the given starts, which are product distributions: starts[k][i][a] is the probability of value a
// of index i. The walkers of the last call are used again if all starts are the same in memory. Errors: those of newWalker.
func (g *givenWalkers) walkersOf(e *sumproduct.Expression, starts [][][]float64) ([]*walker, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sharesMemory := func(a, b [][]float64) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }
	if slices.EqualFunc(g.starts, starts, sharesMemory) {
		return g.walkers, nil
	}
	g.starts, g.walkers = starts, nil
	for _, p := range starts {
		w, err := newWalker(e, mixWithUniform(p))
		if err != nil {
			g.starts = nil // nothing is kept
			return nil, err
		}
		g.walkers = append(g.walkers, w)
	}
	return g.walkers, nil
}

// walkers returns a walker for each start of a path, without p.ExtraStarts. There are at most 1 + p.Modes: the path's first start, then
// uniform draws if the first are from beliefs, then modes, which it looks for once. Errors: those of modes.Find, of the context and of
// newWalker. A walker carries the chains from one start.
func (m *Model) walkers(ctx context.Context, p Path) ([]*walker, error) {
	if !p.FromBeliefs && p.Modes == 0 {
		return []*walker{m.uniform}, nil
	}
	fromBeliefs, err := m.beliefWalker(ctx)
	if err != nil {
		return nil, err
	}
	if p.Modes == 0 {
		return []*walker{fromBeliefs}, nil
	}

	// Search for modes, beginning at the most probable value of each index.
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.hasSoughtModes {
		foundModes, err := modes.Find(ctx, m.expression, mostProbable(fromBeliefs.startLn))
		if err != nil {
			return nil, err
		}
		for _, mode := range foundModes {
			w, err := newWalker(m.expression, mixWithUniform(mode.Conditionals))
			if err != nil {
				return nil, err
			}
			m.fromModes = append(m.fromModes, w)
		}
		m.hasSoughtModes = true
	}

	walkers := []*walker{m.uniform}
	if p.FromBeliefs {
		walkers = []*walker{fromBeliefs, m.uniform}
	}
	walkers = append(walkers, m.fromModes...)
	return walkers[:min(1+p.Modes, len(walkers))], nil
}

// mostProbable returns the value with the largest log-probability of every index. lnP[i][a] is that of value a of index i.
func mostProbable(lnP [][]float64) []int {
	values := make([]int, len(lnP))
	for i, row := range lnP {
		for a, ln := range row {
			if ln > row[values[i]] {
				values[i] = a
			}
		}
	}
	return values
}

// mixWithUniform returns ln((1−u)·p + u/d) for each probability p of an index with d values, with u = uniformShare. So no probability is
// near 0.
func mixWithUniform(p [][]float64) (ln [][]float64) {
	ln = make([][]float64, len(p))
	for i, row := range p {
		ln[i] = make([]float64, len(row))
		for a, q := range row {
			ln[i][a] = math.Log((1-uniformShare)*q + uniformShare/float64(len(row)))
		}
	}
	return ln
}

// lnG returns ln g of a state: its log-probability at the start of the walker's chains, less the level below which such draws are rare. It
// is 0 for uniform draws. The mixture weight of start k is g_k/Σ_j g_j.
func (w *walker) lnG(state []int) float64 { return w.lnProbability(state) - w.rareLevel }

// A draw is rare if its log-probability is below the mean by more than rareDeviations standard deviations plus rareNats:
// another start may have drawn it, too. Chosen.
const (
	rareDeviations = 3
	rareNats       = 3
)

// rareLevelOf returns the log-probability below which draws from a product distribution are rare: the mean log-probability of draws less
// rareDeviations standard deviations and rareNats. It is at least the log-probability of a uniform draw. startLn[i][a] is the
// log-probability of value a of index i.
func rareLevelOf(startLn [][]float64) float64 {
	mean, variance, uniformLn := 0.0, 0.0, 0.0
	for _, row := range startLn {
		rowMean, rowSquares := 0.0, 0.0
		for _, ln := range row {
			rowMean += ln * math.Exp(ln)
			rowSquares += ln * ln * math.Exp(ln)
		}
		mean += rowMean
		variance += max(0, rowSquares-rowMean*rowMean)
		uniformLn -= math.Log(float64(len(row)))
	}
	return max(mean-rareDeviations*math.Sqrt(variance)-rareNats, uniformLn)
}

// recordLnG sets w.lnGs to ln g_j of every start j at the last state of every chain. g_j compares how likely start j is to draw the state
// (lnG), so that g_k/Σ_j g_j is the share of the chain from start k in its component. With S starts, w.lnGs[(c·S+k)·S+j] is ln g_j at the
// last state of the chain of component c from start k. walkers[j] carries the chains from start j.
func (m *Model) recordLnG(w *Weights, walkers []*walker) {
	state := make([]int, len(m.dims))
	w.lnGs = make([]float64, 0, len(w.chainLn)*len(walkers))
	for c := range w.Ln {
		for k := range walkers {
			m.writeState(w, c, k, state)
			for _, start := range walkers {
				w.lnGs = append(w.lnGs, start.lnG(state))
			}
		}
	}
}

// WithFirstStarts returns the log-weights of components, and the logarithms of their chains' contributions, as if there were only the
// given number of starts: the first ones. The contribution of the chain from start k is w_k φ_k, where w_k is its weight and φ_k =
// g_k/Σ_j g_j over these starts: g_j compares how likely start j is to draw the chain's last state (lnG).
func (w *Weights) WithFirstStarts(starts int) (ln, lnContributions []float64) {
	allStarts := max(1, len(w.chainLn)/len(w.Ln))
	if allStarts == 1 { // a component is one chain, and its contribution the whole weight
		return w.Ln, w.Ln
	}
	ln, lnContributions = make([]float64, len(w.Ln)), make([]float64, starts*len(w.Ln))
	for c := range ln {
		chains := lnContributions[c*starts:][:starts]
		for k := range chains {
			chain := c*allStarts + k
			lnGs := w.lnGs[chain*allStarts:][:starts]                   // ln g_j by start j, at the last state of the chain
			chains[k] = w.chainLn[chain] + lnGs[k] - floats.LnSum(lnGs) // ln of w_k φ_k
		}
		ln[c] = floats.LnSum(chains)
	}
	return ln, lnContributions
}
