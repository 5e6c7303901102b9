package preprocess

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestSumsOfRoundedSums: Σ_t (Σ_y s_t(y)) (Σ_x v_t(x)) with Σ s = (1, −1) and Σ v_0 = Σ v_1 + 25
// among entries of 4e17: the inner sums are rounded, their difference is not, and has no digit of
// 25. Nothing may take it for that.
func TestSumsOfRoundedSums(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{3, 2, 3}, Scale: scaled.One, Tables: []sumproduct.Table{
		{Scope: []int{1, 2}, Data: []float64{0.5, 0.25, 0.25, -0.25, -0.5, -0.25}},
		{Scope: []int{1, 0}, Data: []float64{4e17, 3e17, 75, 3e17, 4e17, 50}},
	}}
	r, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// the rest is the contraction's to judge, which sees its terms cancel
	if len(r.Expression.Tables) > 0 {
		return
	}
	if z := r.Expression.Scale.Float64(); math.Abs(z-25) > 1e-9 {
		t.Errorf("summed to %v, want 25", z)
	}
}

// TestSumsAreExact: products of up to four tables of both signs whose sums cancel by 2^-50 and
// further, to 0 too, keep all their digits where nothing has been rounded before, and are refused
// where something has.
func TestSumsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	cancelled := 0
	for round := range 300 {
		n, spread := 1+round%maxExactFactors, math.Ldexp(1, -rng.IntN(60))
		e := &sumproduct.Expression{Scale: scaled.One, Dims: []int{6, 2, 3}}
		for k := range n {
			table := sumproduct.Table{Scope: [][]int{{0}, {0, 1}, {0, 2}}[rng.IntN(3)],
				Rounded: round%7 == 6}
			if k == 0 {
				table.Scope = []int{1, 2, 0}
			}
			size := 1
			for _, i := range table.Scope {
				size *= e.Dims[i]
			}
			for at := range size {
				x := 1.125 + 0.8*rng.Float64()*spread
				if k == 0 && at%2 == 1 { // along index 0, neighbours have other signs
					x = -x
				}
				table.Data = append(table.Data, x)
			}
			e.Tables = append(e.Tables, table)
		}
		loaded, err := load(e, Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		data, stated, ok := sumProduct(e.Dims, loaded.tables, []int{1, 2}, []int{0}, loaded.isSigned)
		want, size := enumerateSums(e)
		for o, z := range want {
			exact, _ := z.Float64()
			if math.Abs(exact) < size[o]*0x1p-40 {
				cancelled++
			}
			if ok && math.Abs(data[o]-exact)*0x1p53 > stated*math.Abs(exact) {
				t.Errorf("round %d, entry %d: %v, it is %v, and %v is stated",
					round, o, data[o], exact, stated)
			}
			if !ok && round%7 != 6 {
				t.Errorf("round %d: refused", round)
			}
			if ok && round%7 == 6 && math.Abs(exact) < size[o]*0x1p-40 {
				t.Errorf("round %d: entry %d of %v among %v was taken for right, from rounded "+
					"tables", round, o, exact, size[o])
			}
		}
	}
	if cancelled < 50 {
		t.Errorf("%d entries cancelled", cancelled)
	}
}

// enumerateSums returns Σ over index 0 of the product of all tables,
// per value of indices 1 and 2, and Σ|products|.
func enumerateSums(e *sumproduct.Expression) (sums []*big.Rat, size []float64) {
	for b := range e.Dims[1] {
		for c := range e.Dims[2] {
			sum, abs := new(big.Rat), 0.0
			for a := range e.Dims[0] {
				p := big.NewRat(1, 1)
				for _, table := range e.Tables {
					at := 0
					for _, i := range table.Scope {
						at = at*e.Dims[i] + []int{a, b, c}[i]
					}
					p.Mul(p, new(big.Rat).SetFloat64(table.Data[at]))
				}
				f, _ := p.Float64()
				sum.Add(sum, p)
				abs += math.Abs(f)
			}
			sums, size = append(sums, sum), append(size, abs)
		}
	}
	return sums, size
}

// TestEqualWithinRoundingIsNoZero: terms of both signs that cancel beside entries which are equal, but were rounded, are no exact zero:
// the values that only such a zero forbids stay.
func TestEqualWithinRoundingIsNoZero(t *testing.T) {
	small := 9e-301 // lost beside 0.7
	twice := []float64{1, 1, 1, -1}
	halves := []float64{0.5, 0.5, 0.5, -0.5}
	parities := &sumproduct.Expression{Scale: scaled.One, Dims: []int{2, 2, 2, 2}, Tables: []sumproduct.Table{
		{Scope: []int{1}, Data: []float64{4e-310, 4e299}}, {Scope: []int{0}, Data: []float64{0.7, small}},
		{Scope: []int{2, 0}, Data: twice}, {Scope: []int{2, 1}, Data: halves},
		{Scope: []int{3, 0}, Data: twice}, {Scope: []int{3, 1}, Data: halves},
	}}
	rows := &sumproduct.Expression{Scale: scaled.One, Dims: []int{6, 6}, Tables: []sumproduct.Table{ // three classes within rounding
		{Scope: []int{0, 1}, Rounded: true},
		{Scope: []int{0}, Data: []float64{1, -1, 1, -1, 1, -1}},
		{Scope: []int{1}, Data: []float64{1, 0.3, 0.7, 0.1, 0.9, 0.6}},
	}}
	for x := range 6 {
		for y := range 6 {
			rows.Tables[0].Data = append(rows.Tables[0].Data, 0.1*float64(1+(x/2+1)*(y+2)))
		}
	}
	for name, c := range map[string]struct {
		e    *sumproduct.Expression
		o    Options
		want float64 // Z, where it can be known
	}{
		"a constant mode": {parities, Options{}, 0.36},
		"classes":         {rows, Options{Classes: true, always: true}, math.NaN()},
	} {
		r, err := Run(context.Background(), c.e, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if z := r.Expression.Scale.Float64(); len(r.Expression.Tables) == 0 && !(math.Abs(z/c.want-1) < 1e-9) {
			t.Errorf("%s: Z is %v for certain, want %v: %+v", name, z, c.want, r.Report)
		}
	}
}
