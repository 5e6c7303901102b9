package annealing

// Several starts: chains from modes beside chains from independent draws, so that no mode that was found is missed.
//
// With start distributions p_0, p_1 … a component is one chain from each. Its weight is Σ_k w_k φ_k(x_k), where x_k is the
// last state of chain k and φ_k = g_k/Σ_j g_j are mixture weights. E w_k f(x_k) = Σ_x ψ(x) f(x) for any f, and the φ_k add
// up to 1: the mean is Z for any choice of modes. g is 1 for uniform draws, else p_k relative to the probability below
// which draws from p_k are rare (levelOf). A chain from a mode thus counts near that mode, and chains need not cross from
// one mode to another.

import (
	"context"
	"math"
	"sync"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/engine/modes"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Starts is the number of starts of a component's chains.
func (p *Path) Starts() float64 { return float64(1 + p.Modes + len(p.Given)) }

// ModesFlops is the cost of the search for modes and of the beliefs that it begins with.
func (m *Model) ModesFlops() float64 { return modes.Work(m.e) + m.StartFlops() }

// Modes returns the number of starts beside the path's own, found without regard to the weight near them and to p.Modes.
// Errors: as modes.Find; the context's. Cost: ModesFlops, once.
func (m *Model) Modes(ctx context.Context, p Path) (int, error) {
	p.Modes = modes.Most + 1
	starts, err := m.starts(ctx, p)
	return max(len(starts)-1, 0), err
}

// given are the loops of given starts.
type given struct {
	mu    sync.Mutex
	of    [][][]float64
	walks []*walk
}

// walksOf returns the loops of product distributions: the last ones made, or new ones.
func (g *given) walksOf(e *sumproduct.Expression, of [][][]float64) ([]*walk, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	same := func(k int) bool { return len(of[k]) > 0 && len(g.of[k]) > 0 && &of[k][0] == &g.of[k][0] }
	if len(g.of) != len(of) || len(of) > 0 && !same(0) {
		g.of, g.walks = of, nil
		for _, p := range of {
			w, err := newWalk(e, floored(p))
			if err != nil {
				g.of = nil
				return nil, err
			}
			g.walks = append(g.walks, w)
		}
	}
	return g.walks, nil
}

// starts returns up to 1 + p.Modes starts of a path, beside those given: its own, uniform draws if its own are from beliefs, and modes.
func (m *Model) starts(ctx context.Context, p Path) ([]*walk, error) {
	own, err := m.from(ctx, p.Product)
	if err != nil || p.Modes == 0 {
		return []*walk{own}, err
	}
	beliefs, err := m.from(ctx, true)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.sought {
		found, err := modes.Find(ctx, m.e, likeliest(beliefs.start))
		if err != nil {
			return nil, err
		}
		for _, mode := range found {
			w, err := newWalk(m.e, floored(mode.Given))
			if err != nil {
				return nil, err
			}
			m.modes = append(m.modes, w)
		}
		m.sought = true
	}
	all := []*walk{own}
	if p.Product {
		all = append(all, m.uniform)
	}
	all = append(all, m.modes...)
	return all[:min(1+p.Modes, len(all))], nil
}

// likeliest returns the most probable value of every index.
func likeliest(p [][]float64) []int {
	x := make([]int, len(p))
	for i, row := range p {
		for a, q := range row {
			if q > row[x[i]] {
				x[i] = a
			}
		}
	}
	return x
}

// floored returns the logarithms of p mixed with the uniform distribution, which has weight leastStart: no probability is
// below leastStart over the number of values.
func floored(p [][]float64) [][]float64 {
	start := make([][]float64, len(p))
	for i, row := range p {
		start[i] = make([]float64, len(row))
		for a, q := range row {
			start[i][a] = math.Log((1-leastStart)*q + leastStart/float64(len(row)))
		}
	}
	return start
}

// near is ln g of a state: 0 for uniform draws; for another start below 0 where its draws are rare.
func (w *walk) near(state []int) float64 { return w.lnStart(state) - w.level }

// A draw is rare if its log-probability is below the mean by more than rareDeviations standard deviations plus rareNats:
// another start may have drawn it, too. Chosen.
const (
	rareDeviations = 3
	rareNats       = 3
)

// levelOf is the log-probability below which draws are rare, at least the log-probability of a uniform draw.
func levelOf(start [][]float64) float64 {
	mean, variance, uniform := 0.0, 0.0, 0.0
	for _, row := range start {
		own, square := 0.0, 0.0
		for _, ln := range row {
			own += ln * math.Exp(ln)
			square += ln * ln * math.Exp(ln)
		}
		mean += own
		variance += max(0, square-own*own)
		uniform -= math.Log(float64(len(row)))
	}
	return max(mean-rareDeviations*math.Sqrt(variance)-rareNats, uniform)
}

// recordStarts records ln g of every start at the last state of every chain.
func (m *Model) recordStarts(w *Weights, starts []*walk) {
	state := make([]int, len(m.dims))
	w.by = make([]float64, 0, len(w.alone)*len(starts))
	for c := range w.Ln {
		for k := range starts {
			m.state(w, c, k, state)
			for _, other := range starts {
				w.by = append(w.by, other.near(state))
			}
		}
	}
}

// Among returns the log-weights of components and of their chains with the first starts alone.
func (w *Weights) Among(starts int) (ln, each []float64) {
	all := max(1, len(w.alone)/len(w.Ln))
	if all == 1 {
		return w.Ln, w.Ln
	}
	ln, each = make([]float64, len(w.Ln)), make([]float64, starts*len(w.Ln))
	for c := range ln {
		own := each[c*starts:][:starts]
		for k := range own {
			at := c*all + k
			by := w.by[at*all:][:starts]
			own[k] = w.alone[at] + by[k] - floats.LnSum(by)
		}
		ln[c] = floats.LnSum(own)
	}
	return ln, each
}
