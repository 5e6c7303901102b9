package scaled_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/pkg/scaled"
)

func bigSum(xs []scaled.Number) *big.Float {
	s := new(big.Float).SetPrec(20000)
	for _, x := range xs {
		s.Add(s, exactly(x))
	}
	return s
}

func TestSumIsCorrectlyRoundedInAnyOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 7))
	for trial := range 3000 {
		span := []int64{0, 2, 40, 130, 3000}[trial%5]
		xs := make([]scaled.Number, rng.IntN(40))
		for i := range xs {
			xs[i] = anyNumber(rng, span)
			if i > 0 && rng.IntN(3) == 0 { // cancel something, exactly or nearly
				xs[i] = xs[rng.IntN(i)].Neg()
				if rng.IntN(2) == 0 {
					xs[i].Exp -= 53
				}
			}
		}
		want := nearest(bigSum(xs))
		for range 3 {
			if got := scaled.Sum(xs); got != want {
				t.Fatalf("trial %d: Sum(%v) = %v, want %v", trial, xs, got, want)
			}
			rng.Shuffle(len(xs), func(i, j int) { xs[i], xs[j] = xs[j], xs[i] })
		}
	}
}

func TestSumOfProductsIsRoundedOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 7))
	for trial := range 2000 {
		span := []int64{0, 20, 120, 1000}[trial%4]
		n := rng.IntN(20)
		a, b := make([]scaled.Number, n), make([]scaled.Number, n)
		want, wantAbs := new(big.Float).SetPrec(20000), new(big.Float).SetPrec(20000)
		for i := range n {
			a[i], b[i] = anyNumber(rng, span), anyNumber(rng, span)
			if i > 0 && rng.IntN(3) == 0 {
				a[i], b[i] = b[i-1].Neg(), a[i-1]
			}
			p := new(big.Float).SetPrec(20000).Mul(exactly(a[i]), exactly(b[i]))
			want.Add(want, p)
			wantAbs.Add(wantAbs, p.Abs(p))
		}
		if got := scaled.SumProducts(a, b); got != nearest(want) {
			t.Fatalf("trial %d: %v·%v = %v, want %v", trial, a, b, got, nearest(want))
		}
		if got := scaled.SumAbsProducts(a, b); got != nearest(wantAbs) {
			t.Fatalf("trial %d: |%v|·|%v| = %v, want %v", trial, a, b, got, nearest(wantAbs))
		}
	}
}

func TestSumEdges(t *testing.T) {
	n := func(m float64, e int64) scaled.Number { return scaled.Make(m, e) }
	inf, nan := scaled.FromFloat(math.Inf(1)), scaled.FromFloat(math.NaN())
	const far = int64(1) << 50 // a gap whose bits nobody could store
	for _, c := range []struct {
		name string
		xs   []scaled.Number
		want scaled.Number
	}{
		{"nothing", nil, scaled.Number{}},
		{"zeros", make([]scaled.Number, 3), scaled.Number{}},
		{"not normalised", []scaled.Number{{Mant: 12}, {Mant: 0.25, Exp: 4}}, n(16, 0)},
		{"cancels to a far smaller term",
			[]scaled.Number{n(1, far), n(1.5, -far), n(-1, far)}, n(1.5, -far)},
		{"tie to even, down", []scaled.Number{n(1, 0), n(1, -53)}, n(1, 0)},
		{"tie broken upwards from far below",
			[]scaled.Number{n(1, 0), n(1, -53), n(1, -far)}, n(1+0x1p-52, 0)},
		{"tie broken downwards from far below",
			[]scaled.Number{n(1+0x1p-52, 0), n(1, -53), n(-1, -far)}, n(1+0x1p-52, 0)},
		{"just below a power of two",
			[]scaled.Number{n(1, 0), n(-1, -54), n(-1, -far)}, n(1-0x1p-53, 0)},
		{"rest cancels to nothing",
			[]scaled.Number{n(1, 0), n(1, -53), n(1, -far), n(-1, -far)}, n(1, 0)},
		{"one infinity", []scaled.Number{inf, n(1, far)}, inf},
		{"one negative infinity", []scaled.Number{inf.Neg(), n(1, far)}, inf.Neg()},
	} {
		if got := scaled.Sum(c.xs); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	for name, xs := range map[string][]scaled.Number{
		"NaN": {nan, n(1, 0)}, "both infinities": {inf, inf.Neg()}, "NaN and Inf": {inf, nan},
	} {
		if got := scaled.Sum(xs); !math.IsNaN(got.Mant) {
			t.Errorf("%s: %v, want NaN", name, got)
		}
	}
	if got := scaled.SumProducts([]scaled.Number{inf}, []scaled.Number{n(2, 0)}); got != inf {
		t.Errorf("Inf·2 = %v", got)
	}
	if got := scaled.SumProducts([]scaled.Number{inf}, []scaled.Number{{}}); !math.IsNaN(got.Mant) {
		t.Errorf("Inf·0 = %v, want NaN", got)
	}
}

// A long descending chain without a gap makes the partial sum grow by every term;
// it must still end early.
func TestSumOfManyTermsIsQuick(t *testing.T) {
	xs := make([]scaled.Number, 50_000)
	for i := range xs {
		xs[i] = scaled.Number{Mant: 1.25, Exp: -60 * int64(i)}
	}
	want := nearest(bigSum(xs[:20]))
	if got := scaled.Sum(xs); got != want {
		t.Fatalf("%v, want %v", got, want)
	}
}

func FuzzSum(f *testing.F) {
	f.Add(int64(0), 1.0, int64(-53), 1.0, int64(-200), -1.0)
	f.Fuzz(func(t *testing.T, e0 int64, m0 float64, e1 int64, m1 float64, e2 int64, m2 float64) {
		xs := []scaled.Number{scaled.Make(m0, e0%4000), scaled.Make(m1, e1%4000),
			scaled.Make(m2, e2%4000)}
		for _, x := range xs {
			if !x.IsFinite() {
				t.Skip("only finite terms have an oracle")
			}
		}
		if got, want := scaled.Sum(xs), nearest(bigSum(xs)); got != want {
			t.Fatalf("Sum(%v) = %v, want %v", xs, got, want)
		}
	})
}

// TestSumsOfSimilarNumbersAreThoseOfAny: 128 bits against integers of any size.
func TestSumsOfSimilarNumbersAreThoseOfAny(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 7))
	for trial := range 20000 {
		xs := make([]scaled.Number, 1+rng.IntN(8))
		span := 1 + rng.Int64N(66)
		for i := range xs {
			xs[i] = scaled.Make(rng.Float64()*2-1, rng.Int64N(span)-30)
			switch rng.IntN(4) {
			case 0: // few bits: ties
				xs[i] = scaled.Make(float64(1+rng.IntN(4))*(1-2*float64(rng.IntN(2))),
					rng.Int64N(span))
			case 1:
				xs[i] = scaled.Make(float64(1<<53-1-rng.IntN(2)), rng.Int64N(span)-52)
			}
		}
		if got, want := scaled.Sum(xs), nearest(bigSum(xs)); got != want {
			t.Fatalf("trial %d: Sum(%v) = %v, want %v", trial, xs, got, want)
		}
	}
	full := make([]scaled.Number, 256)
	for i := range full {
		full[i] = scaled.Make(-float64(1<<53-1), 12)
	}
	full[0] = scaled.Make(1, 0)
	if got, want := scaled.Sum(full), nearest(bigSum(full)); got != want {
		t.Errorf("the largest of all: %v, want %v", got, want)
	}
}
