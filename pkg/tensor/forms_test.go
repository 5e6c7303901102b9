package tensor

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

func TestAtAndToDense(t *testing.T) {
	for seed := range uint64(60) {
		r := seeded(t, seed)
		dims := randomDims(r, r.IntN(6))
		for _, form := range randomForms(r, dims) {
			if err := Validate(form); err != nil {
				t.Fatalf("%T: %v", form, err)
			}
			dense, err := ToDense(form, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			every(dims, func(x []int) {
				want := naive(form, x)
				for _, got := range []float64{At(form, x).Float64(), naive(dense, x)} {
					if math.Abs(got-want) > tolerance*(1+math.Abs(want)) {
						t.Fatalf("%T%v = %v, want %v", form, x, got, want)
					}
				}
			})
		}
	}
}

// Vectors of 1e-200 and 1e200 on alternate legs:
// every partial product leaves float64, the entries do not.
func TestToDenseRange(t *testing.T) {
	n := 12
	c := &CP{Weights: []float64{3}}
	s := SymmetryRankOne{Alpha: 3, S: scaled.Vector{Mant: []float64{1}}}
	for m := range n {
		f := 1e-200
		if m >= n/2 {
			f = 1e200
		}
		c.Shape = append(c.Shape, 2)
		c.Vectors = append(c.Vectors, []float64{f, 2 * f})
		s.R = append(s.R, []float64{f, 2 * f})
	}
	of := []uint8{0, 0}
	sym := &SymmetryCP{
		Shape:  c.Shape,
		Levels: countspace.Levels{D: 1, Of: slices.Repeat([][]uint8{of}, n)},
		Terms:  []SymmetryRankOne{s},
	}
	for _, form := range []Tensor{c, sym} {
		dense, err := ToDense(form, 1<<n)
		if err != nil {
			t.Fatal(err)
		}
		every(c.Shape, func(x []int) {
			want := 3.0
			for _, v := range x {
				want *= float64(1 + v)
			}
			if got := naive(dense, x); math.Abs(got-want) > 1e-11*want {
				t.Fatalf("%T%v = %v, want %v", form, x, got, want)
			}
		})
	}
	if _, err := ToDense(c, 1<<n-1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
	c.Weights[0] = 1e308
	if _, err := ToDense(c, 1<<n); !errors.Is(err, ErrNotFinite) {
		t.Errorf("overflow: %v", err)
	}
}

// An entry below float64 is no 0: it is refused, in every form. A true 0 stays 0.
func TestToDenseLosesNothing(t *testing.T) {
	two := countspace.TwoLevels([]int{2})
	tiny := scaled.Vector{Mant: []float64{1, 0}, Exp: []int64{-1100, 0}}
	for _, form := range []Tensor{
		&CP{Shape: []int{2}, Weights: []float64{1e-200}, Vectors: [][]float64{{1, 1e-200}}},
		&Symmetric{Shape: []int{2}, Levels: two, Values: tiny},
		&SymmetryCP{Shape: []int{2}, Levels: two, Terms: []SymmetryRankOne{{Alpha: 1, S: tiny}}},
	} {
		if _, err := ToDense(form, 2); !errors.Is(err, ErrNotFinite) {
			t.Errorf("%T: %v", form, err)
		}
		if c, _, ok := LowRank(form, 2); ok {
			if got := At(c, []int{0}); got.IsZero() {
				t.Errorf("%T of low rank: entry 0 is 0", form)
			}
		}
	}
	zero := &Symmetric{Shape: []int{2}, Levels: two,
		Values: scaled.Vector{Mant: []float64{1, 0}, Exp: []int64{0, -5000}}}
	if d, err := ToDense(zero, 2); err != nil || d.Data[1] != 0 {
		t.Errorf("a zero with an exponent: %v, %v", d, err)
	}
}

func TestInnerAndNormSq(t *testing.T) {
	for seed := range uint64(60) {
		r := seeded(t, seed)
		dims := randomDims(r, r.IntN(6))
		forms := append(randomForms(r, dims), randomForms(r, dims)...)
		for _, a := range forms {
			for _, b := range forms {
				want, scale := 0.0, 0.0
				every(dims, func(x []int) {
					p := naive(a, x) * naive(b, x)
					want += p
					scale += math.Abs(p)
				})
				got, err := inner(a, b)
				if err != nil {
					t.Fatal(err)
				}
				if math.Abs(got.Float64()-want) > tolerance*(10+100*scale) {
					t.Fatalf("⟨%T, %T⟩ = %v, want %v", a, b, got.Float64(), want)
				}
			}
			norm, err := NormSq(a)
			if err != nil {
				t.Fatal(err)
			}
			same, _ := inner(a, a)
			if norm.Sign() < 0 ||
				math.Abs(norm.Float64()-same.Float64()) > tolerance*(1+norm.Float64()) {
				t.Fatalf("‖%T‖² = %v", a, norm.Float64())
			}
		}
	}
	if _, err := inner(&Dense{Shape: []int{2}, Data: []float64{1, 2}}, &CP{}); !errors.Is(err,
		ErrShape) {
		t.Errorf("different shapes: %v", err)
	}
}

func TestNormSqRange(t *testing.T) {
	for _, f := range []float64{1e-300, 1, 1e300} {
		n, err := NormSq(&Dense{Shape: []int{3}, Data: []float64{3 * f, 4 * f, 0}})
		if want := math.Log(25) + 2*math.Log(f); err != nil ||
			math.Abs(n.LogAbs()-want) > 1e-12*math.Abs(want) {
			t.Errorf("ln ‖·‖² = %v, want %v (%v)", n.LogAbs(), want, err)
		}
	}
	for _, f := range [][2]float64{{1e-250, 1e-110}, {1e-110, 1e-250}, {1e110, 1e250}} {
		a, b := &Dense{Shape: []int{1}, Data: f[:1]}, &Dense{Shape: []int{1}, Data: f[1:]}
		want := math.Log(f[0]) + math.Log(f[1])
		if p, err := inner(a, b); err != nil || math.Abs(p.LogAbs()-want) > 1e-9 {
			t.Errorf("%g·%g = exp(%v), %v", f[0], f[1], p.LogAbs(), err)
		}
	}
	// 5,000 legs: ‖S‖² = Σ_c C(n, c) 4^c = 5^n.
	n := 5000
	dims := slices.Repeat([]int{2}, n)
	levels, _ := countspace.Identity(dims)
	s := &Symmetric{Shape: dims, Levels: levels}
	for c := range int64(n + 1) {
		s.Values.Mant, s.Values.Exp = append(s.Values.Mant, 1), append(s.Values.Exp, c)
	}
	norm, err := NormSq(s)
	if want := float64(n) * math.Log(5); err != nil || math.Abs(norm.LogAbs()-want) > 1e-9*want {
		t.Errorf("ln ‖S‖² = %v, want %v (%v)", norm.LogAbs(), want, err)
	}
}

func TestPermute(t *testing.T) {
	for seed := range uint64(60) {
		r := seeded(t, seed)
		dims := randomDims(r, 1+r.IntN(5))
		table := randomDense(r, dims)
		order := r.Perm(len(dims))
		moved, err := table.permute(order)
		if err != nil {
			t.Fatal(err)
		}
		every(dims, func(x []int) {
			y := make([]int, len(x))
			for i, m := range order {
				y[i] = x[m]
			}
			if naive(moved, y) != naive(table, x) {
				t.Fatalf("Permute %v: entry %v", order, x)
			}
		})
	}
	for _, order := range [][]int{{0}, {0, 0}, {0, 2}, {0, 1, 2}, {-1, 0}} {
		if _, err := (&Dense{Shape: []int{2, 2},
			Data: make([]float64, 4)}).permute(order); !errors.Is(err, ErrShape) {
			t.Errorf("Permute %v: %v", order, err)
		}
	}
}

func TestSize(t *testing.T) {
	for _, c := range []struct {
		dims []int
		want int
		err  error
	}{
		{nil, 1, nil},
		{[]int{2, 3, 4}, 24, nil},
		{[]int{1 << 31, 1 << 31}, 1 << 62, nil},
		{[]int{1 << 31, 1 << 32}, 0, ErrTooLarge},
		{[]int{1 << 62, 4}, 0, ErrTooLarge},
		{[]int{3, 0}, 0, ErrShape},
		{[]int{-2, -2}, 0, ErrShape},
		{slices.Repeat([]int{2}, 1000), 0, ErrTooLarge},
	} {
		if got, err := Size(c.dims); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("Size(%v) = %d, %v", c.dims, got, err)
		}
	}
}

func TestValidateErrors(t *testing.T) {
	levels := countspace.TwoLevels([]int{2, 2})
	nan := math.NaN()
	sym := func(change func(*SymmetryCP)) *SymmetryCP {
		s := &SymmetryCP{Shape: []int{2, 2}, Levels: levels, Terms: []SymmetryRankOne{{
			Alpha: 1, S: scaled.Vector{Mant: []float64{1, 2, 3}}, R: [][]float64{{1, 2}, nil}}}}
		change(s)
		return s
	}
	for i, c := range []struct {
		t    Tensor
		want error
		says string
	}{
		{nil, ErrShape, "nil tensor"},
		{(*Dense)(nil), ErrShape, "nil dense"},
		{(*CP)(nil), ErrShape, "nil CP"},
		{(*Symmetric)(nil), ErrShape, "nil symmetric"},
		{(*SymmetryCP)(nil), ErrShape, "nil symmetry-CP"},
		{&Dense{Shape: []int{2, 0}}, ErrShape, "mode 1 has dimension 0"},
		{&Dense{Shape: []int{2, 2}, Data: make([]float64, 3)}, ErrShape,
			"3 entries, its shape needs 4"},
		{&Dense{Shape: slices.Repeat([]int{2}, 70)}, ErrTooLarge, "70 modes"},
		{&Dense{Shape: []int{2}, Data: []float64{1, nan}}, ErrNotFinite, "entry 1 is NaN"},
		{&CP{Shape: []int{2}, Weights: []float64{1}}, ErrShape, "0 modes, the tensor has 1"},
		{&CP{Shape: []int{2}, Weights: []float64{1}, Vectors: [][]float64{nil}}, ErrShape,
			"mode 0 has identity vectors"},
		{&CP{Shape: []int{2}, Weights: []float64{1}, Vectors: [][]float64{{1, 2, 3}}}, ErrShape,
			"3 vector entries"},
		{&CP{Shape: []int{2}, Weights: []float64{nan}, Vectors: [][]float64{{1, 2}}}, ErrNotFinite,
			"weight of term 0"},
		{&CP{
			Shape:   []int{2},
			Weights: []float64{1},
			Vectors: [][]float64{{1, math.Inf(1)}},
		}, ErrNotFinite, "mode 0, vector entry 1"},
		{&Symmetric{
			Shape:  []int{2, 2},
			Levels: levels,
			Values: scaled.Vector{Mant: []float64{1}},
		}, ErrShape, "1 values, the levels have 3"},
		{&Symmetric{Shape: []int{2, 3}, Levels: levels,
			Values: scaled.Vector{Mant: []float64{1, 1, 1}}}, ErrShape, "leg 1"},
		{&Symmetric{Shape: []int{2, 2}, Values: scaled.Vector{Mant: []float64{1}}}, ErrShape,
			"0 levels"},
		{sym(func(s *SymmetryCP) { s.Terms[0].Alpha = nan }), ErrNotFinite, "term 0 has weight"},
		{sym(func(s *SymmetryCP) { s.Terms[0].R = s.Terms[0].R[:1] }), ErrShape,
			"vectors for 1 modes"},
		{sym(func(s *SymmetryCP) { s.Terms[0].R[0] = []float64{1} }), ErrShape,
			"mode 0: vector of 1"},
		{sym(func(s *SymmetryCP) { s.Terms[0].R[0][1] = nan }), ErrNotFinite,
			"term 0, mode 0, entry 1"},
		{sym(func(s *SymmetryCP) { s.Terms[0].S.Mant[2] = nan }), ErrNotFinite, "value 2"},
		{sym(func(s *SymmetryCP) { s.Terms[0].S.Exp = []int64{1} }), ErrShape,
			"3 mantissas with 1 exponents"},
		{sym(func(s *SymmetryCP) { s.Terms[0].S.Exp = []int64{0, 1 << 60, 0} }), ErrNotFinite,
			"value 1 has exponent"},
		{sym(func(*SymmetryCP) {}), nil, ""},
	} {
		err := Validate(c.t)
		if !errors.Is(err, c.want) || c.want != nil && !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("case %d: %v, want %v with %q", i, err, c.want, c.says)
		}
	}
}

