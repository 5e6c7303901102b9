package countspace

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/pkg/scaled"
)

func TestMulAgainstBig(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 1))
	for trial := range 300 {
		p, q := anyPoly(rng, trial%4, []int{0, 30, oracleSpan}[trial%3]), anyPoly(rng, trial%4,
			1+trial%oracleSpan)
		var ops Ops
		got := p.Mul(q, &ops)
		want, size := bigMul(bigOf(p), bigOf(q))
		checkPoly(t, "p·q", got, want, size, p.Size())
		if most := int64(p.Size() * q.Size()); ops.MulAdds > most ||
			ops.MulAdds < most && !isThin(p) && !isThin(q) {
			t.Fatalf("trial %d: %d multiply-adds for boxes of %d and %d",
				trial, ops.MulAdds, p.Size(), q.Size())
		}
	}
}

func TestAddSubScaleHadamardCropAgainstBig(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 1))
	for trial := range 200 {
		vars := trial % 4
		p, q := anyPoly(rng, vars, oracleSpan), anyPoly(rng, vars, oracleSpan)
		x := scaled.Make(rng.Float64()-0.5, int64(rng.IntN(400)-200))
		bp, bq := bigOf(p), bigOf(q)
		sum, diff, prod, scaledBy := bigPoly{}, bigPoly{}, bigPoly{}, bigPoly{}
		for m, f := range bp {
			sum.addTo(m, f)
			diff.addTo(m, f)
			prod[m] = times(f, bq.at(m))
			scaledBy[m] = times(f, toBig(x))
		}
		for m, f := range bq {
			sum.addTo(m, f)
			diff.addTo(m, times(f, toBig(scaled.One.Neg())))
		}
		abs := func(p bigPoly) bigPoly {
			out := bigPoly{}
			for m, f := range p {
				out[m] = new(big.Float).Abs(f)
			}
			return out
		}
		checkPoly(t, "p+q", p.Add(q), sum, abs(sum), 1)
		checkPoly(t, "p−q", p.Sub(q), diff, abs(diff), 1)
		checkPoly(t, "p∘q", Hadamard(p, q), prod, abs(prod), 1)
		checkPoly(t, "x·p", p.Scale(x), scaledBy, abs(scaledBy), 1)
		checkPoly(t, "p over the box of q and back",
			Crop(Crop(p, q.Shape), p.Shape), onlyWithin(bp, bq), bigPoly{}, 1)
	}
}

func onlyWithin(p, q bigPoly) bigPoly {
	out := bigPoly{}
	for m, f := range p {
		if _, ok := q[m]; ok {
			out[m] = f
		}
	}
	return out
}

// On small integers all arithmetic is exact, so the laws of a ring hold to the last bit.
func TestRingLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	for trial := range 200 {
		vars := trial % 4
		p, q, r := anyPoly(rng, vars, 0), anyPoly(rng, vars, 0), anyPoly(rng, vars, 0)
		for law, sides := range map[string][2]Poly{
			"p·q = q·p":           {p.Mul(q, nil), q.Mul(p, nil)},
			"(p·q)·r = p·(q·r)":   {p.Mul(q, nil).Mul(r, nil), p.Mul(q.Mul(r, nil), nil)},
			"p·(q+r) = p·q + p·r": {p.Mul(q.Add(r), nil), p.Mul(q, nil).Add(p.Mul(r, nil))},
			"p − q + q = p":       {p.Sub(q).Add(q), p},
			"p·1 = p":             {p.Mul(Constant(vars, scaled.One), nil), p},
			"7·p = constant 7 · p": {p.Scale(scaled.FromFloat(7)),
				p.Mul(Constant(vars, scaled.FromFloat(7)), nil)},
			"Π (p, q, r) = p·(q·r)": {Product(vars, []Poly{p, q, r}, nil),
				p.Mul(q.Mul(r, nil), nil)},
		} {
			if !sameNumbers(sides[0], sides[1]) {
				t.Fatalf("trial %d: %s fails for p=%v q=%v r=%v", trial, law, p, q, r)
			}
		}
	}
}

func TestArgumentsNeedNotBeCanonical(t *testing.T) {
	// (6 + 0z + 5e-324 z²)·(½·2^3 + 0·2^99 z), by hand: 24 + 0z + 4·5e-324 z² + 0z³.
	p := Poly{Shape: []int{3}, Coef: scaled.Vector{Mant: []float64{6, 0, 5e-324}}}
	q := Poly{Shape: []int{2}, Coef: scaled.Vector{Mant: []float64{0.5, 0}, Exp: []int64{3, 99}}}
	want := New([]int{4})
	want.Set([]int{0}, scaled.FromFloat(24))
	want.Set([]int{2}, scaled.Make(1, -1072))
	for name, got := range map[string]Poly{
		"p·q": p.Mul(q, nil), "q·p": q.Mul(p, nil), "tree": Product(1, []Poly{q, p}, nil),
		"0 + p·q": New([]int{4}).Add(p.Mul(q, nil)), "p·4": p.Scale(scaled.FromFloat(4)),
	} {
		if !sameNumbers(got, want) || !isCanonical(got.Coef) {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if got, want := Dot(p, q, nil), scaled.FromFloat(24); got != want {
		t.Errorf("dot = %v, want %v", got, want)
	}
}
