package tensor

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// bruteMaps returns Σ_b t[b] Π maps[a_ℓ, b_ℓ] and the sum of absolute terms.
func bruteMaps(t Tensor, maps [][]float64, a []int) (sum, scale float64) {
	dims := t.Dims()
	every(dims, func(b []int) {
		p := naive(t, b)
		for leg, m := range maps {
			if m != nil {
				p *= m[a[leg]*dims[leg]+b[leg]]
			} else if a[leg] != b[leg] {
				p = 0
			}
		}
		sum += p
		scale += math.Abs(p)
	})
	return sum, scale
}

func checkMapped(t *testing.T, form Tensor, maps [][]float64) Tensor {
	t.Helper()
	out, err := ApplyModes(form, maps)
	if err != nil {
		t.Fatalf("%T: %v", form, err)
	}
	if err := Validate(out); err != nil {
		t.Fatalf("%T: %v", form, err)
	}
	every(form.Dims(), func(a []int) {
		want, scale := bruteMaps(form, maps, a)
		if got := naive(out, a); math.Abs(got-want) > tolerance*(1+scale) {
			t.Fatalf("%T%v mapped = %v, want %v", form, a, got, want)
		}
	})
	return out
}

func TestLemma1ApplyModesAgainstBruteForce(t *testing.T) {
	for seed := range uint64(80) {
		r := seeded(t, seed)
		dims := randomDims(r, r.IntN(5))
		maps := make([][]float64, len(dims))
		for leg, d := range dims {
			if r.IntN(3) > 0 {
				maps[leg] = randomList(r, d*d)
			}
		}
		for _, form := range randomForms(r, dims) {
			out := checkMapped(t, form, maps)
			if _, ok := form.(*CP); ok {
				if _, still := out.(*CP); !still {
					t.Fatalf("CP became %T", out)
				}
			}
		}
	}
}

// common draws a symmetry-CP tensor whose legs are all alike, with or without vectors.
func common(r *rand.Rand, n, d int) *SymmetryCP {
	dims := slices.Repeat([]int{d}, n)
	l := countspace.Levels{D: 1 + r.IntN(3)}
	of := make([]uint8, d)
	for x := range of {
		of[x] = uint8(r.IntN(l.D))
	}
	l.Of = slices.Repeat([][]uint8{of}, n)
	t := &SymmetryCP{Shape: dims, Levels: l}
	for range 1 + r.IntN(3) {
		term := SymmetryRankOne{Alpha: r.NormFloat64(), S: randomValues(r, l)}
		if r.IntN(2) == 0 {
			term.R = slices.Repeat([][]float64{randomList(r, d)}, n)
		}
		t.Terms = append(t.Terms, term)
	}
	return t
}

func TestApplyModesKeepsSymmetry(t *testing.T) {
	for seed := range uint64(80) {
		r := seeded(t, seed)
		n, d := 1+r.IntN(5), 1+r.IntN(3)
		form := common(r, n, d)
		maps := slices.Repeat([][]float64{randomList(r, d*d)}, n)
		if out, ok := checkMapped(t, form, maps).(*SymmetryCP); !ok {
			t.Fatalf("%T", out)
		}
		sym := &Symmetric{Shape: form.Shape, Levels: form.Levels, Values: form.Terms[0].S}
		if out, ok := checkMapped(t, sym, maps).(*Symmetric); !ok {
			t.Fatalf("%T", out)
		}
	}
}

// Parity over 300 variables under the Hadamard matrix: two entries are left, 2^(n/2) at the ends.
func TestApplyModesParityUnderHadamard(t *testing.T) {
	n := 300
	dims := slices.Repeat([]int{2}, n)
	levels, _ := countspace.Identity(dims)
	s := &Symmetric{Shape: dims, Levels: levels}
	for c := range n + 1 {
		s.Values.Mant = append(s.Values.Mant, float64(1-c%2))
	}
	h := math.Sqrt(0.5)
	out, err := ApplyModes(s, slices.Repeat([][]float64{{h, h, h, -h}}, n))
	if err != nil {
		t.Fatal(err)
	}
	values := out.(*Symmetric).Values
	end := float64(n-2) / 2 * math.Ln2
	for c := range n + 1 {
		got := values.At(c)
		if c == 0 || c == n {
			if math.Abs(got.LogAbs()-end) > 1e-10 || got.Sign() < 0 {
				t.Errorf("value at %d is exp(%v), want exp(%v)", c, got.LogAbs(), end)
			}
			continue
		}
		if got.LogAbs() > end-25 {
			t.Errorf("value at %d is exp(%v), want 0", c, got.LogAbs())
		}
	}
}

func TestApplyModesErrors(t *testing.T) {
	n := 40
	dims := slices.Repeat([]int{2}, n)
	levels, _ := countspace.Identity(dims)
	s := &Symmetric{Shape: dims, Levels: levels, Values: scaled.Vector{Mant: make([]float64, n+1)}}
	maps := slices.Repeat([][]float64{{1, 1, 1, -1}}, n)
	maps[3] = []float64{1, 2, 3, 4}
	_, err := ApplyModes(s, maps)
	if !errors.Is(err, ErrUnsupportedMap) || !errors.Is(err, ErrTooLarge) ||
		!strings.Contains(fmt.Sprint(err), "identity maps") {
		t.Errorf("mixed maps on 40 legs: %v", err)
	}
	if same, err := ApplyModes(s, make([][]float64, n)); err != nil || same != Tensor(s) {
		t.Errorf("identity maps: %v", err)
	}
	table := &Dense{Shape: []int{2}, Data: []float64{1e300, 1}}
	for _, c := range []struct {
		t    Tensor
		maps [][]float64
		want error
	}{
		{nil, nil, ErrShape},
		{table, nil, ErrShape},
		{table, [][]float64{{1, 2, 3}}, ErrShape},
		{table, [][]float64{{1, 2, 3, math.NaN()}}, ErrNotFinite},
		{table, [][]float64{{1e300, 2, 3, 4}}, ErrNotFinite},
		{&CP{
			Shape:   []int{2},
			Weights: []float64{1},
			Vectors: [][]float64{{1e300, 1}},
		}, [][]float64{{1e300, 2, 3, 4}}, ErrNotFinite},
	} {
		if _, err := ApplyModes(c.t, c.maps); !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
	many := slices.Repeat([]int{2}, 23) // 2^23 entries
	large := &Symmetric{Shape: many, Levels: countspace.TwoLevels(many),
		Values: scaled.Vector{Mant: make([]float64, 24)}}
	apart := make([][]float64, len(many))
	apart[0] = []float64{1, 1, 1, -1}
	if _, err := ApplyModes(large, apart); !errors.Is(err, ErrUnsupportedMap) {
		t.Errorf("more entries than MaxEntries: %v", err)
	}
}
