package methods_test

import (
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// uniform is a network of n legs of dimension d with
// dense links of exactly widest legs, and r parts.
type uniform struct {
	net *btn.Network
	e   *btn.Estimate
	s   shape
}

func newUniform(n, widest, d, r int, class btn.Class) uniform {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(d)))
	dims := mixedDims(rng, n, d, d)
	levels, _ := countspace.Identity(dims)
	u := uniform{
		net: &btn.Network{Dims: dims, Scale: scaled.One},
		e:   &btn.Estimate{},
		s:   shape{Legs: n, Links: n / widest, Widest: widest, Dim: d, Rank: r},
	}
	for first := 0; first < n; first += widest {
		legs := make([]int, widest)
		for k := range legs {
			legs[k] = first + k
		}
		u.net.Links = append(u.net.Links,
			btn.Link{Legs: legs, T: modeltest.Tensor(rng, modeltest.Dense, dims[:widest],
				modeltest.SmallOptions{})})
	}
	size, _ := levels.Size()
	frame := &btn.Frame{Levels: levels}
	for range r {
		switch class {
		case btn.ClassSymmetric, btn.ClassSymmetryRankOne:
			q := &closed.SymmetryRankOne{Frame: frame}
			if class == btn.ClassSymmetryRankOne {
				q.R = make([][]float64, n)
			}
			q.S = countspace.Poly{Shape: levels.Shape(),
				Coef: scaled.Vector{Mant: make([]float64, size)}}
			for c := range size {
				q.S.Coef.Mant[c] = 1 + rng.Float64()
			}
			add(u.e, 1, q)
		case btn.ClassCP:
			cp := modeltest.Tensor(rng, modeltest.CP, dims, modeltest.SmallOptions{}).(*tensor.CP)
			cp.Weights = cp.Weights[:1]
			for l, v := range cp.Vectors {
				if v == nil {
					cp.Vectors[l] = []float64{1, 2, 3, 4, 5, 6, 7}[:d]
				} else {
					cp.Vectors[l] = v[:d]
				}
			}
			add(u.e, 1, &closed.CP{Frame: frame, Tensor: cp})
		default:
			add(u.e, 1, &closed.RankOne{Frame: frame})
		}
	}
	return u
}

// flops is what all parts take, counted.
func (u uniform) flops(t *testing.T) float64 {
	t.Helper()
	total := 0.0
	for _, part := range u.e.Parts {
		v, err := plain(u.net, part)
		if err != nil {
			t.Fatal(err)
		}
		total += v.Flops
	}
	if total == 0 {
		t.Fatal("no operation was counted")
	}
	return total
}

// grows checks that counted operations rise from case to case no faster than
// the bound (slack for lower-order terms), and stay below constant times it.
func grows(t *testing.T, cases []uniform, bound func(shape) float64, constant float64) {
	t.Helper()
	const slack = 1.1
	var flops, bounds float64
	for i, u := range cases {
		f, b := u.flops(t), bound(u.s)
		if f > constant*b {
			t.Errorf("%+v: %.4g operations, the bound is %.4g times a constant of %v",
				u.s, f, b, constant)
		}
		if i > 0 && f/flops > slack*b/bounds {
			t.Errorf("%+v: operations grew by %.3f, the bound by %.3f", u.s, f/flops, b/bounds)
		}
		flops, bounds = f, b
	}
}

func TestLemma2Growth(t *testing.T) {
	const constant = 4 // a multiplication and an addition, and partial sums Σ d^m ≤ 2·d^n_max
	grow := func(cases ...uniform) {
		t.Helper()
		grows(t, cases, shape.paperCostCP, constant)
	}
	c := btn.ClassCP
	grow(newUniform(30, 3, 2, 1, c), newUniform(60, 3, 2, 1, c), newUniform(480, 3, 2, 1, c)) // k
	// n_max
	grow(newUniform(12, 4, 2, 1, c), newUniform(12, 6, 2, 1, c), newUniform(12, 12, 2, 1, c))
	grow(newUniform(30, 3, 2, 1, c), newUniform(30, 3, 3, 1, c), newUniform(30, 3, 5, 1, c)) // d
	grow(newUniform(30, 3, 2, 1, c), newUniform(30, 3, 2, 2, c), newUniform(30, 3, 2, 8, c)) // r
}