// TestEntriesOfTermsThatCancel: (8·3e14 + 1e-15) − 8·3e14 is 1e-15.
func TestEntriesOfTermsThatCancel(t *testing.T) {
	c := &CP{Shape: []int{1}, Weights: []float64{8, 1e-15, -8},
		Vectors: [][]float64{{3e14, 1, 3e14}}}
	if got := At(c, []int{0}).Float64(); got != 1e-15 {
		t.Errorf("got %v", got)
	}
}

// TestTablesOfTermsThatCancel: (3e280 + 4e100) − 3e280 is 4e100, in the table and in the norm.
func TestTablesOfTermsThatCancel(t *testing.T) {
	levels, err := countspace.Identity([]int{2})
	if err != nil {
		t.Fatal(err)
	}
	half := scaled.Vector{Mant: []float64{3e280, 1}, Exp: []int64{0, 0}}
	for _, x := range []Tensor{
		&CP{Shape: []int{2}, Weights: []float64{1, 1, -1},
			Vectors: [][]float64{{3e280, 1, 4e100, 1, 3e280, 1}}},
		&SymmetryCP{Shape: []int{2}, Levels: levels, Terms: []SymmetryRankOne{
			{Alpha: 1, S: half}, {
				Alpha: 4e100,
				S:     scaled.Vector{Mant: []float64{1, 0x1p-300}, Exp: []int64{0, 0}},
			}, {Alpha: -1, S: half},
		}},
	} {
		table, err := ToDense(x, 2)
		if err != nil {
			t.Fatal(err)
		}
		if table.Data[0] != 4e100 {
			t.Errorf("%T: entry %v", x, table.Data[0])
		}
		n, err := NormSq(x)
		if want := 2 * math.Log(4e100); err != nil || !(math.Abs(n.LogAbs()-want) < 1e-9*want) {
			t.Errorf("%T: ln ‖·‖² = %v, want %v (%v)", x, n.LogAbs(), want, err)
		}
	}
}
