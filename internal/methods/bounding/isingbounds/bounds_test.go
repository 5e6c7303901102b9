package isingbounds

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/ising"
	"github.com/basetensor/basetensor/internal/testing/nightly"
)

// drawModel draws a model of n spins, each pair coupled with probability share. attract makes couplings attractive after flips.
func drawModel(r *rand.Rand, n int, share, strength float64, attract bool) *ising.Model {
	j := make([][]float64, n)
	flips := make([]float64, n)
	for i := range j {
		j[i] = make([]float64, n)
		flips[i] = float64(2*r.IntN(2) - 1)
		for k := range i {
			if r.Float64() < share {
				x := strength * r.NormFloat64()
				if attract {
					x = math.Abs(x) * flips[i] * flips[k]
				}
				j[i][k], j[k][i] = x, x
			}
		}
	}
	m := &ising.Model{N: n, First: make([]int32, n+1)}
	for i := range n {
		m.H = append(m.H, strength*r.NormFloat64()/2)
		for k := range n {
			if j[i][k] != 0 {
				m.To = append(m.To, int32(k))
				m.J = append(m.J, j[i][k])
			}
		}
		m.First[i+1] = int32(len(m.To))
	}
	return m
}

// exactLn returns ln Z by enumeration.
func exactLn(m *ising.Model) float64 {
	var ln []float64
	top := math.Inf(-1)
	for x := range 1 << m.N {
		s := func(i int) float64 { return float64(2*(x>>i&1) - 1) }
		e := 0.0
		for i := range m.N {
			e += m.H[i] * s(i)
			for k := m.First[i]; k < m.First[i+1]; k++ {
				e += m.J[k] * s(i) * s(int(m.To[k])) / 2
			}
		}
		ln = append(ln, e)
		top = max(top, e)
	}
	z := 0.0
	for _, e := range ln {
		z += math.Exp(e - top)
	}
	return top + math.Log(z)
}

// TestDeterminantIsAbove ln Z by enumeration, of weak and strong, sparse and dense models, and nearer than the trivial bound.
func TestDeterminantIsAbove(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	gaps := 0.0
	const models = 300
	for k := range models {
		n := 1 + r.IntN(9)
		m := drawModel(r, n, []float64{0.3, 1}[k%2], []float64{0.1, 0.5, 2}[k%3], false)
		want := exactLn(m)
		got, err := UpperBound(t.Context(), m, r.IntN(31), 1)
		if err != nil || got < want {
			t.Errorf("model %d: %v (%v), ln Z %v", k, got, err, want)
		}
		gaps += (got - want) / float64(models)
	}
	if gaps > 5 {
		t.Errorf("the bound is %v nats above on average", gaps)
	}
}

// TestSlicesAreAbove ln Z by enumeration, for any number of them, the more the nearer; all of them are ln Z.
func TestSlicesAreAbove(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	models := nightly.Rounds(200, 1000)
	whole, some := 0.0, 0.0
	for k := range models {
		n := 1 + r.IntN(8)
		m := drawModel(r, n, []float64{0.3, 1}[k%2], []float64{0.1, 0.5, 2, 6}[k%4], false)
		if k%7 == 0 {
			clear(m.H)
		}
		want := exactLn(m)
		last, rounds := math.Inf(1), 1+r.IntN(10)
		for _, most := range []int{1, 2 + r.IntN(20), 2 << n} {
			got, err := UpperBound(t.Context(), m, rounds, most)
			if err != nil || got < want || got > last+1e-9*(1+math.Abs(last)) {
				t.Fatalf("model %d, %d slices: %v (%v), with fewer %v, ln Z %v", k, most, got, err, last, want)
			}
			switch {
			case most == 1:
				whole += (got - want) / float64(models)
			case most == 2<<n && got > want+1e-8*(1+math.Abs(want)):
				t.Fatalf("model %d, all slices: %v, ln Z %v", k, got, want)
			case most < 2<<n:
				some += (got - want) / float64(models)
			}
			last = got
		}
	}
	if some > 0.6*whole {
		t.Errorf("%v nats above on average, %v with some slices", whole, some)
	}
}

