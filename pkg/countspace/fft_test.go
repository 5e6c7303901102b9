package countspace

import (
	"math"
	"math/bits"
	"math/cmplx"
	"testing"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// The measurement behind docs/explanation/decisions/0002-no-fft-in-count-space.md.

// fft transforms a (a power of two long) in place, with roots of the given sign;
// radix 2, every root from its own angle.
func fft(a []complex128, sign float64) {
	n := len(a)
	for i := range a {
		if j := int(bits.Reverse64(uint64(i)) >> (64 - bits.TrailingZeros(uint(n)))); i < j {
			a[i], a[j] = a[j], a[i]
		}
	}
	for half := 1; half < n; half *= 2 {
		for k := range half {
			root := cmplx.Rect(1, sign*math.Pi*float64(k)/float64(half))
			for i := k; i < n; i += 2 * half {
				u, v := a[i], a[i+half]*root
				a[i], a[i+half] = u+v, u-v
			}
		}
	}
}

// fftSquare returns p², its coefficients in units of 2^exp: an FFT needs one exponent for all.
func fftSquare(p Poly) (coef []float64, exp int64) {
	for _, e := range p.Coef.Exp {
		exp = max(exp, e)
	}
	n := 1 << bits.Len(uint(2*p.Size()-2))
	a := make([]complex128, n)
	for i, m := range p.Coef.Mant {
		a[i] = complex(math.Ldexp(m, int(max(-2000, p.Coef.Exp[i]-exp))), 0)
	}
	fft(a, -1)
	for i := range a {
		a[i] *= a[i] / complex(float64(n), 0)
	}
	fft(a, 1)
	for _, c := range a[:2*p.Size()-1] {
		coef = append(coef, real(c))
	}
	return coef, 2 * exp
}

// One squaring, (1+z)^500 to (1+z)^1000: the FFT's error is relative to the largest coefficient,
// so most of the others have no digit right; the schoolbook product has them all.
func TestFFTWouldLoseSmallCoefficients(t *testing.T) {
	ps := make([]Poly, 500)
	for i := range ps {
		ps[i] = Linear([]float64{1, 1})
	}
	half := Product(1, ps, nil)
	school, want := half.Mul(half, nil), bigBinomial(1000, 1, 1)
	fast, exp := fftSquare(half)
	lost, worstSchool, middle := 0, 0.0, 0.0
	for k, w := range want {
		e := relativeError(scaled.Make(fast[k], exp), w)
		if e > 0.01 {
			lost++
		}
		if k == 500 {
			middle = e
		}
		worstSchool = max(worstSchool, relativeError(school.Coef.At(k), w))
	}
	t.Logf("FFT: %d of %d coefficients off by more than 1 %%, the largest by %.1g; schoolbook: "+
		"the worst off by %.1g", lost,
		len(want), middle, worstSchool)
	if middle > 1e-13 {
		t.Errorf("the FFT has the largest coefficient wrong by %.2g: the test's transform is "+
			"broken", middle)
	}
	if lost < 500 {
		t.Errorf("the FFT loses %d of %d coefficients: the decision against it needs another look",
			lost, len(want))
	}
	if worstSchool > 1e-14 {
		t.Errorf("the schoolbook product is off by %.2g", worstSchool)
	}
}

func BenchmarkSquareOf5000Legs(b *testing.B) {
	half := Product(1, legs(5000, 1), nil)
	b.Run("schoolbook", func(b *testing.B) {
		for b.Loop() {
			half.Mul(half, nil)
		}
	})
	b.Run("FFT", func(b *testing.B) {
		for b.Loop() {
			fftSquare(half)
		}
	})
}
