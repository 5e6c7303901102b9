package tensor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// table fills a dense tensor from a function of the index.
func table(dims []int, f func(x []int) float64) *Dense {
	t := &Dense{Shape: dims}
	every(dims, func(x []int) { t.Data = append(t.Data, f(x)) })
	return t
}

// checkLowRank expects a decomposition of exactly the
// given rank that agrees entry by entry by brute force.
func checkLowRank(t *testing.T, what string, form Tensor, rank int) *CP {
	t.Helper()
	c, _, ok := LowRank(form, rank)
	if !ok {
		t.Errorf("%s over %v: no decomposition of rank %d", what, form.Dims(), rank)
		return nil
	}
	if err := Validate(c); err != nil || len(c.Weights) > rank ||
		!slices.Equal(c.Shape, form.Dims()) {
		t.Fatalf("%s: rank %d over %v, %v", what, len(c.Weights), c.Shape, err)
	}
	largest := 0.0
	every(form.Dims(), func(x []int) { largest = max(largest, math.Abs(naive(form, x))) })
	every(form.Dims(), func(x []int) {
		if got, want := naive(c, x), naive(form, x); math.Abs(got-want) > 2e-13*largest ||
			want == 0 && got != 0 {
			t.Fatalf("%s%v = %v, want %v", what, x, got, want)
		}
	})
	if rank > 1 {
		if less, _, ok := LowRank(form, len(c.Weights)-1); ok &&
			len(less.Weights) >= len(c.Weights) {
			t.Errorf("%s: asked for rank %d, got %d", what, len(c.Weights)-1, len(less.Weights))
		}
	}
	return c
}

func signs(r *rand.Rand, dims []int) [][]float64 {
	s := make([][]float64, len(dims))
	for i, d := range dims {
		for range d {
			s[i] = append(s[i], float64(1-2*r.IntN(2)))
		}
		if d > 1 {
			s[i][0], s[i][d-1] = 1, -1
		}
	}
	return s
}

func TestLowRankUsualShapes(t *testing.T) {
	for seed := range uint64(40) {
		r := seeded(t, seed)
		n := 2 + r.IntN(4)
		dims := make([]int, n)
		for i := range dims {
			dims[i] = 2 + r.IntN(3)
		}
		point := make([]int, n)
		for i, d := range dims {
			point[i] = r.IntN(d)
		}
		c, v := 0.1+r.Float64(), r.Float64()
		checkLowRank(t, "constant", table(dims, func([]int) float64 { return c }), 1)
		checkLowRank(t, "constant and point", table(dims, func(x []int) float64 {
			if slices.Equal(x, point) {
				return v
			}
			return c
		}), 2)
		// Nearly a constant, and yet not: above the tolerance.
		checkLowRank(t, "almost constant", table(dims, func(x []int) float64 {
			if slices.Equal(x, point) {
				return 1 + 3e-13
			}
			return 1
		}), 2)
		checkLowRank(t, "clause", table(dims, func(x []int) float64 {
			if slices.Equal(x, point) {
				return 0
			}
			return 1
		}), 2)
		checkLowRank(t, "slab", table(dims, func(x []int) float64 {
			if x[0] == point[0] && x[n-1] == point[n-1] {
				return v
			}
			return c
		}), 2)
		s := signs(r, dims)
		parity := func(x []int) float64 {
			p := 1.0
			for i := range x {
				p *= s[i][x[i]]
			}
			return p
		}
		checkLowRank(t, "parity",
			table(dims, func(x []int) float64 { return 0.5 + 0.5*parity(x) }), 2)
		checkLowRank(t, "soft parity",
			table(dims, func(x []int) float64 { return c + v*parity(x) }), 2)
		q := make([][]float64, n)
		for i, d := range dims {
			for range d {
				q[i] = append(q[i], r.Float64())
			}
			q[i][0] = 1
		}
		leak := r.Float64()
		checkLowRank(t, "noisy-or", table(append(slices.Clone(dims), 2), func(x []int) float64 {
			p := leak
			for i := range n {
				p *= q[i][x[i]]
			}
			if x[n] == 1 {
				return 1 - p
			}
			return p
		}), 2)
		d := 2 + r.IntN(3)
		same := slices.Repeat([]int{d}, n)
		checkLowRank(t, "equality", table(same, func(x []int) float64 {
			if slices.Min(x) == slices.Max(x) {
				return 1
			}
			return 0
		}), d)
		checkLowRank(t, "selector", table([]int{2, d, d, d}, func(x []int) float64 {
			if x[1] == x[2+x[0]] {
				return 1
			}
			return 0
		}), 2*d)
		checkLowRank(t, "zero", table(dims, func([]int) float64 { return 0 }), 1)
	}
}

