package beliefs

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// drawExpression draws an expression of tables over one to three of some indices of one to three values, some of them with entries of 0.
func drawExpression(r *rand.Rand) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.One}
	for range 3 + r.IntN(6) {
		e.Dims = append(e.Dims, []int{1, 2, 2, 2, 2, 3}[r.IntN(6)])
	}
	zeros := 0.0
	if r.IntN(3) == 0 {
		zeros = 0.2 * r.Float64()
	}
	n := len(e.Dims)
	e.Tables = oracle.RandomTables(r, e.Dims, 2*n+r.IntN(2*n), 2*r.Float64(), zeros)
	return e
}

// newSampler returns a sampler of an expression, or nil if messages contradict one another.
func newSampler(t *testing.T, e *sumproduct.Expression, follow float64) *Sampler {
	t.Helper()
	state, err := Propagate(t.Context(), e)
	if err != nil {
		return nil
	}
	s, err := New(t.Context(), e, state, follow)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDensitiesAreNormalised: densities add up to 1 over all states and are above 0 wherever ψ is, whether messages follow or not.
func TestDensitiesAreNormalised(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 11))
	models := 0
	for k := range 300 {
		e := drawExpression(r)
		s := newSampler(t, e, []float64{0, 0.1, 1e-4}[k%3])
		if s == nil {
			continue
		}
		models++
		d, sum := s.NewDrawer(1e-3), 0.0
		oracle.Each(e.Dims, func(x []int) {
			q := math.Exp(d.LnDensity(slices.Clone(x)))
			sum += q
			if psi := oracle.LnWeight(e, x); !math.IsInf(psi, -1) && !(q > 0) {
				t.Fatalf("model %d: density 0 where ψ is e^%v", k, psi)
			}
		})
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("model %d: densities add up to %v", k, sum)
		}
	}
	if models < 200 {
		t.Errorf("only %d models have messages", models)
	}
}

// TestDrawsHaveTheirDensity: frequencies of states are their densities, and Draw says them.
func TestDrawsHaveTheirDensity(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 11))
	for k := range 12 {
		e := drawExpression(r)
		s := newSampler(t, e, []float64{0, 0.05}[k%2])
		if s == nil {
			continue
		}
		d, again := s.NewDrawer(0.01), s.NewDrawer(0.01)
		const n = 20000
		count, x := map[string]float64{}, make([]int, len(e.Dims))
		for range n {
			ln := d.Draw(r, x)
			if other := again.LnDensity(x); other != ln {
				t.Fatalf("model %d: drawn with e^%v, density e^%v", k, ln, other)
			}
			count[stateKey(x)]++
		}
		oracle.Each(e.Dims, func(x []int) {
			q := math.Exp(d.LnDensity(x))
			if got := count[stateKey(x)] / n; math.Abs(got-q) > 5*math.Sqrt(q/n)+5.0/n {
				t.Errorf("model %d: state %v has %v of the draws, its density is %v", k, x, got, q)
			}
		})
	}
}

// stateKey returns a key of a state for maps.
func stateKey(x []int) string {
	var b []byte
	for _, a := range x {
		b = append(b, byte(a))
	}
	return string(b)
}

// TestTreesAreDrawnExactly: on trees every state's density is ψ/Z.
func TestTreesAreDrawnExactly(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 11))
	for k := range 60 {
		e := &sumproduct.Expression{Dims: []int{2}, Scale: scaled.One}
		for i := 1; i < 8; i++ {
			e.Dims = append(e.Dims, 2+r.IntN(2))
			scope := []int{r.IntN(i), i}
			if i > 2 && r.IntN(3) == 0 { // a leaf more in the same table
				e.Dims = append(e.Dims, 2)
				i++
				scope = []int{scope[0], i, i - 1}
			}
			size := 1
			for _, j := range scope {
				size *= e.Dims[j]
			}
			data := make([]float64, size)
			for n := range data {
				data[n] = math.Exp(r.NormFloat64())
			}
			e.Tables = append(e.Tables, sumproduct.Table{Scope: scope, Data: data})
		}
		s := newSampler(t, e, []float64{0, 0.3, 1e-9}[k%3])
		z := 0.0
		oracle.Each(e.Dims, func(x []int) { z += math.Exp(oracle.LnWeight(e, x)) })
		d := s.NewDrawer(1e-12)
		oracle.Each(e.Dims, func(x []int) {
			want := math.Exp(oracle.LnWeight(e, x)) / z
			if q := math.Exp(d.LnDensity(x)); math.Abs(q-want) > 1e-4*want {
				t.Fatalf("model %d: density %v of %v, want %v", k, q, x, want)
			}
		})
	}
}

