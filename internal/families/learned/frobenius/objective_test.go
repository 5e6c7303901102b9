package frobenius

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/families/closed"
	exactparts "github.com/basetensor/basetensor/internal/families/exact"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// exactTol is for numbers that differ from brute force by the rounding of a few hundred operations.
const exactTol = 1e-12

// randomLevels maps the values of every leg to d levels at random.
func randomLevels(rng *rand.Rand, dims []int, d int) countspace.Levels {
	l := countspace.Levels{D: d}
	for _, n := range dims {
		of := make([]uint8, n)
		for x := range of {
			of[x] = uint8(rng.IntN(d))
		}
		l.Of = append(l.Of, of)
	}
	return l
}

// dictionary draws one part of every class with a closed form.
func dictionary(rng *rand.Rand, dims []int, levels countspace.Levels) []btn.Part {
	frame := &btn.Frame{Levels: levels}
	size := 1
	for _, s := range levels.Shape() {
		size *= s
	}
	symmetric := func() countspace.Poly {
		return countspace.Poly{Shape: levels.Shape(), Coef: scaled.Vector{Mant: normal(rng, size)}}
	}
	vectors := func(rank int) [][]float64 {
		r := make([][]float64, len(dims))
		for leg, d := range dims {
			r[leg] = normal(rng, rank*d)
		}
		return r
	}
	holed := vectors(1)
	holed[0] = nil
	return []btn.Part{
		&closed.RankOne{Frame: frame, R: vectors(1)},
		&closed.RankOne{Frame: frame, R: holed},
		&closed.CP{Frame: frame, Tensor: &tensor.CP{Shape: dims, Weights: normal(rng, 3), Vectors: vectors(3)}},
		&closed.SymmetryRankOne{Frame: frame, S: symmetric()},
		&closed.SymmetryRankOne{Frame: frame, S: symmetric(), R: vectors(1)},
		&closed.SymmetryRankOne{Frame: frame, S: symmetric(), R: holed},
	}
}

// randomRotation is a product of a random reflection per leg: orthogonal, any dimension.
func randomRotation(rng *rand.Rand, d int) []float64 {
	u := normal(rng, d)
	norm := inner(u, u)
	o := make([]float64, d*d)
	for x := range d {
		for y := range d {
			o[x*d+y] = -2 * u[x] * u[y] / norm
			if x == y {
				o[x*d+y]++
			}
		}
	}
	return o
}

// cases are small networks of all forms, dimensions 1 to 4, with signs.
func cases(t *testing.T, f func(t *testing.T, rng *rand.Rand, net *btn.Network)) {
	for i, c := range []struct{ dims, cores []int }{
		{[]int{2, 2, 2, 2}, []int{2, 2}},
		{[]int{2, 3, 2, 4, 3}, []int{2, 3}},
		{[]int{3, 3, 3, 3}, []int{1, 3}},
		{[]int{2, 1, 2, 3, 2, 2}, []int{3, 2, 1}},
		{[]int{2, 2, 2, 2, 2, 2, 2}, []int{4, 3}},
	} {
		for form := range 4 {
			t.Run(fmt.Sprintf("%v/form=%d", c.dims, form), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(i), uint64(form)))
				f(t, rng, randomNetwork(rng, c.dims, c.cores, form))
			})
		}
	}
}

func TestObjectiveAgainstMaterialisedTensors(t *testing.T) {
	cases(t, func(t *testing.T, rng *rand.Rand, net *btn.Network) {
		b := materialise(net)
		identity, err := countspace.Identity(net.Dims)
		all := []countspace.Levels{countspace.TwoLevels(net.Dims), randomLevels(rng, net.Dims, 3)}
		if err == nil {
			all = append(all, identity)
		}
		rotations := make([][]float64, len(net.Dims))
		for leg, d := range net.Dims {
			if leg%2 == 0 {
				rotations[leg] = randomRotation(rng, d)
			}
		}
		for _, levels := range all {
			for _, rot := range [][][]float64{nil, rotations} {
				checkObjective(t, rng, net, b, levels, rot)
			}
		}
	})
}

