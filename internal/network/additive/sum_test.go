package additive

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// precision of the oracle: products of numbers with exponents within ±1500, exactly.
const oracleBits = 8000

func exactly(x scaled.Number) *big.Float {
	f := new(big.Float).SetPrec(oracleBits).SetFloat64(x.Mant)
	return f.SetMantExp(f, int(x.Exp))
}

// rounded returns f to nearest even as a Number.
func rounded(f *big.Float) scaled.Number {
	var mant big.Float
	exp := new(big.Float).SetPrec(53).Set(f).MantExp(&mant)
	m, _ := mant.Float64()
	if m == 0 {
		return scaled.Number{}
	}
	return scaled.Number{Mant: 2 * m, Exp: int64(exp) - 1}
}

func anyNumbers(rng *rand.Rand, n int, span int64) []scaled.Number {
	xs := make([]scaled.Number, n)
	for i := range xs {
		xs[i] = scaled.Make(2*rng.Float64()-1, rng.Int64N(2*span+1)-span)
	}
	return xs
}

// Lemma 5: the total is Σ α_i Z_i, to the last bit of the exact sum, in whatever order the pairs
// come.
func TestLemma5AdditiveDecomposition(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 1))
	for trial := range 1000 {
		n, span := 1+rng.IntN(40), []int64{0, 4, 60, 1500}[trial%4]
		alpha, z := anyNumbers(rng, n, span), anyNumbers(rng, n, span)
		want, size := new(big.Float).SetPrec(oracleBits), new(big.Float).SetPrec(oracleBits)
		for i := range z {
			p := new(big.Float).SetPrec(oracleBits).Mul(exactly(alpha[i]), exactly(z[i]))
			want.Add(want, p)
			size.Add(size, p.Abs(p))
		}
		ratio, _ := new(big.Float).Quo(size, new(big.Float).SetPrec(oracleBits).Abs(want)).Float64()
		for range 4 {
			got, err := SumSigned(alpha, z)
			if err != nil {
				t.Fatalf("trial %d: %v", trial, err)
			}
			if got.Z != rounded(want) {
				t.Fatalf("trial %d: total %v, want %v", trial, got.Z, rounded(want))
			}
			if math.Abs(got.CancellationDigits-math.Log10(ratio)) > 1e-12 {
				t.Fatalf(
					"trial %d: %v digits cancelled, want %v", trial, got.CancellationDigits,
					math.Log10(ratio),
				)
			}
			if _, err := Sum(alpha, z); (want.Sign() < 0) != errors.Is(err, ErrNegative) {
				t.Fatalf("trial %d: a total of sign %d gave %v", trial, want.Sign(), err)
			}
			rng.Shuffle(n, func(i, j int) {
				alpha[i], alpha[j] = alpha[j], alpha[i]
				z[i], z[j] = z[j], z[i]
			})
		}
	}
}

func numbers(xs ...float64) []scaled.Number {
	out := make([]scaled.Number, len(xs))
	for i, x := range xs {
		out[i] = scaled.FromFloat(x)
	}
	return out
}

func TestSumFailures(t *testing.T) {
	for _, c := range []struct {
		name     string
		alpha, z []scaled.Number
		want     error
		text     string
	}{
		{
			"negative", numbers(1, -1), numbers(2, 5), ErrNegative,
			"negative total: -3 as the sum of 2 components, 0.4 digits of which cancelled",
		},
		{"negative beyond float64", numbers(-1), []scaled.Number{{Mant: 1, Exp: 10_000}}, ErrNegative,
			"negative total: -1.995e+3010 as the sum of 1 components"},
		{"cancelled to rounding", numbers(1, -1), numbers(1, 1+0x1p-52), ErrCancelled,
			"total lost all its digits: -2.22e-16 is left of 2 components whose sizes add up to 2"},
		{"cancelled to nothing", numbers(0.5, -0.5), numbers(3, 3), ErrCancelled,
			"total lost all its digits: 0 is left of 2 components whose sizes add up to 3"},
		{
			"cancelled beyond float64", numbers(1, -1),
			[]scaled.Number{{Mant: 1, Exp: -10_000}, {Mant: 1, Exp: -10_000}},
			ErrCancelled, "add up to 1.002e-3010"},
		{"NaN weight", numbers(1, math.NaN()), numbers(1, 1), ErrNotFinite,
			"a component is not a finite number: component 1 has weight NaN and value 1"},
		{
			"infinite value", numbers(1), numbers(math.Inf(1)), ErrNotFinite,
			"component 0 has weight 1 and value +Inf",
		},
		{
			"counts differ", numbers(1, 2), numbers(1), ErrCount,
			"weights and values do not match: 2 weights, 1 values",
		},
	} {
		if _, err := Sum(c.alpha, c.z); !errors.Is(err, c.want) ||
			!strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", c.name, err, c.text)
		}
	}
}

func TestSumEdges(t *testing.T) {
	for _, c := range []struct {
		name     string
		alpha, z []scaled.Number
		want     Total
	}{
		{"nothing", nil, nil, Total{}},
		{"zeros", numbers(0, 3), numbers(7, 0), Total{}},
		{"one", numbers(0.5), numbers(3), Total{Z: scaled.FromFloat(1.5)}},
		{
			"three quarters cancel", numbers(1, -1), numbers(1, 0.6),
			Total{Z: scaled.FromFloat(0.4), CancellationDigits: math.Log10(4)},
		},
		{"48 bits cancel", numbers(1, -1), numbers(1+0x1p-48, 1),
			Total{Z: scaled.Make(1, -48), CancellationDigits: math.Log10(0x1p49 + 1)}},
	} {
		got, err := Sum(c.alpha, c.z)
		if err != nil || got.Z.Sub(c.want.Z).Abs().Float64() > 1e-16 ||
			math.Abs(got.CancellationDigits-c.want.CancellationDigits) > 1e-9 {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
	}
	if e, err := SumSigned(numbers(1, -1), numbers(2, 5)); err != nil ||
		e.Z != scaled.FromFloat(-3) {
		t.Errorf("a signed total of -3 is %v, %v", e.Z, err)
	}
	if e, err := Sum(numbers(1, -1), numbers(3, 3)); !math.IsInf(e.CancellationDigits, 1) ||
		!errors.Is(err, ErrCancelled) {
		t.Errorf("exact cancellation: %v digits, %v", e.CancellationDigits, err)
	}
}