// TestUnderflowLeavesNoValueOut: an index has two values of about the same probability, each all but forbidden by some tables, so
// that the products of messages or of decided tables leave the range of float64 on the way. Densities are above 0 wherever ψ is,
// and the mean of weights is Z where none of them is for one value and the others for the other.
func TestUnderflowLeavesNoValueOut(t *testing.T) {
	const tiny = 1e-200
	common := -2 * math.Log(tiny)                    // of all states
	against := func(j, value int) sumproduct.Table { // a value of index 0, for any value of index j
		data := []float64{1, 1, 1, 1}
		data[2*value], data[2*value+1] = tiny, tiny
		return sumproduct.Table{Scope: []int{0, j}, Data: data}
	}
	alone := func(p, q float64) sumproduct.Table { return sumproduct.Table{Scope: []int{0}, Data: []float64{p, q}} }
	for _, c := range []struct {
		name     string
		tables   []sumproduct.Table
		balanced bool
	}{
		{"messages", []sumproduct.Table{against(1, 1), against(2, 1), against(3, 0), against(4, 0)}, true},
		{"decided tables", []sumproduct.Table{alone(1, tiny), alone(1, tiny), alone(tiny, 1), alone(tiny, 1)}, true},
		{"decided tables against messages", []sumproduct.Table{against(1, 1), against(2, 1), alone(tiny, 1), alone(tiny, 1)}, false},
	} {
		e := &sumproduct.Expression{Dims: []int{2, 2, 2, 2, 2}, Scale: scaled.One, Tables: c.tables}
		for i := range 4 {
			e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, i + 1}, Data: []float64{2, 1, 1, 2}})
		}
		z := 0.0
		oracle.Each(e.Dims, func(x []int) { z += math.Exp(oracle.LnWeight(e, x) + common) })
		for _, follow := range []float64{0, 1e-3} {
			s := newSampler(t, e, follow)
			if s == nil {
				t.Fatalf("%s: messages contradict one another", c.name)
			}
			d, sum, mean := s.NewDrawer(1e-2), 0.0, 0.0
			oracle.Each(e.Dims, func(x []int) {
				ln := d.LnDensity(slices.Clone(x))
				sum += math.Exp(ln)
				if math.IsInf(ln, -1) {
					t.Errorf("%s, tolerance %v: density 0 of %v", c.name, follow, x)
				}
			})
			if math.Abs(sum-1) > 1e-9 {
				t.Errorf("%s: densities add up to %v", c.name, sum)
			}
			if !c.balanced {
				continue
			}
			r, x := rand.New(rand.NewPCG(5, 11)), make([]int, len(e.Dims))
			const draws = 200_000
			for range draws {
				ln := d.Draw(r, x)
				mean += math.Exp(oracle.LnWeight(e, x)+common-ln) / z / draws
			}
			if math.Abs(mean-1) > 0.2 { // a five-hundredth of the draws may have half of Z
				t.Errorf("%s, tolerance %v: the mean of weights is %v of Z", c.name, follow, mean)
			}
		}
	}
}

// TestMessagesThatFollowAreCloser: on loopy models the divergence from the model is less than with messages that do not.
func TestMessagesThatFollowAreCloser(t *testing.T) {
	var total [2]float64
	r := rand.New(rand.NewPCG(4, 11))
	for range 10 {
		e := &sumproduct.Expression{Dims: slices.Repeat([]int{2}, 9), Scale: scaled.One}
		for i := range 9 {
			for _, j := range []int{i + 1, i + 3} {
				if j < 9 && (j != i+1 || i%3 < 2) {
					w := math.Exp(r.NormFloat64())
					e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, j}, Data: []float64{w, 1 / w, 1 / w, w}})
				}
			}
		}
		z := 0.0
		oracle.Each(e.Dims, func(x []int) { z += math.Exp(oracle.LnWeight(e, x)) })
		for k, follow := range []float64{0, 1e-3} {
			d := newSampler(t, e, follow).NewDrawer(1e-3)
			oracle.Each(e.Dims, func(x []int) {
				ln := oracle.LnWeight(e, x)
				total[k] += math.Exp(ln) / z * (ln - math.Log(z) - d.LnDensity(x))
			})
		}
	}
	if !(total[1] < 0.6*total[0]) {
		t.Errorf("divergences add up to %v, with messages that follow to %v", total[0], total[1])
	}
}

// TestWhatIsRefused: entries below 0, messages that contradict one another, a context that is over.
func TestWhatIsRefused(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2, 2}, Scale: scaled.One, Tables: []sumproduct.Table{
		{Scope: []int{0, 1}, Data: []float64{1, 2, 3, -4}},
	}}
	if _, err := Propagate(t.Context(), e); err == nil {
		t.Error("an entry below 0 is accepted")
	}
	e.Tables[0].Data = []float64{1, 0, 0, 1}
	e.Tables = append(e.Tables,
		sumproduct.Table{Scope: []int{0}, Data: []float64{1, 0}}, sumproduct.Table{Scope: []int{1}, Data: []float64{0, 1}})
	if _, err := Propagate(t.Context(), e); err == nil {
		t.Error("a contradiction is accepted")
	}
	e.Tables = e.Tables[:1]
	state, err := Propagate(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(ctx, e, state, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
