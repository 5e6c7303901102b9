package truth

// Numbers and models drawn at random.

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Profile says how far the numbers of a model go.
type Profile string

const (
	Tame Profile = "tame" // 0, 1, ordinary numbers, 1e±15
	Wild Profile = "wild" // those, 1e±300, subnormal ones, and 2^±2000 where a kind of factor has exponents
)

// What bounds the assignments of a model: most are small, some are large enough that something is
// truncated.
const (
	maxStates   = 600
	largeStates = 1 << 12
)

// drawer draws one model. Its shares are drawn once a model, so that models differ as a whole and
// not only on average.
type drawer struct {
	rng                 *rand.Rand
	wild                bool
	zero, one, far, out float64 // shares of 0, of 1, of 1e±15, of wild numbers
	exponents           int64   // of values that carry exponents: up to ±this
	few                 bool    // structured models small enough to be enumerated
}

// newDrawer draws how often a model has zeros, ones and numbers far away.
func newDrawer(rng *rand.Rand, p Profile) *drawer {
	d := &drawer{rng: rng, wild: p == Wild}
	d.zero = pick(rng, 0, 0, 0, 0.02, 0.05, 0.1, 0.3)
	d.one = pick(rng, 0, 0.2, 0.6, 0.9) * (1 - d.zero)
	d.far = pick(rng, 0, 0, 0.1, 0.5)
	d.exponents = pick[int64](rng, 0, 8, 8)
	if d.wild {
		d.out = pick(rng, 0, 0.05, 0.2, 0.6)
		d.exponents = pick[int64](rng, 8, 300, 1100, 2000, 2000, 100_000)
	}
	return d
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// chance is true with probability p.
func (d *drawer) chance(p float64) bool { return d.rng.Float64() < p }

// positive draws a number above 0.
func (d *drawer) positive() float64 {
	switch {
	case d.chance(d.out):
		return d.outlier()
	case d.chance(d.far):
		return (0.1 + d.rng.Float64()) * pick(d.rng, 1e-15, 1e15, 1e-8, 1e8)
	case d.chance(d.one):
		return 1
	case d.chance(0.1):
		return float64(1 + d.rng.IntN(9))
	}
	return 1 - d.rng.Float64()
}

// outlier draws a number near the ends of float64.
func (d *drawer) outlier() float64 {
	switch d.rng.IntN(6) {
	case 0:
		return (0.1 + d.rng.Float64()) * 1e300
	case 1:
		return (0.1 + d.rng.Float64()) * 1e-300
	case 2:
		return math.SmallestNonzeroFloat64 * float64(1+d.rng.IntN(1<<uint(d.rng.IntN(50))))
	case 3:
		return math.MaxFloat64 * (1 - d.rng.Float64()/2)
	}
	return math.Exp((2*d.rng.Float64() - 1) * 700)
}

// number draws 0 or a number above it.
func (d *drawer) number() float64 {
	if d.chance(d.zero) {
		return 0
	}
	return d.positive()
}

func (d *drawer) numbers(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = d.number()
	}
	return out
}

// exponent draws an exponent of 2.
func (d *drawer) exponent() int64 {
	if d.exponents == 0 || d.chance(0.3) {
		return 0
	}
	if d.chance(0.3) {
		return pick(d.rng, -d.exponents, d.exponents)
	}
	return d.rng.Int64N(2*d.exponents+1) - d.exponents
}

// model draws a model: mixed domains, any kind of factor, structures that people build.
func (d *drawer) model() *factorgraph.Model {
	m := &factorgraph.Model{Domains: d.domains()}
	if d.chance(0.12) {
		d.structured(m)
	} else {
		d.scattered(m)
	}

	for range d.rng.IntN(3) {
		if d.chance(0.2) {
			m.Factors = append(m.Factors, d.factor(m, nil))
		}
	}

	if d.chance(0.2) && len(m.Factors) > 0 { // a scope that is there already
		scope := m.Factors[d.rng.IntN(len(m.Factors))].Scope
		m.Factors = append(m.Factors, d.factor(m, d.shuffled(scope)))
	}
	d.rng.Shuffle(len(m.Factors), func(i, j int) { m.Factors[i], m.Factors[j] = m.Factors[j], m.Factors[i] })
	return m
}

// domains draws the variables; at most maxStates states together, now and then largeStates.
func (d *drawer) domains() []int {
	n, most := d.rng.IntN(10), maxStates
	if d.chance(0.05) {
		n, most = 8+d.rng.IntN(5), largeStates
	}
	if d.chance(0.9) {
		n = max(n, 1)
	}
	largest := pick(d.rng, 2, 2, 3, 5, 5)
	domains, states := make([]int, n), 1
	for i := range domains {
		domains[i] = 1 + d.rng.IntN(largest)
		if domains[i] == 1 && d.chance(0.7) {
			domains[i] = 2
		}
		if states*domains[i] > most {
			domains[i] = 1
		}
		states *= domains[i]
	}

	return domains
}

// scattered adds factors over scopes at random, at times in two parts that share no variable.
func (d *drawer) scattered(m *factorgraph.Model) {
	parts := [][]int{all(len(m.Domains))}
	if n := len(m.Domains); n > 1 && d.chance(0.2) {
		perm, cut := d.rng.Perm(n), 1+d.rng.IntN(n-1)
		parts = [][]int{perm[:cut], perm[cut:]}
	}
	most := pick(d.rng, 1, 2, 2, 3, 3, 6)
	usual := d.zero
	defer func() { d.zero = usual }()
	for range d.rng.IntN(3 + 2*len(m.Domains)) {
		if d.zero = usual; d.chance(0.05) { // one that excludes most
			d.zero = 0.6
		}
		of := parts[d.rng.IntN(len(parts))]
		arity := d.rng.IntN(min(most, len(of)) + 1)
		if arity < 2 && d.chance(0.5) {
			arity = min(2, len(of))
		}
		m.Factors = append(m.Factors, d.factor(m, d.shuffled(of)[:arity]))
	}
}

func all(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func (d *drawer) shuffled(list []int) []int {
	out := append([]int{}, list...)
	d.rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