func checkObjective(
	t *testing.T, rng *rand.Rand, net *btn.Network, b []float64, levels countspace.Levels, rot [][]float64,
) {
	t.Helper()
	o, err := newObjective(net, levels, rot)
	if err != nil {
		t.Fatal(err)
	}
	norm := inner(b, b)
	near(t, "‖B‖²", o.norm2.Float64(), norm, exactTol, norm)
	dict := dictionary(rng, net.Dims, levels)
	g, rhs, err := o.system(context.Background(), dict)
	if err != nil {
		t.Fatal(err)
	}
	var full [][]float64
	for _, part := range dict {
		q := materialisePart(net.Dims, part)
		for leg, o := range rot {
			q = rotate(q, net.Dims, leg, o)
		}
		full = append(full, q)
	}
	for i, q := range full {
		near(t, fmt.Sprintf("b[%d]", i), rhs[i].Float64(), inner(b, q), exactTol, math.Sqrt(norm*inner(q, q)))
		for j, p := range full {
			near(t, fmt.Sprintf("G[%d][%d]", i, j), g[i][j].Float64(), inner(q, p), exactTol,
				math.Sqrt(inner(p, p)*inner(q, q)))
		}
	}
	fit, err := o.weights(context.Background(), dict, false)
	if err != nil {
		t.Fatal(err)
	}
	sum := make([]float64, len(b))
	for i, q := range full {
		for x := range q {
			sum[x] += fit.Alpha[i].Float64() * q[x]
		}
	}
	near(t, "ρ", fit.Residual, distanceSq(b, sum)/norm, 1e-10, 1)
	if want := distanceSq(b, sum) / norm; math.Abs(fit.Residual-want) > fit.Rounding {
		t.Errorf("ρ is off by %g, its rounding bound says %g", math.Abs(fit.Residual-want), fit.Rounding)
	}
	for i, q := range full { // normal equations: the error is orthogonal to every component
		left := inner(b, q) - inner(sum, q)
		near(t, fmt.Sprintf("⟨B−B̃, Q%d⟩", i), left, 0, 1e-8, math.Sqrt(norm*inner(q, q)))
	}
}

func TestObjectiveOfTheBaseTensorItself(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	net := randomNetwork(rng, []int{2, 3, 2, 2}, []int{2, 2}, 0)
	levels := countspace.TwoLevels(net.Dims)
	o, err := newObjective(net, levels, nil)
	if err != nil {
		t.Fatal(err)
	}
	dict := append(dictionary(rng, net.Dims, levels)[:1], &exactparts.Elimination{})
	fit, err := o.weights(context.Background(), dict, false)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "ρ", fit.Residual, 0, 1e-14, 1)
	near(t, "α of the rank-one component", fit.Alpha[0].Float64(), 0, 1e-12, 1)
	near(t, "α of B", fit.Alpha[1].Float64(), 1, 1e-12, 1)
}

// TestRangeOfTenThousandLegs: ⟨S∘R, S∘R⟩ with S = 1 is Π‖v‖², far outside float64, and both ways of
// writing a rank-one component agree on b.
func TestRangeOfTenThousandLegs(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 2000
	}
	net := pairwise(n)
	rng := rand.New(rand.NewPCG(1, 1))
	o, err := newObjective(net, countspace.TwoLevels(net.Dims), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := make([][]float64, n)
	wantLog, one := 0.0, countspace.New([]int{n + 1})
	for i := range one.Coef.Mant {
		one.Set([]int{i}, scaled.One)
	}
	for leg := range r {
		r[leg] = []float64{3 + rng.Float64(), 1 + rng.Float64()}
		wantLog += math.Log(inner(r[leg], r[leg]))
	}
	symmetric := &closed.SymmetryRankOne{S: one, R: r}
	rankOne := &closed.RankOne{R: r}
	for _, pair := range [][2]btn.Part{{symmetric, symmetric}, {symmetric, rankOne}, {rankOne, rankOne}} {
		g, err := o.gram(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}
		near(t, "ln G", g.LogAbs(), wantLog, 1e-11, math.Abs(wantLog))
	}
	b, err := o.withBase(symmetric)
	if err != nil {
		t.Fatal(err)
	}
	c, err := o.withBase(rankOne)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "ln b", b.LogAbs(), c.LogAbs(), 1e-11, math.Abs(c.LogAbs()))
}

