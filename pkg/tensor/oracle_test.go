// Brute force: naive loops over all indices,
// sharing no code with the package, and random tensors of all forms.

package tensor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// tolerance is relative to the sum of absolute terms: 1e-12 is some 5,000 roundings.
const tolerance = 1e-12

func seeded(t *testing.T, seed uint64) *rand.Rand {
	t.Helper()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 17))
}

// every calls f with each index of dims.
func every(dims []int, f func(x []int)) {
	var walk func(prefix []int)
	walk = func(prefix []int) {
		if len(prefix) == len(dims) {
			f(append([]int{}, prefix...))
			return
		}
		for v := 0; v < dims[len(prefix)]; v++ {
			walk(append(prefix[:len(prefix):len(prefix)], v))
		}
	}
	walk(nil)
}

// naive returns entry x from the definition of the form.
func naive(t Tensor, x []int) float64 {
	switch t := t.(type) {
	case *Dense:
		at, step := 0, 1
		for m := len(x) - 1; m >= 0; m-- {
			at += x[m] * step
			step *= t.Shape[m]
		}
		return t.Data[at]
	case *CP:
		sum := 0.0
		for i, p := range t.Weights {
			for m := range x {
				if t.Vectors[m] == nil {
					if x[m] != i {
						p = 0
					}
				} else {
					p *= t.Vectors[m][i*t.Shape[m]+x[m]]
				}
			}
			sum += p
		}
		return sum
	case *Symmetric:
		return naiveValue(t.Levels, t.Values, x)
	case *SymmetryCP:
		sum := 0.0
		for _, term := range t.Terms {
			p := term.Alpha * naiveValue(t.Levels, term.S, x)
			for m := range x {
				if term.R != nil && term.R[m] != nil {
					p *= term.R[m][x[m]]
				}
			}
			sum += p
		}
		return sum
	}
	panic("form")
}

func naiveValue(l countspace.Levels, s scaled.Vector, x []int) float64 {
	at := 0
	for a := 1; a < l.D; a++ {
		can, is := 0, 0
		for m, of := range l.Of {
			for _, b := range of {
				if int(b) == a {
					can++
					break
				}
			}
			if int(of[x[m]]) == a {
				is++
			}
		}
		at = at*(can+1) + is
	}
	if s.Exp == nil {
		return s.Mant[at]
	}
	return math.Ldexp(s.Mant[at], int(s.Exp[at]))
}

func randomDims(r *rand.Rand, n int) []int {
	dims := make([]int, n)
	for i := range dims {
		dims[i] = 1 + r.IntN(4)
	}
	return dims
}

func randomList(r *rand.Rand, n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = r.NormFloat64()
		if r.IntN(8) == 0 {
			list[i] = 0
		}
	}
	return list
}

func randomDense(r *rand.Rand, dims []int) *Dense {
	size := 1
	for _, d := range dims {
		size *= d
	}
	return &Dense{Shape: dims, Data: randomList(r, size)}
}

func randomCP(r *rand.Rand, dims []int) *CP {
	rank := 1 + r.IntN(4)
	t := &CP{Shape: dims, Weights: randomList(r, rank), Vectors: make([][]float64, len(dims))}
	for m, d := range dims {
		if d != rank || r.IntN(2) == 0 {
			t.Vectors[m] = randomList(r, rank*d)
		}
	}
	return t
}

func randomLevels(r *rand.Rand, dims []int) countspace.Levels {
	l := countspace.Levels{D: 1 + r.IntN(4)}
	for _, d := range dims {
		of := make([]uint8, d)
		for x := range of {
			of[x] = uint8(r.IntN(l.D))
		}
		l.Of = append(l.Of, of)
	}
	return l
}

func randomValues(r *rand.Rand, l countspace.Levels) scaled.Vector {
	n := 1
	for _, s := range l.Shape() {
		n *= s
	}
	v := scaled.Vector{Mant: randomList(r, n)}
	if r.IntN(2) == 0 {
		v.Exp = make([]int64, n)
		for i := range v.Exp {
			v.Exp[i] = int64(r.IntN(5)) - 2
		}
	}
	return v
}

func randomSymmetric(r *rand.Rand, dims []int) *Symmetric {
	l := randomLevels(r, dims)
	return &Symmetric{Shape: dims, Levels: l, Values: randomValues(r, l)}
}

func randomSymmetryCP(r *rand.Rand, dims []int) *SymmetryCP {
	t := &SymmetryCP{Shape: dims, Levels: randomLevels(r, dims)}
	for range 1 + r.IntN(3) {
		term := SymmetryRankOne{Alpha: r.NormFloat64(), S: randomValues(r, t.Levels)}
		if r.IntN(4) > 0 {
			term.R = make([][]float64, len(dims))
			for m, d := range dims {
				if r.IntN(4) > 0 {
					term.R[m] = randomList(r, d)
				}
			}
		}
		t.Terms = append(t.Terms, term)
	}
	return t
}