func TestLowRankSmallOrders(t *testing.T) {
	checkLowRank(t, "number", &Dense{Data: []float64{-3}}, 1)
	checkLowRank(t, "zero number", &Dense{Data: []float64{0}}, 1)
	checkLowRank(t, "vector", &Dense{Shape: []int{3}, Data: []float64{1, 0, -2}}, 1)
	checkLowRank(t, "size-one domains",
		&Dense{Shape: []int{1, 1, 3, 1}, Data: []float64{1, 0, -2}}, 1)
	for seed := range uint64(20) {
		r := seeded(t, seed)
		rows, cols := 1+r.IntN(5), 1+r.IntN(5)
		checkLowRank(t, "matrix", randomDense(r, []int{rows, cols}), min(rows, cols))
	}
	if c, _, ok := LowRank(table([]int{2, 2},
		func(x []int) float64 { return float64(x[0] ^ x[1]) }), 1); ok {
		t.Errorf("exclusive or has rank %d", len(c.Weights))
	}
	if _, _, ok := LowRank(&Dense{Shape: []int{1}, Data: []float64{1}}, 0); ok {
		t.Error("rank 0 found")
	}
}

// Planted terms with generic vectors: simultaneous diagonalisation has to find them.
func TestLowRankPlanted(t *testing.T) {
	found := 0
	const tries = 60
	for seed := range uint64(tries) {
		r := seeded(t, seed)
		n := 3 + r.IntN(3)
		rank := 2 + r.IntN(3)
		c := &CP{Shape: make([]int, n), Vectors: make([][]float64, n)}
		for range rank {
			c.Weights = append(c.Weights, 0.5+r.Float64())
		}
		for leg := range n {
			c.Shape[leg] = 2 + r.IntN(3)
			if n == 3 {
				c.Shape[leg] = rank
			}
			for range rank * c.Shape[leg] {
				c.Vectors[leg] = append(c.Vectors[leg], 0.1+r.Float64())
			}
		}
		dense := table(c.Shape, func(x []int) float64 { return naive(c, x) })
		got, _, ok := LowRank(dense, rank)
		if !ok {
			t.Logf("rank %d over %v not found", rank, c.Shape)
			continue
		}
		found++
		if len(got.Weights) > rank {
			t.Fatalf("rank %d, planted %d", len(got.Weights), rank)
		}
		every(c.Shape, func(x []int) {
			if want := naive(c, x); math.Abs(naive(got, x)-want) > 1e-12*want {
				t.Fatalf("entry %v: %v, want %v", x, naive(got, x), want)
			}
		})
	}
	if found < tries*3/4 {
		t.Errorf("%d of %d planted decompositions found", found, tries)
	}
}

// A table of no low rank must not be returned as one; a wrong decomposition must never pass.
func TestLowRankRefuses(t *testing.T) {
	for seed := range uint64(30) {
		r := seeded(t, seed)
		dims := []int{3, 3, 3, 3}
		if c, _, ok := LowRank(randomDense(r, dims), 4); ok {
			t.Errorf("a random table has rank %d", len(c.Weights))
		}
		// A clause whose zero is really 1e-20, and parity off by 1e-11 in one entry.
		spoiled := table([]int{2, 2, 2, 2},
			func(x []int) float64 { return float64((x[0] + x[1] + x[2] + x[3]) % 2) })
		spoiled.Data[r.IntN(16)] += 1e-11
		if c, _, ok := LowRank(spoiled, 2); ok {
			t.Errorf("spoiled parity has rank %d", len(c.Weights))
		}
		tiny := table([]int{2, 2, 2}, func(x []int) float64 { return 1 })
		tiny.Data[r.IntN(8)] = 1e-20
		if c, _, ok := LowRank(tiny, 2); ok {
			every(tiny.Shape, func(x []int) {
				if got, want := naive(c, x), naive(tiny, x); math.Abs(got-want) > 1e-8*want {
					t.Errorf("entry %v: %v, want %v", x, got, want)
				}
			})
		}
	}
	// At most one of five: of border rank 2, but of rank 5. The difference quotient must not pass.
	if c, _, ok := LowRank(table([]int{2, 2, 2, 2, 2}, func(x []int) float64 {
		if x[0]+x[1]+x[2]+x[3]+x[4] == 1 {
			return 1
		}
		return 0
	}), 4); ok {
		t.Errorf("exactly one of five has rank %d", len(c.Weights))
	}
}

func symmetricOf(n int, f func(c int) float64) *Symmetric {
	dims := slices.Repeat([]int{2}, n)
	levels, _ := countspace.Identity(dims)
	s := &Symmetric{Shape: dims, Levels: levels}
	for c := range n + 1 {
		s.Values.Mant = append(s.Values.Mant, f(c))
	}
	return s
}

