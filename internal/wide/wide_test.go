package wide_test

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/internal/wide"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// rational is the value of an expression and of its terms' absolute values, by enumeration in exact rationals; with index i
// held at value v where i ≥ 0.
func rational(e *sumproduct.Expression, i, v int) (z, abs *big.Rat) {
	z, abs = new(big.Rat), new(big.Rat)
	x := make([]int, len(e.Dims))
	for {
		if i < 0 || x[i] == v {
			term := power(e.Scale.Mant, e.Scale.Exp)
			for _, t := range e.Tables {
				k := 0
				for _, j := range t.Scope {
					k = k*e.Dims[j] + x[j]
				}
				exp := int64(0)
				if t.Exp != nil {
					exp = t.Exp[k]
				}
				term.Mul(term, power(t.Data[k], exp))
			}
			z.Add(z, term)
			abs.Add(abs, new(big.Rat).Abs(term))
		}
		a := len(x) - 1
		for ; a >= 0; a-- {
			if x[a]++; x[a] < e.Dims[a] {
				break
			}
			x[a] = 0
		}
		if a < 0 {
			return z, abs
		}
	}
}

func power(mant float64, exp int64) *big.Rat {
	f := new(big.Float).SetFloat64(mant)
	r, _ := f.SetMantExp(f, int(exp)).Rat(nil)
	if r == nil {
		return new(big.Rat)
	}
	return r
}

// off is |got − want| relative to size.
func off(got scaled.Number, want, size *big.Rat) float64 {
	d := new(big.Rat).Sub(power(got.Mant, got.Exp), want)
	if d.Sign() == 0 {
		return 0
	}
	q, _ := d.Quo(d, size).Float64()
	return math.Abs(q)
}

// random returns an expression with entries of any size: 0, subnormal, 2^±2000 beyond what a float64 holds; and of both signs where
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

func TestAgainstRationals(t *testing.T) {
	zeros, cancelled := 0, 0
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 77))
		e := random(rng, seed%2 == 0)
		if seed%8 == 0 { // the same table once more with a sign: terms cancel exactly
			for k := range e.Tables {
				if len(e.Tables[k].Data) == 2 {
					e.Tables[k].Data, e.Tables[k].Exp = []float64{0.1, -0.1}, nil
				}
			}
		}
		want, abs := rational(e, -1, 0)
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
			case off(r.Z, want, want) > 1e-11:
				t.Errorf("seed %d, marginals %v: Z is off by %g: %+v, digits %v, %v", seed, marginals, off(r.Z, want, want), r.Z, r.Digits, e)
			}
			if !marginals || want.Sign() == 0 {
				continue
			}
			for i, d := range e.Dims {
				for v := range d {
					part, _ := rational(e, i, v)
					size := new(big.Rat).Abs(want) // parts of both signs may be far larger than Z
					if p := new(big.Rat).Abs(part); p.Cmp(size) > 0 {
						size = p
					}
					if x := off(r.Marginals[i][v], part, size); x > 1e-11 {
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
	e := &sumproduct.Expression{Dims: []int{3}, Scale: scaled.One, Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{1, 0x1p-60, -1}}, {Scope: []int{0}, Data: []float64{3, 3, 3}}}}
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
	if want, _ := rational(e, -1, 0); r.Exact && off(r.Z, want, want) > 1e-11 {
		t.Errorf("%+v is called exact, it is off by %g", r, off(r.Z, want, want))
	}
}
