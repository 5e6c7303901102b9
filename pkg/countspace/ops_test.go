package countspace

import (
	"math/rand/v2"
	"testing"
)

// dense is a polynomial without zeros.
func dense(shape ...int) Poly {
	rng := rand.New(rand.NewPCG(1, 1))
	p := New(shape)
	for i := range p.Coef.Mant {
		p.Coef.Mant[i] = 1 + rng.Float64()
	}
	return p
}

// TestStop: after a stop at most one row of coefficients is counted; a Stop that never returns true changes nothing.
func TestStop(t *testing.T) {
	long, leg := dense(3000), dense(2, 2, 2)
	box := dense(60, 60)
	for name, do := range map[string]func(*Ops) Poly{
		"product":                 func(o *Ops) Poly { return long.Mul(long, o) },
		"product of boxes":        func(o *Ops) Poly { return box.Mul(box, o) },
		"product by few":          func(o *Ops) Poly { return dense(70, 70, 70).Mul(leg, o) },
		"some of a product":       func(o *Ops) Poly { return MulRange(long, long, 0, 4000, o) },
		"correlation":             func(o *Ops) Poly { return Correlate(dense(6000), long, o) },
		"correlation with few":    func(o *Ops) Poly { return Correlate(dense(70, 70, 70), leg, o) },
		"some of a correlation":   func(o *Ops) Poly { return CorrelateRange(long, long, -500, 500, o) },
		"places of a correlation": func(o *Ops) Poly { return CorrelateOn(dense(6000), long, long, o) },
		"closed power":            func(o *Ops) Poly { return Power(dense(2), 300_000, o) },
		"power":                   func(o *Ops) Poly { return Power(dense(4), 2000, o) },
	} {
		var all, watched, stopped Ops
		want := do(&all)
		looks := 0
		watched.Stop = func() bool { looks++; return false }
		got := do(&watched)
		if all.MulAdds != watched.MulAdds || looks == 0 || got.Size() != want.Size() {
			t.Errorf("%s: %d multiply-adds with %d looks, %d without", name, watched.MulAdds, looks, all.MulAdds)
		}
		for i := range want.Coef.Mant {
			if got.Coef.At(i) != want.Coef.At(i) {
				t.Errorf("%s: coefficient %d is %v, %v without looks", name, i, got.Coef.At(i), want.Coef.At(i))
				break
			}
		}
		stopped.Stop = func() bool { return true }
		if do(&stopped); stopped.MulAdds > 8*stopInterval || stopped.MulAdds >= all.MulAdds {
			t.Errorf("%s: %d of %d multiply-adds although it was stopped", name, stopped.MulAdds, all.MulAdds)
		}
	}
}
