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

// Drawer draws one model with any kind of factors, and more numbers like its entries. The probabilities of special numbers are drawn
// once a model, so that models differ as a whole and not only on average.
type Drawer struct {
	Rand      *rand.Rand
	Zero      float64 // probability that Number draws 0
	one       float64 // probability of 1
	far       float64 // probability of a number far from 1, such as 1e15 or 1e−8
	Out       float64 // probability of a number near the ends of float64; 0 for a tame profile
	Exponents int64   // largest exponent of 2 of values that have one beside their mantissa; 0: none
}

// NewDrawer returns a drawer whose probabilities of special numbers are drawn for this profile.
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

// Pick draws one item of the list uniformly; an item that is listed twice is twice as likely.
func Pick[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

// Chance returns true with probability p.
func (d *Drawer) Chance(p float64) bool { return d.Rand.Float64() < p }

// Positive draws a number above 0: near the ends of float64, far from 1, exactly 1, or a digit, with the drawer's probabilities, and
// uniformly from (0, 1] otherwise.
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

// outlier draws a positive number near the ends of float64: about 1e±300, subnormal, near the maximum, or e^U(−700, 700).
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

// Number draws 0 with probability d.Zero, and a positive number otherwise.
func (d *Drawer) Number() float64 {
	if d.Chance(d.Zero) {
		return 0
	}
	return d.Positive()
}

// Numbers draws a list of n numbers, each 0 or positive (see Number).
func (d *Drawer) Numbers(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = d.Number()
	}
	return out
}

// exponent draws an exponent of 2 from −d.Exponents to d.Exponents; 0 and the two ends are likelier than the rest.
func (d *Drawer) exponent() int64 {
	if d.Exponents == 0 || d.Chance(0.3) {
		return 0
	}
	if d.Chance(0.3) {
		return Pick(d.Rand, -d.Exponents, d.Exponents)
	}
	return d.Rand.Int64N(2*d.Exponents+1) - d.Exponents
}

// Model draws a model of variables with mixed numbers of values: in 12 % of cases a structure that people build (see addStructure), and
// factors of any kind over random scopes otherwise. The factors are shuffled.
func (d *Drawer) Model() *factorgraph.Model {
	m := &factorgraph.Model{Domains: d.domains()}
	if d.Chance(0.12) {
		d.addStructure(m)
	} else {
		d.addRandomFactors(m)
	}

	// Constants: factors over no variables.
	for range d.Rand.IntN(3) {
		if d.Chance(0.2) {
			m.Factors = append(m.Factors, d.Factor(m, nil))
		}
	}

	// A second factor over the variables of another one, in any order.
	if d.Chance(0.2) && len(m.Factors) > 0 {
		scope := m.Factors[d.Rand.IntN(len(m.Factors))].Scope
		m.Factors = append(m.Factors, d.Factor(m, d.Shuffled(scope)))
	}
	d.Rand.Shuffle(len(m.Factors), func(i, j int) { m.Factors[i], m.Factors[j] = m.Factors[j], m.Factors[i] })
	return m
}

// domains draws the number of values of each variable of a model. Their product is at most maxStates, or in 5 % of models largeStates.
func (d *Drawer) domains() []int {
	n, limit := d.Rand.IntN(10), maxStates
	if d.Chance(0.05) {
		n, limit = 8+d.Rand.IntN(5), largeStates
	}
	if d.Chance(0.9) {
		n = max(n, 1) // models without variables are rare
	}

	// Variables of one value are rare, unless the states run out.
	largest := Pick(d.Rand, 2, 2, 3, 5, 5)
	domains, states := make([]int, n), 1
	for i := range domains {
		domains[i] = 1 + d.Rand.IntN(largest)
		if domains[i] == 1 && d.Chance(0.7) {
			domains[i] = 2
		}
		if states*domains[i] > limit {
			domains[i] = 1
		}
		states *= domains[i]
	}

	return domains
}

// addRandomFactors adds factors of any kind over random scopes. In 20 % of models the variables are divided into two groups, and no
// scope has variables of both.
func (d *Drawer) addRandomFactors(m *factorgraph.Model) {
	groups := [][]int{UpTo(len(m.Domains))}
	if n := len(m.Domains); n > 1 && d.Chance(0.2) {
		perm, cut := d.Rand.Perm(n), 1+d.Rand.IntN(n-1)
		groups = [][]int{perm[:cut], perm[cut:]}
	}

	largestArity := Pick(d.Rand, 1, 2, 2, 3, 3, 6)
	usualZero := d.Zero
	defer func() { d.Zero = usualZero }()
	for range d.Rand.IntN(3 + 2*len(m.Domains)) {
		// Now and then a factor excludes most assignments.
		if d.Zero = usualZero; d.Chance(0.05) {
			d.Zero = 0.6
		}

		// Half of the factors that would have fewer than two variables get two.
		group := groups[d.Rand.IntN(len(groups))]
		arity := d.Rand.IntN(min(largestArity, len(group)) + 1)
		if arity < 2 && d.Chance(0.5) {
			arity = min(2, len(group))
		}
		m.Factors = append(m.Factors, d.Factor(m, d.Shuffled(group)[:arity]))
	}
}

// Shuffled returns a copy of the list in random order.
func (d *Drawer) Shuffled(list []int) []int {
	out := append([]int{}, list...)
	d.Rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
