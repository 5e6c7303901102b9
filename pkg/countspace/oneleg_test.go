package countspace

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/pkg/scaled"
)

func TestOneLegAgainstBig(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 1))
	for trial := range 500 {
		p, leg := anyPoly(rng, 1, 1+trial), New([]int{2})
		for i := range 2 {
			if rng.IntN(5) > 0 {
				leg.put(i, scaled.Make(2*rng.Float64()-1, int64(rng.IntN(1400)-700)))
			}
		}
		bp, bl := bigOf(p), bigOf(leg)
		want, size := bigMul(bp, bl)
		var ops Ops
		checkPoly(t, "p·leg", p.Mul(leg, &ops), want, size, 2)
		checkPoly(t, "leg·p", leg.Mul(p, &ops), want, size, 2)
		if ops.MulAdds != int64(4*p.Size()) {
			t.Fatalf("%d multiply-adds for two products of %d and 2 coefficients",
				ops.MulAdds, p.Size())
		}
		h := Correlate(p, leg, nil)
		if h.Size() != max(1, p.Size()-1) || !isCanonical(h.Coef) {
			t.Fatalf("trial %d: %v contracted with a leg is %v", trial, p, h)
		}
		for k := range h.Coef.Mant {
			want, size := bigCorrelate(bp, bl, []int{k})
			if got := h.Coef.At(k); !within(got, want, size, 2) {
				t.Fatalf("trial %d: h[%d] is %v, want %.20g", trial, k, got, want)
			}
		}
	}
}

func TestOneLegNotFinite(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		for _, e := range []int64{-5000, 0, 5000} {
			p, leg := New([]int{3}), New([]int{2})
			for i := range 3 {
				p.put(i, scaled.Make(1, e))
			}
			leg.put(0, scaled.One)
			leg.put(1, scaled.FromFloat(bad))
			r, h := p.Mul(leg, nil), Correlate(p, leg, nil)
			if !r.Coef.At(0).IsFinite() {
				t.Errorf("%v in z spoils the constant term: %v", bad, r)
			}
			if r.Coef.At(1).IsFinite() || r.Coef.At(3).IsFinite() || h.Coef.At(0).IsFinite() ||
				h.Coef.At(1).IsFinite() {
				t.Errorf("%v beside 2^%d is lost: product %v, contraction %v", bad, e, r, h)
			}
		}
	}
}