// TestSlicesOfSpinGlasses: a complete model of 24 spins comes nearer by two nats with 64 slices.
func TestSlicesOfSpinGlasses(t *testing.T) {
	m := drawModel(rand.New(rand.NewPCG(5, 1)), 24, 1, 1, false)
	var got [2]float64
	for k, most := range []int{1, 64} {
		var err error
		if got[k], err = UpperBound(t.Context(), m, 20, most); err != nil {
			t.Fatal(err)
		}
	}
	if got[1] > got[0]-2 {
		t.Errorf("from %v to %v", got[0], got[1])
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := UpperBound(ctx, m, 20, 64); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if flops, bytes := DeterminantCost(24, 20, 64); flops < 84*5*24*24*24 || bytes < 48*24*24 {
		t.Errorf("a price of %v flops and %v bytes", flops, bytes)
	}
}

// TestDeterminantOfSpinGlasses: the gap of Sherrington–Kirkpatrick models of 14 spins at β = 1 is the design's.
func TestDeterminantOfSpinGlasses(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for range 5 {
		m := drawModel(r, 14, 1, 1/math.Sqrt(14), false)
		clear(m.H)
		got, err := UpperBound(t.Context(), m, 60, 1)
		if err != nil {
			t.Fatal(err)
		}
		if gap := got - exactLn(m); gap < 0 || gap > 4.5 {
			t.Errorf("a gap of %v nats", gap)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := UpperBound(ctx, drawModel(r, 3, 1, 1, false), 5, 9); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestInformation against a finer sum over another range, and its derivative against differences.
func TestInformation(t *testing.T) {
	for _, s := range []float64{1e-4, 0.01, 0.3, 1, 5, 30, 299} {
		want, weight := 0.0, 0.0
		for k := -120000; k <= 120000; k++ {
			z := float64(k) * 1e-4
			w := math.Exp(-z * z / 2)
			x := math.Abs(s + math.Sqrt(s)*z)
			want += w * (x + math.Log1p(math.Exp(-2*x)) - math.Ln2)
			weight += w
		}
		if got := information(s); math.Abs(got-(s-want/weight)) > 1e-10 {
			t.Errorf("I(%v) = %v, not %v", s, got, s-want/weight)
		}
		h := 1e-4 * s
		if got, want := informationSlope(s), (information(s+h)-information(s-h))/(2*h); math.Abs(got-want) > 1e-6*max(1, 1/s) {
			t.Errorf("I'(%v) = %v, differences give %v", s, got, want)
		}
	}
}

// TestBetheIsBelow ln Z of attractive models at any beliefs, and is ln Z at the best ones of a tree.
func TestBetheIsBelow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	near := 0
	for k := range 2000 {
		n := 1 + r.IntN(8)
		m := drawModel(r, n, []float64{0.3, 1}[k%2], []float64{0.2, 1, 3, 200}[k%4], true)
		if AttractiveSigns(m) == nil {
			t.Fatalf("model %d is attractive", k)
		}
		want := exactLn(m)
		q := make([]float64, n)
		for i := range q {
			q[i] = r.Float64()
			if k%4 == 0 {
				q[i] = 1 / (1 + math.Exp(10*r.NormFloat64()))
			}
		}
		got := BetheValue(m, q)
		if !(got <= want) {
			t.Errorf("model %d: Bethe's value %v, ln Z %v", k, got, want)
		}
		if want-got < 0.5 {
			near++
		}
	}
	loss := 0.0
	for k := range 600 {
		m := drawModel(r, 1+r.IntN(8), []float64{0.3, 1}[k%2], []float64{0.2, 1, 3, 200}[k%4], true)
		if k%5 == 0 {
			clear(m.H)
		}
		want := exactLn(m)
		got, err := LowerBound(t.Context(), m, 200)
		if err != nil || !(got <= want) {
			t.Errorf("model %d: %v (%v) below ln Z %v", k, got, err, want)
		}
		loss += (want - got) / 600
	}
	if loss > 0.1 {
		t.Errorf("%v nats are lost on average", loss)
	}
	if near < 20 {
		t.Errorf("%d values are within half a nat: too few to tell anything", near)
	}
	frustrated := drawModel(r, 3, 1, 1, true)
	for k := range frustrated.J {
		frustrated.J[k] = -math.Abs(frustrated.J[k])
	}
	if AttractiveSigns(frustrated) != nil {
		t.Error("a triangle of repulsive couplings is taken for attractive")
	}
	if b, err := LowerBound(t.Context(), frustrated, 10); err != nil || !math.IsInf(b, -1) {
		t.Errorf("below it is %v (%v)", b, err)
	}
	two := &ising.Model{N: 2, H: []float64{0.3, -0.2}, First: []int32{0, 1, 2}, To: []int32{1, 0}, J: []float64{0.7, 0.7}}
	q := make([]float64, 2)
	z := 0.0
	for x := range 4 {
		a, b := float64(2*(x&1)-1), float64(2*(x>>1)-1)
		w := math.Exp(0.3*a - 0.2*b + 0.7*a*b)
		z += w
		q[0] += w * (a + 1) / 2
		q[1] += w * (b + 1) / 2
	}
	q[0] /= z
	q[1] /= z
	if got := BetheValue(two, q); math.Abs(got-math.Log(z)) > 1e-9 {
		t.Errorf("Bethe's value of a tree at its marginals is %v, ln Z %v", got, math.Log(z))
	}
}

// TestFewRoundsBeginWell: of dense models the bound without a round is within an eighth of the final one.
func TestFewRoundsBeginWell(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	for _, strength := range []float64{0.03, 0.1, 0.3} {
		m := drawModel(r, 80, 1, strength, false)
		last, err := UpperBound(t.Context(), m, 30, 1)
		if err != nil {
			t.Fatal(err)
		}
		for rounds := range 3 {
			got, err := UpperBound(t.Context(), m, rounds, 1)
			if err != nil || got < last-1e-3 || got > last+0.125*math.Abs(last) {
				t.Errorf("strength %g: %v after %d rounds, %v in the end; %v", strength, got, rounds, last, err)
			}
		}
	}
}