func TestPartsThatDoNotFit(t *testing.T) {
	net := pairwise(4)
	levels := countspace.TwoLevels(net.Dims)
	o, err := newObjective(net, levels, nil)
	if err != nil {
		t.Fatal(err)
	}
	poly := countspace.New([]int{5})
	bad := countspace.New([]int{5})
	bad.Coef.Mant[2] = math.NaN()
	for _, c := range []struct {
		q    btn.Part
		want string
	}{
		{&exactparts.Slices{}, `class "slices" has no scalar products`},
		{&closed.RankOne{R: make([][]float64, 3)}, "R has vectors for 3 legs, the network has 4"},
		{&closed.RankOne{R: [][]float64{{1}, nil, nil, nil}}, "R has 1 entries on leg 0 of dimension 2"},
		{&closed.RankOne{R: [][]float64{nil, {1, math.Inf(1)}, nil, nil}}, "not a finite number: R on leg 1"},
		{&closed.SymmetryRankOne{S: countspace.New([]int{4})}, "S has shape [4], the levels need [5]"},
		{&closed.SymmetryRankOne{S: countspace.New([]int{5, 5})}, "S has 2 variables, the levels have 1"},
		{&closed.SymmetryRankOne{S: countspace.Poly{
			Shape: []int{5},
			Coef:  scaled.Vector{Mant: poly.Coef.Mant[:3]},
		}}, "S has 3 coefficients"},
		{&closed.SymmetryRankOne{S: bad, R: make([][]float64, 4)}, "coefficient 2 of S"},
		{&closed.CP{}, "a CP component needs vectors on all 4 legs"},
		{&closed.CP{Tensor: &tensor.CP{
			Weights: []float64{1},
			Vectors: [][]float64{{1, 2}, {1}, {1, 1}, {1, 1}},
		}}, "1 vector entries on leg 1, rank 1 and dimension 2"},
	} {
		if _, err := o.withBase(c.q); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestNetworksThatDoNotFit(t *testing.T) {
	table := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 4}}
	for _, c := range []struct {
		net  *btn.Network
		want string
	}{
		{&btn.Network{
			Dims:  []int{2, 2, 2},
			Cores: []btn.Core{{Legs: []int{0, 1}, T: table}},
		}, "leg 2 is in no core"},
		{&btn.Network{
			Dims:  []int{2, 2},
			Cores: []btn.Core{{Legs: []int{0, 0}, T: table}},
		}, "leg 0 is in core 0 and in core 0"},
		{&btn.Network{
			Dims:  []int{2, 2},
			Cores: []btn.Core{{Legs: []int{0, 5}, T: table}},
		}, "core 0 names leg 5, there are 2"},
		{&btn.Network{
			Dims:  []int{2, 3},
			Cores: []btn.Core{{Legs: []int{0, 1}, T: table}},
		}, "core 0 has dimension 2 on leg 1, the leg has 3"},
		{&btn.Network{
			Dims:  []int{2},
			Cores: []btn.Core{{Legs: []int{0}, T: table}},
		}, "core 0 is a tensor of order 2 on 1 legs"},
		{&btn.Network{
			Dims:  []int{2, 2},
			Cores: []btn.Core{{Legs: []int{0, 1}, T: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1}}}},
		}, "core 0"},
		{&btn.Network{Dims: []int{2, 2}, Cores: []btn.Core{{Legs: []int{0, 1}}}}, "core 0"},
	} {
		if _, err := Learn(context.Background(), c.net, Options{Settings: query.Settings{}}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
		if _, err := NormSq(c.net); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("norm: got %v, want %q", err, c.want)
		}
	}
}
