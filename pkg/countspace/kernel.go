package countspace

import (
	"math"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// The one loop that everything costly runs in: a sum of products of coefficients of any range.

const (
	// window is the depth in bits below an accumulator's top at which a term still counts.
	// A power of two: see dot.
	window = 1024
	// centre puts the accumulator's unit in the middle of float64's range,
	// so that nothing in the window is subnormal.
	centre = window / 2
	// headroom is the distance in bits of the top above a new largest term,
	// so that a rising sequence moves it rarely.
	headroom = 200
	// bottom is the top of an empty accumulator, below every exponent.
	bottom = math.MinInt64 / 4
)

// power[d] is 2^(centre−d), exactly.
var power = func() (t [window]float64) {
	for d := range t {
		t[d] = math.Ldexp(1, centre-d)
	}
	return t
}()

// accumulator holds the sum s·2^(top−centre), where top is an exponent above those of all terms so far. Terms more than 800 bits below the
// largest one so far are dropped (window less headroom, and some bits), which is far below the rounding of the products. Scaling by power
// within the window is exact.
type accumulator struct {
	s   float64
	top int64
}

// newAccumulator returns an accumulator with the sum 0.
func newAccumulator() accumulator { return accumulator{top: bottom} }

// dot adds Σ_i a_i·b_i to the sum. a_i is aMant[i]·2^aExp[i] and b_i likewise, all normalised.
//
// It takes four terms at a time. If the exponents of all of them are within the window below the top, at distances d0 to d3, they are
// added to two running sums, which hide the latency of the additions. A term above the top has a distance that is huge as an unsigned
// number. window is a power of two, so one comparison of the or-ed distances tests all four.
func (t *accumulator) dot(aMant []float64, aExp []int64, bMant []float64, bExp []int64) {
	n := len(aMant)
	aExp, bMant, bExp = aExp[:n], bMant[:n], bExp[:n] // for the compiler: no bounds are checked below
	sum0, sum1, top := t.s, 0.0, t.top

	i := 0
	for ; i+4 <= n; i += 4 {
		x, y, ex, ey := aMant[i:i+4:i+4], bMant[i:i+4:i+4], aExp[i:i+4:i+4], bExp[i:i+4:i+4]
		d0, d1 := uint64(top-ex[0]-ey[0]), uint64(top-ex[1]-ey[1])
		d2, d3 := uint64(top-ex[2]-ey[2]), uint64(top-ex[3]-ey[3])
		if d0|d1|d2|d3 < window {
			sum0 += float64(x[0] * y[0] * power[d0%window]) // %window: for the compiler, d0 is below it
			sum1 += float64(x[1] * y[1] * power[d1%window])
			sum0 += float64(x[2] * y[2] * power[d2%window])
			sum1 += float64(x[3] * y[3] * power[d3%window])
			continue
		}

		// One by one, which may raise the top.
		t.s, t.top = sum0+sum1, top
		for j := range x {
			t.add(x[j]*y[j], ex[j]+ey[j])
		}
		sum0, sum1, top = t.s, 0, t.top
	}
	t.s, t.top = sum0+sum1, top

	for ; i < n; i++ {
		t.add(aMant[i]*bMant[i], aExp[i]+bExp[i])
	}
}

// add adds p·2^exp to the sum s·2^(top−centre), for a p that is 0, in ±[1, 4), or not finite. A term that is window bits or more below the
// top is dropped. A term above the top raises it first.
func (t *accumulator) add(p float64, exp int64) {
	distance := t.top - exp
	switch {
	case p == 0:
	case p-p != 0: // NaN or Inf
		t.s += p
	case uint64(distance) < window:
		t.s += float64(p * power[distance])
	case distance < 0:
		t.raise(exp + headroom) // above exp, so that a rising sequence raises it rarely
		t.s += float64(p * power[headroom])
	}
}

// raise moves the top up, and scales s so that the sum stays. Terms that fall out of float64's range then are 800 bits or more below the
// term that made it move.
func (t *accumulator) raise(top int64) {
	if shift := top - t.top; shift < 4*window {
		t.s = math.Ldexp(t.s, -int(shift))
	} else if t.s-t.s == 0 {
		t.s = 0
	}
	t.top = top
}

// value returns the sum, normalised.
func (t *accumulator) value() scaled.Number { return scaled.Make(t.s, t.top-centre) }