func TestLemma3Growth(t *testing.T) {
	grow := func(cases ...uniform) {
		t.Helper()
		constant := 4.0 // a multiplication and an addition each, in the links and in the products
		for a := 2; a < cases[0].s.Dim; a++ {
			// a box holds up to (D−1)! times the feasible counts, which c_2 counts
			constant *= float64(a)
		}
		grows(t, cases, shape.paperCostSymmetryCP, constant)
	}
	c := btn.ClassSymmetric
	grow(newUniform(60, 3, 2, 1, c), newUniform(120, 3, 2, 1, c), newUniform(480, 3, 2, 1, c),
		newUniform(1920, 3, 2, 1, c))
	grow(newUniform(24, 3, 3, 1, c), newUniform(48, 3, 3, 1, c), newUniform(96, 3, 3, 1, c))
	grow(newUniform(8, 2, 4, 1, c), newUniform(16, 2, 4, 1, c), newUniform(24, 2, 4, 1, c))
}

func TestLemma4Growth(t *testing.T) {
	const constant = 4 // as for Lemma 3
	c := btn.ClassSymmetryRankOne
	grows(t, []uniform{newUniform(120, 3, 2, 1, c), newUniform(120, 3, 2, 2, c),
		newUniform(120, 3, 2, 8, c), newUniform(480, 3, 2, 8, c)},
		shape.paperCostSymmetryCP, constant)
}

// TestFlopsAreNearWhatIsCounted:
// grouping into tasks needs no more than the right magnitude, and the right growth.
func TestFlopsAreNearWhatIsCounted(t *testing.T) {
	const factor = 4
	near := func(what string, net *btn.Network, e *btn.Estimate) {
		t.Helper()
		for i, part := range e.Parts {
			v, err := plain(net, part)
			if err != nil {
				t.Fatal(err)
			}
			if cost := contraction.Flops(net, e, i); cost > factor*v.Flops || v.Flops > factor*cost {
				t.Errorf("%s, class %s: %.4g flops predicted, %.4g counted",
					what, part.Class(), cost, v.Flops)
			}
		}
	}
	for _, class := range []btn.Class{btn.ClassCP, btn.ClassSymmetric, btn.ClassSymmetryRankOne,
		btn.ClassRankOne} {
		for _, u := range []uniform{newUniform(60, 3, 2, 1, class), newUniform(960, 2, 2, 1, class),
			newUniform(36, 3, 3, 1, class)} {
			near("dense links", u.net, u.e)
		}
	}
	for _, n := range []int{100, 1000} { // links in CP form, one of them wide
		rng := rand.New(rand.NewPCG(uint64(n), 9))
		u := newUniform(n, 1, 2, 1, btn.ClassSymmetryRankOne)
		legs := make([]int, n/2)
		for l := range legs {
			legs[l] = l
		}
		wide := modeltest.Tensor(rng, modeltest.CP, u.net.Dims[:n/2], modeltest.SmallOptions{})
		u.net.Links = append(u.net.Links[n/2:], btn.Link{Legs: legs, T: wide})
		near("wide CP link", u.net, u.e)
	}
	u := newUniform(30, 3, 2, 1, btn.ClassCP)
	if contraction.Flops(u.net, u.e, 1) != 0 || contraction.Flops(u.net, u.e, -1) != 0 {
		t.Error("a part that does not exist costs something")
	}
}

// TestFlopsOfJointMarginals: what a joint marginal takes beside Z does
// not depend on whether the signs of a closed form are judged as well.
func TestFlopsOfJointMarginals(t *testing.T) {
	const n = 5
	net := &btn.Network{Scale: scaled.One, Variables: []btn.Variable{}}
	core := &tensor.Symmetric{Values: scaled.FromFloats([]float64{1, -2, 3, 4, 5, 6})}
	for v := range n {
		net.Dims = append(net.Dims, 2)
		net.Links = append(net.Links, btn.Link{Legs: []int{v}, T: &tensor.CP{
			Shape: []int{2}, Weights: []float64{1, float64(v + 1)}, Vectors: [][]float64{nil},
		}})
		net.Variables = append(net.Variables, btn.Variable{Domain: 2, Link: v})
	}
	core.Shape, core.Levels = net.Dims, countspace.TwoLevels(net.Dims)
	net.Cores = []btn.Core{{Legs: []int{0, 1, 2, 3, 4}, T: core}}
	if err := net.Validate(); err != nil {
		t.Fatal(err)
	}
	flops := func(whole bool, joint ...int) float64 {
		part := &closed.SymmetryRankOne{
			Frame: &btn.Frame{Closed: whole, Levels: core.Levels},
			S:     countspace.Poly{Shape: core.Levels.Shape(), Coef: core.Values},
		}
		v, err := contraction.Part(t.Context(), problem.New(net, problem.Options{}), part,
			btn.Want{Joint: joint})
		if err != nil {
			t.Fatal(err)
		}
		return v.Flops
	}
	judged := flops(true, 1, 3) - flops(true)
	if beside := flops(false, 1, 3) - flops(false); beside <= 0 || judged != beside {
		t.Errorf("%g flops beside Z, %g where signs are judged", beside, judged)
	}
}
