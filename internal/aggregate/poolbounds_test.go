package aggregate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBoundsOfPools: both bounds of bounded weights hold about as often as they say, over the rungs of a pool, and are better than the
// weights' bound; without that bound there is none above.
func TestBoundsOfPools(t *testing.T) {
	const (
		pools = 4000
		delta = 0.1
		most  = 1.0 // weights are up to e
	)
	r := rand.New(rand.NewPCG(1, 1))
	wrong, bernstein := 0, 0
	for k := range pools {
		// The mean of e·u^(1/c) is e·c/(c+1).
		c := 0.1 + 3*r.Float64()
		want := most + math.Log(c/(c+1))
		p := &pool{lower: pooledBound{ln: math.Inf(-1)}, upper: pooledBound{ln: math.Inf(1)}, most: most}
		unbounded := k%4 == 0
		if unbounded {
			p.most = math.Inf(1)
		}
		for rung := range 3 {
			for range 100 << rung {
				p.ln = append(p.ln, most+math.Log(r.Float64())/c)
			}
			lower := p.bound(1, delta*math.Exp2(-float64(rung+1)))
			if lower > p.lower.ln {
				t.Fatalf("the bound below is %v, the best of all %v", lower, p.lower.ln)
			}
		}
		if unbounded != math.IsInf(p.upper.ln, 1) || math.IsInf(p.lower.ln, -1) || p.upper.ln < p.lower.ln {
			t.Fatalf("from %v to %v, bounded %v", p.lower.ln, p.upper.ln, !unbounded)
		}
		if p.lower.ln > want || p.upper.ln < want {
			wrong++
		}
		if p.upper.ln < most-0.1 {
			bernstein++
		}
	}
	if float64(wrong) > delta*pools || bernstein < pools/2 {
		t.Errorf("%d of %d pools are wrong, %d have a bound above that tells something", wrong, pools, bernstein)
	}
}