func TestLowRankSymmetric(t *testing.T) {
	when := func(ok bool) float64 {
		if ok {
			return 1
		}
		return 0
	}
	for _, n := range []int{1, 2, 3, 6, 9} {
		for _, c := range []struct {
			what string
			rank int
			f    func(c int) float64
		}{
			{"constant", 1, func(int) float64 { return 0.3 }},
			{"sign", 1, func(c int) float64 { return float64(1 - c%2*2) }},
			{"parity", 2, func(c int) float64 { return when(c%2 == 0) }},
			{"all equal", 2, func(c int) float64 { return when(c == 0 || c == n) }},
			{"none", 1, func(c int) float64 { return when(c == 0) }},
			{"all", 1, func(c int) float64 { return when(c == n) }},
			{"at least one", 2, func(c int) float64 { return when(c > 0) }},
			{"geometric", 2, func(c int) float64 {
				return 0.3*math.Pow(0.7, float64(c)) + math.Pow(-1.5, float64(c))
			}},
			{"three nodes", 3, func(c int) float64 { return when(c == 0) + when(c == n) + 0.25 }},
		} {
			checkLowRank(t, c.what, symmetricOf(n, c.f), c.rank)
		}
	}
	if _, _, ok := LowRank(symmetricOf(6, func(c int) float64 { return when(c == 1) }), 3); ok {
		t.Error("exactly one of six has rank at most 3")
	}
}

// 1,000 variables: the decomposition is compared in count space, over tables of 2^1000 entries.
func TestLowRankSymmetricLarge(t *testing.T) {
	n := 1000
	for what, f := range map[string]func(c int) float64{
		"parity":  func(c int) float64 { return float64(1 - c%2) },
		"clause":  func(c int) float64 { return min(float64(c), 1) },
		"two":     func(c int) float64 { return 0.25 + 0.75*math.Pow(0.9, float64(c)) },
		"quarter": func(c int) float64 { return 0.25 },
	} {
		s := symmetricOf(n, f)
		c, _, ok := LowRank(s, 2)
		if !ok {
			t.Errorf("%s: not found", what)
			continue
		}
		x := make([]int, n)
		for count := range n + 1 {
			if got, want := At(c, x).Float64(), f(count); math.Abs(got-want) > 1e-12 {
				t.Fatalf("%s at %d: %v, want %v", what, count, got, want)
			}
			if count < n {
				x[count] = 1
			}
		}
	}
	// Values 2^(40c): far outside float64, still one term.
	s := symmetricOf(n/10, func(int) float64 { return 1 })
	for c := range s.Values.Mant {
		s.Values.Exp = append(s.Values.Exp, int64(40*c))
	}
	c, _, ok := LowRank(s, 1)
	if !ok {
		t.Fatal("geometric values: not found")
	}
	if got := At(c, slices.Repeat([]int{1}, n/10)); got != scaled.Make(1, int64(40*n/10)) {
		t.Errorf("last value 2^%v", got.Exp)
	}
}

// Mixed domains, levels of two kinds, vectors on the legs.
func TestLowRankSymmetryCP(t *testing.T) {
	found := 0
	for seed := range uint64(60) {
		r := seeded(t, seed)
		dims := randomDims(r, 1+r.IntN(5))
		form := randomSymmetryCP(r, dims)
		form.Levels = countspace.Levels{D: 2}
		for _, d := range dims {
			of := make([]uint8, d)
			for x := range of {
				of[x] = uint8(r.IntN(2))
			}
			form.Levels.Of = append(form.Levels.Of, of)
		}
		for i := range form.Terms {
			// Two nodes: any two values of the box follow such a recurrence.
			size := form.Levels.Shape()[0]
			a, b := r.NormFloat64(), r.NormFloat64()
			form.Terms[i].S = scaled.Vector{}
			for c := range size {
				form.Terms[i].S.Mant = append(form.Terms[i].S.Mant, a+b*math.Pow(-1, float64(c)))
			}
		}
		c, _, ok := LowRank(form, 2*len(form.Terms))
		if !ok {
			continue
		}
		found++
		every(dims, func(x []int) {
			if got, want := naive(c, x), naive(form,
				x); math.Abs(got-want) > 1e-12*(10+math.Abs(want)) {
				t.Fatalf("seed %d, entry %v: %v, want %v", seed, x, got, want)
			}
		})
	}
	if found < 50 {
		t.Errorf("%d of 60 found", found)
	}
}

func TestLowRankCP(t *testing.T) {
	c := &CP{Shape: []int{2, 3}, Weights: []float64{1, 0, 2},
		Vectors: [][]float64{{1, 2, 3, 4, 5, 6}, nil}}
	checkLowRank(t, "zero weight", c, 2)
	zero := &CP{Shape: []int{2, 2}, Weights: []float64{0, 0},
		Vectors: [][]float64{nil, {1, 1, 1, 1}}}
	checkLowRank(t, "zero tensor", zero, 1)
	same := &CP{Shape: []int{2}, Weights: []float64{1, 1}, Vectors: [][]float64{nil}}
	if got := checkLowRank(t, "vector as two terms", same, 1); got != nil && len(got.Weights) != 1 {
		t.Errorf("rank %d", len(got.Weights))
	}
}
