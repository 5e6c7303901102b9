package learned

// Brute force by definition: every tensor as a list of all entries. Shares no code with the package
// under test.

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// indices calls f with every index over dims, last fastest.
func indices(dims []int, f func(x []int)) {
	x := make([]int, len(dims))
	for {
		f(x)
		i := len(x) - 1
		for ; i >= 0; i-- {
			if x[i]++; x[i] < dims[i] {
				break
			}
			x[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// countPlace is the index of count(x) in the row-major box of the levels.
func countPlace(l countspace.Levels, x []int) int {
	most := make([]int, l.D)
	count := make([]int, l.D)
	for leg, of := range l.Of {
		seen := map[uint8]bool{}
		for _, a := range of {
			if !seen[a] {
				most[a]++
			}
			seen[a] = true
		}
		count[of[x[leg]]]++
	}
	place := 0
	for a := 1; a < l.D; a++ {
		place = place*(most[a]+1) + count[a]
	}
	return place
}

func number(v scaled.Vector, i int) float64 {
	if v.Exp == nil {
		return v.Mant[i]
	}
	return v.Mant[i] * math.Pow(2, float64(v.Exp[i]))
}

// entry evaluates a tensor at x by its definition.
func entry(t tensor.Tensor, x []int) float64 {
	switch t := t.(type) {
	case *tensor.Dense:
		i := 0
		for mode, d := range t.Shape {
			i = i*d + x[mode]
		}
		return t.Data[i]
	case *tensor.CP:
		sum := 0.0
		for k, w := range t.Weights {
			for mode, v := range t.Vectors {
				if v != nil {
					w *= v[k*t.Shape[mode]+x[mode]]
				} else if x[mode] != k {
					w = 0
				}
			}
			sum += w
		}
		return sum
	case *tensor.Symmetric:
		return number(t.Values, countPlace(t.Levels, x))
	case *tensor.SymmetryCP:
		sum := 0.0
		for _, term := range t.Terms {
			p := term.Alpha * number(term.S, countPlace(t.Levels, x))
			for mode, v := range term.R {
				if v != nil {
					p *= v[x[mode]]
				}
			}
			sum += p
		}
		return sum
	}
	panic("unknown form")
}

// materialise lists all entries of B.
func materialise(net *btn.Network) []float64 {
	var out []float64
	indices(net.Dims, func(x []int) {
		p := 1.0
		for _, core := range net.Cores {
			p *= entry(core.T, pick(x, core.Legs))
		}
		out = append(out, p)
	})
	return out
}

func pick(x, legs []int) []int {
	out := make([]int, len(legs))
	for i, l := range legs {
		out[i] = x[l]
	}
	return out
}

// partition sums B times the links over all indices: Z of the network.
func partition(net *btn.Network, b []float64) float64 {
	sum, i := 0.0, 0
	indices(net.Dims, func(x []int) {
		p := b[i]
		for _, link := range net.Links {
			p *= entry(link.T, pick(x, link.Legs))
		}
		sum += p
		i++
	})
	return sum * net.Scale.Float64()
}

// materialisePart lists all entries of Q = C ∘ R in its own coordinates.
func materialisePart(dims []int, q btn.Part) []float64 {
	var out []float64
	indices(dims, func(x []int) {
		p := 1.0
		var r [][]float64
		switch q := q.(type) {
		case *closed.RankOne:
			r = q.R
		case *closed.CP:
			p = entry(q.Tensor, x)
		case *closed.SymmetryRankOne:
			p, r = number(q.S.Coef, countPlace(q.Frame.Levels, x)), q.R
		default:
			panic("no closed form")
		}
		for leg, v := range r {
			if v != nil {
				p *= v[x[leg]]
			}
		}
		out = append(out, p)
	})
	return out
}

// rotate applies out[x] = Σ_y o[x,y] in[y] on one leg.
func rotate(in []float64, dims []int, leg int, o []float64) []float64 {
	if o == nil {
		return in
	}
	stride := 1
	for _, d := range dims[leg+1:] {
		stride *= d
	}
	d := dims[leg]
	out := make([]float64, len(in))
	for i := range in {
		x := i / stride % d
		base := i - x*stride
		for y := range d {
			out[i] += o[x*d+y] * in[base+y*stride]
		}
	}
	return out
}

// frameOf returns what the parts of a learned plan have in common.
func frameOf(p *btn.Plan) *btn.Frame {
	return btn.SharedData(p.Estimates[0].Parts[0]).(*btn.Frame)
}

// materialiseSum lists all entries of B̃ in the network's coordinates.
func materialiseSum(dims []int, p *btn.Plan) []float64 {
	var out []float64
	for i, part := range p.Estimates[0].Parts {
		q := materialisePart(dims, part)
		if out == nil {
			out = make([]float64, len(q))
		}
		for j := range q {
			out[j] += p.Estimates[0].Alpha[i].Float64() * q[j]
		}
	}
	for leg, o := range frameOf(p).Rotations {
		out = rotate(out, dims, leg, o)
	}
	return out
}

func inner(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func distanceSq(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return sum
}

// near fails unless got is want within tol of size.
func near(t *testing.T, what string, got, want, tol, size float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*size) {
		t.Errorf("%s: got %v, want %v (difference %.2g, allowed %.2g)", what, got, want, got-want, tol*size)
	}
}

func normal(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

// randomTensor draws a tensor of one of the four forms (form 0 to 3) with entries of either sign.
func randomTensor(rng *rand.Rand, dims []int, form int) tensor.Tensor {
	size := 1
	for _, d := range dims {
		size *= d
	}
	levels := countspace.TwoLevels(dims)
	box := 1
	for _, s := range levels.Shape() {
		box *= s
	}
	vectors := func(rank int) [][]float64 {
		v := make([][]float64, len(dims))
		for i, d := range dims {
			v[i] = normal(rng, rank*d)
		}
		return v
	}
	switch form % 4 {
	case 0:
		return &tensor.Dense{Shape: dims, Data: normal(rng, size)}
	case 1:
		return &tensor.CP{Shape: dims, Weights: normal(rng, 2), Vectors: vectors(2)}
	case 2:
		return &tensor.Symmetric{Shape: dims, Levels: levels, Values: scaled.Vector{Mant: normal(rng, box)}}
	}
	return &tensor.SymmetryCP{Shape: dims, Levels: levels, Terms: []tensor.SymmetryRankOne{
		{Alpha: rng.NormFloat64(), S: scaled.Vector{Mant: normal(rng, box)}, R: vectors(1)},
		{Alpha: rng.NormFloat64(), S: scaled.Vector{Mant: normal(rng, box)}},
	}}
}

// randomNetwork splits legs of the given dimensions into cores of the given sizes over shuffled
// legs, and into links of other sizes.
func randomNetwork(rng *rand.Rand, dims, coreSizes []int, form int) *btn.Network {
	net := &btn.Network{Dims: dims, Scale: scaled.One}
	legs := rng.Perm(len(dims))
	for c, size := range coreSizes {
		mine := legs[:size]
		legs = legs[size:]
		net.Cores = append(net.Cores, btn.Core{Legs: mine, T: randomTensor(rng, pick(dims, mine), form+c)})
	}
	legs = rng.Perm(len(dims))
	for len(legs) > 0 {
		size := min(len(legs), 1+rng.IntN(3))
		mine := legs[:size]
		legs = legs[size:]
		net.Links = append(net.Links, btn.Link{Legs: mine, T: randomTensor(rng, pick(dims, mine), 0)})
	}
	return net
}
