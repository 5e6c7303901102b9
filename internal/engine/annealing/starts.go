package annealing

// Several starts: modes beside independent draws, so that none that was found is missed.
//
// With starts p_0, p_1 … a component is a chain from each, and weighs Σ_k w_k φ_k(x_k), x_k being where chain k has ended and
// φ_k = g_k/Σ_j g_j. E w_k f(x_k) = Σ_x ψ(x) f(x) for any f, and the φ_k add up to 1: the mean is Z, whichever modes there are. g is 1 for
// uniform draws, and p_k over what is rare among draws from p_k: a chain from a mode counts near it, so that those that hardly ever get
// from one mode to another need not.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/engine/modes"
)

// Starts is from how many starts the chains of a component begin.
func (p *Path) Starts() float64 { return float64(1 + p.Modes) }

// ModesFlops is what the search for modes takes.
func (m *Model) ModesFlops() float64 { return modes.Work(m.e) + m.StartFlops() }

// Modes is how many starts there are beside that of a path, whatever is near them. Errors: those of modes.Find, the context's. Cost:
// ModesFlops, once.
func (m *Model) Modes(ctx context.Context, p Path) (int, error) {
	p.Modes = modes.Most + 1
	starts, err := m.starts(ctx, p)
	return max(len(starts)-1, 0), err
}

// starts are those of a path: its own, uniform draws where that is of beliefs, and modes, as many as are asked for and there are.
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

// likeliest are the values of the largest probabilities.
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

// floored are the logarithms of probabilities, of which none is below leastStart over their number.
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

// near is how much a state is a start's own, a logarithm: 0 for uniform draws, and below 0 for others where their draws are rare.
func (w *walk) near(state []int) float64 { return w.lnStart(state) - w.level }

// rare is how many standard deviations and nats below its mean ln of the probability of a draw is where others may have drawn it, too.
// Chosen.
const (
	rareDeviations = 3
	rareNats       = 3
)

// levelOf is ln of the probability of draws from which on they are rare, and that of uniform ones at least.
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

// place fills in what all starts say of where every chain has ended.
func (m *Model) place(w *Weights, starts []*walk) {
	state := make([]int, len(m.dims))
	for c := range w.Ln {
		for k := range starts {
			m.state(w, c, k, state)
			for _, other := range starts {
				w.by = append(w.by, other.near(state))
			}
		}
	}
}

// Among returns the weights of components, and of their chains, if there were only the first so many of the starts.
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
			own[k] = w.alone[at] + by[k] - lnSum(by)
		}
		ln[c] = lnSum(own)
	}
	return ln, each
}

// lnSum is ln of a sum of e^x, −Inf where all are 0.
func lnSum(x []float64) float64 {
	top := math.Inf(-1)
	for _, y := range x {
		top = max(top, y)
	}
	if math.IsInf(top, -1) {
		return top
	}
	sum := 0.0
	for _, y := range x {
		sum += math.Exp(y - top)
	}
	return top + math.Log(sum)
}
