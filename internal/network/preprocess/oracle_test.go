package preprocess_test

import (
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const precision = 160

// states returns the number of terms of e.
func states(e *sumproduct.Expression) int {
	n := 1
	for _, d := range e.Dims {
		if n *= d; n > oracle.MaxStates {
			break
		}
	}
	return n
}

// away returns |a − b| / size, 0 for equal numbers.
func away(a, b, size *big.Float) float64 {
	d := new(big.Float).SetPrec(precision).Sub(a, b)
	if d.Sign() == 0 {
		return 0
	}
	if size.Sign() == 0 {
		return math.Inf(1)
	}
	f, _ := d.Quo(d, size).Float64()
	return math.Abs(f)
}

// drawing describes random expressions.
type drawing struct {
	indices, tables, arity, dim int
	zeros                       float64
	negative                    bool
	structure                   bool // tables of known structure among the random ones
	planted                     bool // some term is not 0
	range2                      int  // entries are multiplied by powers of two up to ±range2
}

func draw(rng *rand.Rand, d drawing) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.FromFloat(1 + rng.Float64())}
	for total := 1; len(e.Dims) < d.indices; {
		k := 1 + rng.IntN(d.dim)
		if total*k > 1<<10 {
			k = 1
		}
		total *= k
		e.Dims = append(e.Dims, k)
	}
	for range d.tables {
		scope := rng.Perm(len(e.Dims))[:min(rng.IntN(d.arity+1), len(e.Dims))]
		// a part of another table's scope, in another sequence
		if len(e.Tables) > 0 && rng.IntN(5) == 0 {
			scope = append([]int(nil), e.Tables[rng.IntN(len(e.Tables))].Scope...)
			rng.Shuffle(len(scope), func(i, j int) { scope[i], scope[j] = scope[j], scope[i] })
			scope = scope[:rng.IntN(len(scope)+1)]
		}
		dims := make([]int, len(scope))
		for k, i := range scope {
			dims[k] = e.Dims[i]
		}
		data := randomTable(rng, dims, d)
		if d.structure && rng.IntN(2) == 0 {
			data = structuredTable(rng, dims, d)
		}
		e.Tables = append(e.Tables, sumproduct.Table{Scope: scope, Data: data})
	}
	for range 2 {
		if d.planted {
			plant(rng, e)
		}
	}
	return e
}

// plant makes the entries of one assignment 1 where they are 0.
func plant(rng *rand.Rand, e *sumproduct.Expression) {
	x := make([]int, len(e.Dims))
	for i, d := range e.Dims {
		x[i] = rng.IntN(d)
	}
	for _, t := range e.Tables {
		at := 0
		for _, i := range t.Scope {
			at = at*e.Dims[i] + x[i]
		}
		if t.Data[at] == 0 {
			t.Data[at] = 1
		}
	}
}

func number(rng *rand.Rand, d drawing) float64 {
	x := 0.05 + rng.Float64()
	if d.negative && rng.IntN(3) == 0 {
		x = -x
	}
	if d.range2 > 0 {
		x = math.Ldexp(x, rng.IntN(2*d.range2+1)-d.range2)
	}
	return x
}

func randomTable(rng *rand.Rand, dims []int, d drawing) []float64 {
	var data []float64
	oracle.Each(dims, func([]int) {
		x := number(rng, d)
		if rng.Float64() < d.zeros {
			x = 0
		}
		data = append(data, x)
	})
	return data
}

// structuredTable draws a table that some rule recognises: conditional probabilities,
// a function of the other indices, a product, a clause, a parity, a function of the count.
func structuredTable(rng *rand.Rand, dims []int, d drawing) []float64 {
	kind := rng.IntN(8)
	weight := number(rng, d)
	f := make([]int, 4096)
	for k := range f {
		f[k] = rng.IntN(1 << 20)
	}
	vectors, others := make([][]float64, len(dims)), make([][]float64, len(dims))
	pair := randomTable(rng, []int{8, 8}, d)
	for k := range dims {
		for range dims[k] {
			vectors[k] = append(vectors[k], number(rng, d))
			others[k] = append(others[k], number(rng, d))
		}
	}
	counts := randomTable(rng, []int{64}, d)
	var data []float64
	oracle.Each(dims, func(x []int) {
		sum, code := 0, 0
		for k, v := range x {
			sum += v
			if k < len(x)-1 {
				code = (code*dims[k] + v) % len(f)
			}
		}
		last := len(x) - 1
		v := weight
		switch kind {
		case 0, 1: // the last index is a function of the others, or of the first
			if kind == 1 && len(x) > 0 {
				code = x[0]
			}
			if last >= 0 && f[code]%dims[last] != x[last] {
				v = 0
			}
		case 2: // a product
			for k := range x {
				v *= vectors[k][x[k]]
			}
		case 3: // a product of two tables that share an index
			for k := 1; k < len(x); k++ {
				v *= pair[8*x[k-1]+x[k]]
			}
		case 4: // a clause
			if sum == 0 {
				v = 0
			}
		case 5: // a parity
			if sum%2 == 0 {
				v = 0
			}
		case 6:
			v = counts[sum]
		case 7: // a mixture of two products
			u := weight
			for k := range x {
				v *= vectors[k][x[k]]
				u *= others[k][x[k]]
			}
			v += u
		}
		data = append(data, v)
	})
	return data
}
