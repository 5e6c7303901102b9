package modeltest

// Models of any kinds of factors, and numbers from the whole range of float64.

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Profile is the range of the numbers of a model.
type Profile string

// The two profiles.
const (
	Tame Profile = "tame" // 0, 1, ordinary numbers, 1e±15
	Wild Profile = "wild" // the same, 1e±300, subnormal ones, and 2^±2000 where a kind of factor has exponents
)

// Bounds of the assignments of a model: most are small, some are large enough that something is
// truncated.
const (
	maxStates   = 600
	largeStates = 1 << 12
)

// Drawer draws one model with any kind of factors, and more numbers like its entries. Its shares are drawn once a model, so that models
// differ as a whole and not only on average.
type Drawer struct {
	Rand *rand.Rand
	// shares of 0, of 1, of 1e±15, of wild numbers
	Zero float64
	one  float64
	far  float64
	Out  float64
	// largest exponent of values with exponents
	Exponents int64
}

// NewDrawer draws the shares of zeros, ones and numbers far away.
func NewDrawer(rng *rand.Rand, p Profile) *Drawer {
	d := &Drawer{Rand: rng}
	d.Zero = Pick(rng, 0, 0, 0, 0.02, 0.05, 0.1, 0.3)
	d.one = Pick(rng, 0, 0.2, 0.6, 0.9) * (1 - d.Zero)
	d.far = Pick(rng, 0, 0, 0.1, 0.5)
	d.Exponents = Pick[int64](rng, 0, 8, 8)
	if p == Wild {
		d.Out = Pick(rng, 0, 0.05, 0.2, 0.6)
		d.Exponents = Pick[int64](rng, 8, 300, 1100, 2000, 2000, 100_000)
	}
	return d
}

// Pick draws one of a list.
func Pick[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

// Chance is true with probability p.
func (d *Drawer) Chance(p float64) bool { return d.Rand.Float64() < p }

// Positive draws a number above 0.
func (d *Drawer) Positive() float64 {
	switch {
	case d.Chance(d.Out):
		return d.outlier()
	case d.Chance(d.far):
		return (0.1 + d.Rand.Float64()) * Pick(d.Rand, 1e-15, 1e15, 1e-8, 1e8)
	case d.Chance(d.one):
		return 1
	case d.Chance(0.1):
		return float64(1 + d.Rand.IntN(9))
	}
	return 1 - d.Rand.Float64()
}

// outlier draws a number near the ends of float64.
func (d *Drawer) outlier() float64 {
	switch d.Rand.IntN(6) {
	case 0:
		return (0.1 + d.Rand.Float64()) * 1e300
	case 1:
		return (0.1 + d.Rand.Float64()) * 1e-300
	case 2:
		return math.SmallestNonzeroFloat64 * float64(1+d.Rand.IntN(1<<uint(d.Rand.IntN(50))))
	case 3:
		return math.MaxFloat64 * (1 - d.Rand.Float64()/2)
	}
	return math.Exp((2*d.Rand.Float64() - 1) * 700)
}

// Number draws 0 or a number above it.
func (d *Drawer) Number() float64 {
	if d.Chance(d.Zero) {
		return 0
	}
	return d.Positive()
}

// Numbers draws n of them.
func (d *Drawer) Numbers(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = d.Number()
	}
	return out
}

// exponent draws an exponent of 2.
func (d *Drawer) exponent() int64 {
	if d.Exponents == 0 || d.Chance(0.3) {
		return 0
	}
	if d.Chance(0.3) {
		return Pick(d.Rand, -d.Exponents, d.Exponents)
	}
	return d.Rand.Int64N(2*d.Exponents+1) - d.Exponents
}

// Model draws a model: mixed domains, any kind of factor, structures that people build.
func (d *Drawer) Model() *factorgraph.Model {
	m := &factorgraph.Model{Domains: d.domains()}
	if d.Chance(0.12) {
		d.structured(m)
	} else {
		d.scattered(m)
	}

	for range d.Rand.IntN(3) {
		if d.Chance(0.2) {
			m.Factors = append(m.Factors, d.Factor(m, nil))
		}
	}

	if d.Chance(0.2) && len(m.Factors) > 0 { // a scope that is there already
		scope := m.Factors[d.Rand.IntN(len(m.Factors))].Scope
		m.Factors = append(m.Factors, d.Factor(m, d.Shuffled(scope)))
	}
	d.Rand.Shuffle(len(m.Factors), func(i, j int) { m.Factors[i], m.Factors[j] = m.Factors[j], m.Factors[i] })
	return m
}

// domains draws the variables; at most maxStates states together, now and then largeStates.
func (d *Drawer) domains() []int {
	n, allowed := d.Rand.IntN(10), maxStates
	if d.Chance(0.05) {
		n, allowed = 8+d.Rand.IntN(5), largeStates
	}
	if d.Chance(0.9) {
		n = max(n, 1)
	}
	largest := Pick(d.Rand, 2, 2, 3, 5, 5)
	domains, states := make([]int, n), 1
	for i := range domains {
		domains[i] = 1 + d.Rand.IntN(largest)
		if domains[i] == 1 && d.Chance(0.7) {
			domains[i] = 2
		}
		if states*domains[i] > allowed {
			domains[i] = 1
		}
		states *= domains[i]
	}

	return domains
}

// scattered adds factors over scopes at random, at times in two parts that share no variable.
func (d *Drawer) scattered(m *factorgraph.Model) {
	parts := [][]int{UpTo(len(m.Domains))}
	if n := len(m.Domains); n > 1 && d.Chance(0.2) {
		perm, cut := d.Rand.Perm(n), 1+d.Rand.IntN(n-1)
		parts = [][]int{perm[:cut], perm[cut:]}
	}
	largestArity := Pick(d.Rand, 1, 2, 2, 3, 3, 6)
	usual := d.Zero
	defer func() { d.Zero = usual }()
	for range d.Rand.IntN(3 + 2*len(m.Domains)) {
		if d.Zero = usual; d.Chance(0.05) { // one that excludes most
			d.Zero = 0.6
		}
		part := parts[d.Rand.IntN(len(parts))]
		arity := d.Rand.IntN(min(largestArity, len(part)) + 1)
		if arity < 2 && d.Chance(0.5) {
			arity = min(2, len(part))
		}
		m.Factors = append(m.Factors, d.Factor(m, d.Shuffled(part)[:arity]))
	}
}

// Shuffled is a permutation of a list.
func (d *Drawer) Shuffled(list []int) []int {
	out := append([]int{}, list...)
	d.Rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
