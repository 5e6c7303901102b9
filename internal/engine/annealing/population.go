package annealing

// One population on its way.

import (
	"context"
	"math"
	"math/rand/v2"
)

// walks are chains over one form of a model.
type walks interface {
	// begin returns so many chains, in no state yet.
	begin(chains int) walkers
}

// walkers are the chains of a population.
type walkers interface {
	// draw draws chain c from the product of the vectors.
	draw(c int, r *rand.Rand)
	// heat prepares sweeps at β.
	heat(beta float64)
	// sweep takes a heat-bath step at every index of chain c.
	sweep(c int, r *rand.Rand)
	// energies returns of chain c: ln of the product of the tables less that of the normalised vectors, entries of 0 left at the least of
	// their table; and how many of those there are.
	energies(c int) (ln float64, zeros int)
	// copies makes chain to a copy of chain from.
	copies(to, from int)
	// value is that of an index of chain c.
	value(c, i int) int
}

const (
	// hardness is λ. Chosen: e^−12 is rare at the end, and walls are crossed in the first half.
	hardness = 12
	// evenness is the effective share of chains below which they are drawn anew.
	evenness = 0.5
)

// population is a number of chains, their weights, and the ratios so far.
type population struct {
	walkers
	r     *rand.Rand
	beta  float64
	lnw   []float64 // of every chain since they were drawn anew
	ln    float64   // of the product of the mean ratios until then
	least float64
}

// start draws the chains of population k.
func (m *Model) start(chains int, seed, k uint64) *population {
	p := &population{
		walkers: m.walks.begin(chains), r: rand.New(rand.NewPCG(seed, k)), lnw: make([]float64, chains), least: 1,
	}
	for c := range chains {
		p.draw(c, p.r)
	}
	return p
}

// climb goes on to β: weights, perhaps chains drawn anew, a sweep of each. At the end no sweep is needed.
func (p *population) climb(ctx context.Context, beta float64) error {
	for c := range p.lnw {
		p.lnw[c] += p.ratio(c, beta)
	}
	p.beta = beta
	mean, even := weigh(p.lnw)
	p.least = min(p.least, even)
	if math.IsInf(mean, -1) || beta == 1 {
		p.ln += mean
		return ctx.Err()
	}
	if even < evenness {
		p.again(mean)
		p.ln += mean
	}
	p.heat(beta)
	for c := range p.lnw {
		if err := ctx.Err(); err != nil {
			return err
		}
		p.sweep(c, p.r)
	}
	return nil
}

// ratio is ln of ψ_to/ψ_β of a chain.
func (p *population) ratio(c int, to float64) float64 {
	ln, zeros := p.energies(c)
	if to == 1 && zeros > 0 {
		return math.Inf(-1)
	}
	return (to - p.beta) * (ln - hardness*float64(zeros))
}

// next is the largest β up to which the effective share of the chains stays at even, of what it is now.
func (p *population) next(even float64) float64 {
	per := make([]float64, len(p.lnw))
	lnw := make([]float64, len(p.lnw))
	for c := range per {
		ln, zeros := p.energies(c)
		per[c] = ln - hardness*float64(zeros)
	}
	_, now := weigh(p.lnw)
	low, high := p.beta, 1.0
	for range 40 {
		mid := (low + high) / 2
		if mid = min(mid, 1); low == high {
			break
		}
		for c := range lnw {
			lnw[c] = p.lnw[c] + (mid-p.beta)*per[c]
		}
		if _, e := weigh(lnw); e >= even*now {
			low = mid
		} else {
			high = mid
		}
	}
	if high == 1 || low <= p.beta {
		return high
	}
	return low
}

// weigh returns ln of the mean of the weights e^lnw, and their effective number (Σw)²/Σw² as a share of all.
func weigh(lnw []float64) (mean, even float64) {
	top := math.Inf(-1)
	for _, l := range lnw {
		top = max(top, l)
	}
	if math.IsInf(top, -1) {
		return top, 0
	}
	sum, squares := 0.0, 0.0
	for _, l := range lnw {
		w := math.Exp(l - top)
		sum += w
		squares += w * w
	}
	n := float64(len(lnw))
	return top + math.Log(sum/n), sum * sum / squares / n
}

// again draws the chains anew by their weights, systematically: one of weight w, of mean 1, comes ⌊w⌋ or ⌈w⌉ times. All weights are 1 then.
func (p *population) again(mean float64) {
	n := len(p.lnw)
	times := make([]int, n)
	at, sum, drawn, last := p.r.Float64(), 0.0, 0, 0
	for c, l := range p.lnw {
		for sum += math.Exp(l - mean); at < sum && drawn < n; at++ {
			times[c]++
			drawn++
			last = c
		}
		p.lnw[c] = 0
	}
	times[last] += n - drawn // where rounding has lost one
	to := 0
	for c, k := range times {
		for ; k > 1; k-- {
			for times[to] != 0 {
				to++
			}
			p.copies(to, c)
			times[to] = 1
		}
	}
}

// shares are the weights of the values of every index.
func (p *population) shares(dims []int) [][]float64 {
	mean, _ := weigh(p.lnw)
	out := make([][]float64, len(dims))
	for i, d := range dims {
		out[i] = make([]float64, d)
		for c, l := range p.lnw {
			out[i][p.value(c, i)] += math.Exp(l-mean) / float64(len(p.lnw))
		}
	}
	return out
}