// randomForms returns one valid tensor of every form.
func randomForms(r *rand.Rand, dims []int) []Tensor {
	return []Tensor{randomDense(r, dims), randomCP(r, dims), randomSymmetric(r, dims),
		randomSymmetryCP(r, dims)}
}

// randomWeights draws leg weights of one of the shapes that joint counts tell apart.
func randomWeights(r *rand.Rand, t Tensor, d int) []LegWeights {
	w := make([]LegWeights, len(t.Dims()))
	mode, shared := r.IntN(4), r.Perm(8)
	for leg, dim := range t.Dims() {
		w[leg] = randomList(r, dim*d)
		for x := range dim {
			only := -1
			switch mode {
			case 1: // every value at one level
				only = r.IntN(d)
			case 2, 3: // the core's level decides
				if s, ok := t.(*Symmetric); ok {
					only = shared[s.Levels.Of[leg][x]] % d
				}
				if s, ok := t.(*SymmetryCP); ok {
					only = shared[s.Levels.Of[leg][x]] % d
				}
				if mode == 3 && coreLevels(t) > 0 {
					// the weights' level decides the core's:
					// level a only where a mod D is the core's
					for a := range d {
						if a%coreLevels(t) != levelOf(t, leg, x) {
							w[leg][x*d+a] = 0
						}
					}
					only = -1
				}
			}
			for a := range d {
				if only >= 0 && a != only {
					w[leg][x*d+a] = 0
				}
			}
		}
	}
	return w
}

func coreLevels(t Tensor) int {
	switch t := t.(type) {
	case *Symmetric:
		return t.Levels.D
	case *SymmetryCP:
		return t.Levels.D
	}
	return 0
}

func levelOf(t Tensor, leg, x int) int {
	switch t := t.(type) {
	case *Symmetric:
		return int(t.Levels.Of[leg][x])
	case *SymmetryCP:
		return int(t.Levels.Of[leg][x])
	}
	return 0
}

// bruteCounts returns coefficient by count vector, and the sum of absolute terms, over all
// values of all legs and all levels; a leg in fixed keeps its value at level 0 and weight 1.
func bruteCounts(
	t Tensor, w []LegWeights, d int, fixed map[int]int,
) (coef map[string]float64, scale float64) {
	coef = map[string]float64{}
	every(t.Dims(), func(x []int) {
		for leg, v := range fixed {
			if x[leg] != v {
				return
			}
		}
		levels := make([]int, len(x))
		for i := range levels {
			levels[i] = d
			if _, ok := fixed[i]; ok {
				levels[i] = 1
			}
		}
		entry := naive(t, x)
		every(levels, func(a []int) {
			p := entry
			c := make([]int, d-1)
			for leg := range x {
				if _, ok := fixed[leg]; ok {
					continue
				}
				p *= w[leg][x[leg]*d+a[leg]]
				if a[leg] > 0 {
					c[a[leg]-1]++
				}
			}
			coef[fmt.Sprint(c)] += p
			scale += math.Abs(p)
		})
	})
	return coef, scale
}

// samePoly compares a polynomial with brute force, both ways round.
func samePoly(
	t *testing.T, what string, p countspace.Poly, want map[string]float64, scale float64,
) {
	t.Helper()
	size := 1
	for _, s := range p.Shape {
		size *= s
	}
	if p.Coef.Len() != size {
		t.Fatalf("%s: %d coefficients over box %v", what, p.Coef.Len(), p.Shape)
	}
	met := 0
	at := 0
	every(p.Shape, func(c []int) {
		key := fmt.Sprint(c)
		if _, ok := want[key]; ok {
			met++
		}
		if got := p.Coef.At(at).Float64(); math.Abs(got-want[key]) > tolerance*(scale+1e-300) {
			t.Fatalf("%s: [z^%s] = %v, want %v (scale %v)", what, key, got, want[key], scale)
		}
		at++
	})
	if met < len(want) {
		every(bigBox(p), func(c []int) {
			for i, s := range p.Shape {
				if c[i] >= s && math.Abs(want[fmt.Sprint(c)]) > tolerance*scale {
					t.Fatalf("%s: [z^%v] = %v is outside box %v",
						what, c, want[fmt.Sprint(c)], p.Shape)
				}
			}
		})
	}
}

func bigBox(p countspace.Poly) []int {
	box := make([]int, len(p.Shape))
	for i := range box {
		box[i] = 7
	}
	return box
}
