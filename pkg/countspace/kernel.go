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

// accumulator holds the sum s·2^(top−centre). Terms more than 800 bits below the largest one so far
// are dropped, which is far below the rounding of the products; scaling within the window is exact.
type accumulator struct {
	s   float64
	top int64
}

func newAccumulator() accumulator { return accumulator{top: bottom} }

// dot adds Σ_i a_i·b_i, for canonical lists of one length. Two running sums over four terms a step
// hide the latency of the additions; window is a power of two, so one comparison of the or-ed
// distances tests all four.
func (t *accumulator) dot(am []float64, ae []int64, bm []float64, be []int64) {
	n := len(am)
	ae, bm, be = ae[:n], bm[:n], be[:n] // for the compiler: no bounds are checked below
	s0, s1, top := t.s, 0.0, t.top

	i := 0
	for ; i+4 <= n; i += 4 {
		x, y, ex, ey := am[i:i+4:i+4], bm[i:i+4:i+4], ae[i:i+4:i+4], be[i:i+4:i+4]
		d0, d1 := uint64(top-ex[0]-ey[0]), uint64(top-ex[1]-ey[1])
		d2, d3 := uint64(top-ex[2]-ey[2]), uint64(top-ex[3]-ey[3])
		if d0|d1|d2|d3 < window {
			s0 += float64(x[0] * y[0] * power[d0%window])
			s1 += float64(x[1] * y[1] * power[d1%window])
			s0 += float64(x[2] * y[2] * power[d2%window])
			s1 += float64(x[3] * y[3] * power[d3%window])
			continue
		}
		t.s, t.top = s0+s1, top
		for j := range x {
			t.add(x[j]*y[j], ex[j]+ey[j])
		}
		s0, s1, top = t.s, 0, t.top
	}
	t.s, t.top = s0+s1, top

	for ; i < n; i++ {
		t.add(am[i]*bm[i], ae[i]+be[i])
	}
}

// add adds p·2^e, p being 0 or in ±[1, 4), or not finite.
func (t *accumulator) add(p float64, e int64) {
	d := t.top - e
	switch {
	case p == 0:
	case p-p != 0: // NaN or Inf
		t.s += p
	case uint64(d) < window:
		t.s += float64(p * power[d])
	case d < 0:
		t.raise(e + headroom)
		t.s += float64(p * power[headroom])
	}
}

// raise moves the top up. Terms that fall out of float64's range then are 800 bits or more below the term that made it move.
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
