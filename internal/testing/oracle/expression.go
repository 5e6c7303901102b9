// Sums of an expression by enumeration.

package oracle

import (
	"math"
	"math/big"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Sums are the sum of products of an expression (Scale · Σ_x Π_t T_t[x]) and its parts, which are not normalised.
type Sums struct {
	Z     *big.Float     // Scale · Σ_x Π_t T_t[x]
	Terms *big.Float     // the same over absolute values: rounding errors are measured against it
	Parts [][]*big.Float // Parts[i][v] is the part of Z in which index i has value v
}

// Sum returns the sums of an expression by enumerating all assignments, with numbers of this many bits (160 if bits is 0). It panics above
// MaxStates assignments.
func Sum(e *sumproduct.Expression, bits uint) Sums {
	if bits == 0 {
		bits = precision
	}
	number := func(mant float64, exp int64) *big.Float {
		f := new(big.Float).SetPrec(bits).SetFloat64(mant)
		return f.SetMantExp(f, int(exp))
	}
	s := newSummer(e.Dims)
	for _, t := range e.Tables {
		s.multiply(t.Scope, func(x []int) *big.Float {
			i := rowMajorIndex(x, t.Scope, e.Dims)
			if t.Exp != nil {
				return number(t.Data[i], t.Exp[i])
			}
			return number(t.Data[i], 0)
		})
	}
	return s.sum(number(e.Scale.Mant, e.Scale.Exp))
}

// rowMajorIndex returns the index of an entry in a table over the indices of scope, where x[k] is the value of scope[k].
func rowMajorIndex(x, scope, dims []int) (index int) {
	for k, i := range scope {
		index = index*dims[i] + x[k]
	}
	return index
}

// summer adds up the products of factors over all assignments by depth-first search: it gives index 0 a value, then index 1, and so on.
// A factor is multiplied in once the last index of its scope has a value, and a product of zero ends its branch.
type summer struct {
	Sums
	dims    []int       // the number of values of each index
	allowed [][]int     // allowed[i] lists the values of index i to sum over
	factors [][]*factor // factors[i+1] are those whose scope ends with index i; factors[0] have an empty scope
	x       []int       // the values of the current branch
	levels  []level     // levels[i] has the intermediate results of index i
}

// level has the big numbers of one index, which are reused.
type level struct {
	product *big.Float // of the factors up to this index, on the current branch
	z       *big.Float // Σ of the products below this branch
	terms   *big.Float // Σ of their absolute values
}

// newSummer returns a summer over indices with these numbers of values, all of them allowed, without factors.
func newSummer(dims []int) *summer {
	s := &summer{dims: dims, allowed: make([][]int, len(dims)), factors: make([][]*factor, len(dims)+1), x: make([]int, len(dims))}
	for i, d := range dims {
		for v := range d {
			s.allowed[i] = append(s.allowed[i], v)
		}
	}
	return s
}

// factor is one factor of a product. Small ones cache their entries.
type factor struct {
	scope  []int
	entry  func(x []int) *big.Float // the entry for the values of the scope
	cache  []*big.Float             // the entries so far, by their row-major index; empty if there are more than maxCached
	values []int                    // the values of the scope, reused
}

// maxCached is the largest number of entries of a factor that caches them.
const maxCached = 1 << 16

// multiply adds a factor to the product.
func (s *summer) multiply(scope []int, entry func(x []int) *big.Float) {
	f, size, last := &factor{scope: scope, entry: entry, values: make([]int, len(scope))}, 1, -1
	for _, i := range scope {
		size, last = min(size*s.dims[i], maxCached+1), max(last, i)
	}
	if size <= maxCached {
		f.cache = make([]*big.Float, size)
	}
	s.factors[last+1] = append(s.factors[last+1], f)
}

// entryAt returns the factor's entry at an assignment of all indices. The caller must not change it.
func (f *factor) entryAt(assignment, dims []int) *big.Float {
	for k, i := range f.scope {
		f.values[k] = assignment[i]
	}
	if len(f.cache) == 0 {
		return f.entry(f.values)
	}
	cached := &f.cache[rowMajorIndex(f.values, f.scope, dims)]
	if *cached == nil {
		*cached = f.entry(f.values)
	}
	return *cached
}

// sum returns scale · Σ_x Π factors and its parts, in the precision of scale, which it overwrites. It panics above MaxStates assignments.
func (s *summer) sum(scale *big.Float) Sums {
	allowedCounts := make([]int, len(s.dims))
	zero := func() *big.Float { return new(big.Float).SetPrec(scale.Prec()) }
	s.Parts = make([][]*big.Float, len(s.dims))
	for i, d := range s.dims {
		allowedCounts[i] = len(s.allowed[i])
		for range d {
			s.Parts[i] = append(s.Parts[i], zero())
		}
	}
	states(allowedCounts) // panics if there are too many

	for range len(s.dims) + 1 {
		s.levels = append(s.levels, level{zero(), zero(), zero()})
	}
	for _, f := range s.factors[0] {
		scale.Mul(scale, f.entryAt(nil, s.dims))
	}
	s.Z, s.Terms = s.sumFrom(0, scale)
	return s.Sums
}

// sumFrom sums over the indices from i on, where p is the product of all factors that end before index i. It returns the sum and the sum
// of absolute values, which the next call overwrites, and adds to s.Parts.
func (s *summer) sumFrom(i int, p *big.Float) (z, terms *big.Float) {
	l := &s.levels[i]
	if i == len(s.dims) {
		return p, l.terms.Abs(p)
	}
	l.z.SetInt64(0)
	l.terms.SetInt64(0)
	for _, v := range s.allowed[i] {
		s.x[i] = v
		l.product.Set(p)
		for _, f := range s.factors[i+1] {
			l.product.Mul(l.product, f.entryAt(s.x, s.dims))
		}
		if l.product.Sign() == 0 {
			continue
		}
		part, partTerms := s.sumFrom(i+1, l.product)
		s.Parts[i][v].Add(s.Parts[i][v], part)
		l.z.Add(l.z, part)
		l.terms.Add(l.terms, partTerms)
	}
	return l.z, l.terms
}

// Marginals returns the marginals P(index i = v) = Parts[i][v] / Z, or nil if Z is 0.
func (s Sums) Marginals() [][]float64 {
	if s.Z.Sign() == 0 {
		return nil
	}
	out := make([][]float64, len(s.Parts))
	for i, row := range s.Parts {
		for _, part := range row {
			p, _ := new(big.Float).Quo(part, s.Z).Float64()
			out[i] = append(out[i], p)
		}
	}
	return out
}

// ScaledError returns |got − want| / size for got = mant·2^exp. It is 0 if got equals want, for any size. It is +Inf if size is 0
// otherwise, or if mant is infinite or not a number.
func ScaledError(mant float64, exp int64, want, size *big.Float) float64 {
	isFinite := mant-mant == 0
	if !isFinite {
		return math.Inf(1)
	}
	got := new(big.Float).SetPrec(max(want.Prec(), 64)).SetFloat64(mant)
	got.SetMantExp(got, int(exp))
	got.Sub(got, want)
	if got.Sign() == 0 {
		return 0
	}
	if size.Sign() == 0 {
		return math.Inf(1)
	}
	scaledError, _ := got.Quo(got, size).Float64()
	return math.Abs(scaledError)
}

// Float64 returns the sums rounded to float64, for expressions whose sums are in its range.
func (s Sums) Float64() (z, terms float64, parts [][]float64) {
	z, _ = s.Z.Float64()
	terms, _ = s.Terms.Float64()
	for _, row := range s.Parts {
		list := make([]float64, len(row))
		for v, part := range row {
			list[v], _ = part.Float64()
		}
		parts = append(parts, list)
	}
	return z, terms, parts
}
