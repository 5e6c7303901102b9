package wide_test

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/wide"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// random returns an expression with entries of any size: 0, subnormal, 2^±2000 beyond float64's range; and of both signs where
// asked for.
func random(rng *rand.Rand, signs bool) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.Make(1+rng.Float64(), rng.Int64N(100))}
	for range 1 + rng.IntN(5) {
		e.Dims = append(e.Dims, 1+rng.IntN(3))
	}
	for range rng.IntN(7) {
		t := sumproduct.Table{}
		size := 1
		for i, d := range e.Dims {
			if rng.IntN(2) == 0 && d > 1 {
				t.Scope, size = append(t.Scope, i), size*d
			}
		}
		if len(t.Scope) == 0 {
			continue
		}
		withExp := rng.IntN(2) == 0
		for range size {
			x := []float64{0, 1, rng.Float64(), 1e300, 1e-300, 5e-324, 1e15}[rng.IntN(7)]
			if signs && rng.IntN(2) == 0 {
				x = -x
			}
			t.Data = append(t.Data, x)
			if withExp {
				t.Exp = append(t.Exp, rng.Int64N(4000)-2000)
			}
		}
		e.Tables = append(e.Tables, t)
	}
	return e
}

// exactBits suffice for sums of products of numbers of 53 bits between 2^±100000: nothing is rounded.
const exactBits = 1 << 18

func TestAgainstExactSums(t *testing.T) {
	zeros, cancelled := 0, 0
	for seed := range uint64(nightly.Rounds(300, 1500)) {
		rng := rand.New(rand.NewPCG(seed, 77))
		e := random(rng, seed%2 == 0)
		if seed%8 == 0 { // the same table once more with a sign: terms cancel exactly
			for k := range e.Tables {
				if len(e.Tables[k].Data) == 2 {
					e.Tables[k].Data, e.Tables[k].Exp = []float64{0.1, -0.1}, nil
				}
			}
		}
		sums := oracle.Sum(e, exactBits)
		want, abs := sums.Z, sums.Terms
		for _, marginals := range []bool{false, true} {
			r, err := wide.Contract(context.Background(), e, wide.Options{Marginals: marginals})
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case !r.Exact:
				t.Errorf("seed %d: not exact, %v digits", seed, r.Digits)
			case want.Sign() == 0:
				zeros++
				if abs.Sign() != 0 {
					cancelled++
				}
				if !r.Z.IsZero() {
					t.Errorf("seed %d, marginals %v: Z is %v, want 0", seed, marginals, r.Z)
				}
			case oracle.ScaledError(r.Z.Mant, r.Z.Exp, want, want) > 1e-11:
				t.Errorf("seed %d, marginals %v: Z is off by %g: %+v, digits %v, %v", seed, marginals,
					oracle.ScaledError(r.Z.Mant, r.Z.Exp, want, want), r.Z, r.Digits, e)
			}
			if !marginals || want.Sign() == 0 {
				continue
			}
			for i, d := range e.Dims {
				for v := range d {
					part := sums.Parts[i][v]
					size := new(big.Float).Abs(want) // parts of both signs may be far larger than Z
					if p := new(big.Float).Abs(part); p.Cmp(size) > 0 {
						size = p
					}
					if x := oracle.ScaledError(r.Marginals[i][v].Mant, r.Marginals[i][v].Exp, part, size); x > 1e-11 {
						t.Errorf("seed %d: index %d at %d is off by %g of Z", seed, i, v, x)
					}
				}
			}
		}
	}
	if zeros < 20 || cancelled < 5 {
		t.Errorf("%d zeros, %d of them cancelled", zeros, cancelled)
	}
}

// TestDigitsAreCounted: (1 + 2^-60) − 1 loses 18 digits, and comes out right.
func TestDigitsAreCounted(t *testing.T) {
	e := &sumproduct.Expression{
		Dims:   []int{3},
		Scale:  scaled.One,
		Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{1, 0x1p-60, -1}}, {Scope: []int{0}, Data: []float64{3, 3, 3}}},
	}
	r, err := wide.Contract(context.Background(), e, wide.Options{Marginals: true})
	if err != nil || !r.Exact || r.Z != scaled.Make(3, -60) || math.Abs(r.Digits-60*math.Log10(2)-math.Log10(2)) > 1e-9 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestWhatIsTooLargeIsRefused(t *testing.T) {
	e := &sumproduct.Expression{Scale: scaled.One}
	for i := range 40 {
		e.Dims = append(e.Dims, 2)
		for k := range i {
			e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{k, i}, Data: []float64{1, 2, 3, 4}})
		}
	}
	if _, err := wide.Contract(context.Background(), e, wide.Options{}); fault.CodeOf(err) != fault.OverBudget {
		t.Errorf("a complete graph of 40: %v", err)
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	small := &sumproduct.Expression{Dims: []int{2}, Scale: scaled.One, Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{1, 2}}}}
	if _, err := wide.Contract(done, small, wide.Options{Marginals: true}); err == nil {
		t.Error("a context that has ended is not looked at")
	}
}

// TestMoreDigitsThanThereAre: 2^90000 + 1/3 − 2^90000, each times 1/3, takes more bits than numbers have here: the total is not exact, and
// nobody takes a bound of 2^-16384 for none.
func TestMoreDigitsThanThereAre(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{4}, Scale: scaled.One, Tables: []sumproduct.Table{
		{Scope: []int{0}, Data: []float64{1, 1.0 / 3, -1, 1}, Exp: []int64{90000, 0, 90000, 5}},
		{Scope: []int{0}, Data: []float64{1.0 / 3, 1, 1.0 / 3, 1}},
	}}
	r, err := wide.Contract(context.Background(), e, wide.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := oracle.Sum(e, exactBits).Z; r.Exact && oracle.ScaledError(r.Z.Mant, r.Z.Exp, want, want) > 1e-11 {
		t.Errorf("%+v is called exact, it is off by %g", r, oracle.ScaledError(r.Z.Mant, r.Z.Exp, want, want))
	}
}
