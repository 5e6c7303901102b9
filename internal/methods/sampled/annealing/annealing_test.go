package annealing

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// drawModel draws an expression: a table over each of the scopes, with entries e^±strength and a share zeros of them 0.
func drawModel(r *rand.Rand, dims []int, scopes [][]int, strength, zeros float64) *sumproduct.Expression {
	e := &sumproduct.Expression{Dims: dims, Scale: scaled.FromFloat(0.3)}
	for _, s := range scopes {
		e.Tables = append(e.Tables, oracle.RandomTable(r, dims, s, strength, zeros))
	}
	return e
}

// pairScopes returns the scopes of all pairs of n indices, and of each index.
func pairScopes(n int) (s [][]int) {
	for i := range n {
		s = append(s, []int{i})
		for k := range i {
			s = append(s, []int{i, k})
		}
	}
	return s
}

// ringScopes returns the scopes of neighbours on a ring.
func ringScopes(n int) (s [][]int) {
	for i := range n {
		s = append(s, []int{i, (i + 1) % n})
	}
	return s
}

// cubeScopes are the scopes of the edges of a cube, and of each corner.
var cubeScopes = [][]int{
	{0, 1}, {2, 3}, {4, 5}, {6, 7}, {0, 2}, {1, 3}, {4, 6}, {5, 7}, {0, 4}, {1, 5}, {2, 6}, {3, 7},
	{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7},
}

// tripleScopes returns the scopes of three neighbours on a ring.
func tripleScopes(n int) (s [][]int) {
	for i := range n {
		s = append(s, []int{i, (i + 1) % n, (i + 2) % n})
	}
	return s
}

// exactMarginals returns Z and the marginals of every index, by enumeration.
func exactMarginals(e *sumproduct.Expression) (z float64, p [][]float64) {
	for _, d := range e.Dims {
		p = append(p, make([]float64, d))
	}
	oracle.Each(e.Dims, func(x []int) {
		v := math.Exp(oracle.LnWeight(e, x))
		z += v
		for i, a := range x {
			p[i][a] += v
		}
	})
	for i := range p {
		for a := range p[i] {
			p[i][a] /= z
		}
	}
	return z, p
}

// TestMeanOfWeightsIsZ: the mean over 1,000 seeds is within four standard errors of Z by enumeration, and so are weighted marginals.
func TestMeanOfWeightsIsZ(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for name, c := range map[string]struct {
		e    *sumproduct.Expression
		step Step
	}{
		"sparse, heat bath":  {drawModel(r, []int{2, 2, 2, 2, 2, 2, 2}, ringScopes(7), 1.5, 0), HeatBath},
		"sparse, metropolis": {drawModel(r, []int{2, 2, 2, 2, 2, 2, 2}, ringScopes(7), 1.5, 0), Metropolis},
		"dense, heat bath":   {drawModel(r, []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, pairScopes(10), 0.7, 0), HeatBath},
		"dense, metropolis":  {drawModel(r, []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, pairScopes(10), 0.7, 0), Metropolis},
		"one value":          {drawModel(r, []int{2, 1, 2, 2}, pairScopes(4), 1, 0), HeatBath},
		"mixed":              {drawModel(r, []int{3, 2, 4, 2}, append(pairScopes(4), []int{0, 1, 2}), 1, 0), HeatBath},
		"zeros":              {drawModel(r, []int{3, 2, 4, 2, 3}, ringScopes(5), 1, 0.2), HeatBath},
		"arity 4 and 5":      {drawModel(r, []int{2, 2, 2, 2, 2, 2}, [][]int{{0, 1, 2, 3}, {5, 4, 3, 2, 1}, {0, 5, 3}}, 1, 0), HeatBath},
		"zeros, metropolis":  {drawModel(r, []int{2, 2, 2, 2, 2}, append(ringScopes(5), []int{4, 2, 0}), 0.5, 0.1), Metropolis},
		"ring, forests":      {drawModel(r, []int{2, 2, 2, 2, 2, 2, 2}, ringScopes(7), 1.5, 0), Forests},
		"cube, forests":      {drawModel(r, []int{2, 2, 2, 2, 2, 2, 2, 2}, cubeScopes, 1.5, 0), Forests},
		"dense, forests":     {drawModel(r, []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, pairScopes(10), 0.7, 0), Forests},
		"two, forests":       {drawModel(r, []int{2, 2, 2, 2, 2}, [][]int{{0, 2}, {3}, {4, 3}, {1}}, 1.5, 0), Forests},
		"zeros, forests":     {drawModel(r, []int{3, 2, 4, 2, 3}, ringScopes(5), 1, 0.2), Forests},
		"many values":        {drawModel(r, []int{9, 3, 17}, append(pairScopes(3), []int{2, 0, 1}), 1, 0), Metropolis},
		"alone, forests":     {drawModel(r, []int{2, 2}, [][]int{{0}, {1}}, 1, 0), Forests},
		"no couplings":       {drawModel(r, []int{2, 2}, [][]int{{0}, {1}}, 1, 0), Metropolis},
	} {
		m, err := New(c.e)
		if err != nil {
			t.Fatal(name, err)
		}
		want, marginals := exactMarginals(c.e)
		for _, product := range []bool{false, true} {
			checkMean(t, name, m, Path{Rungs: 3, Step: c.step, FromBeliefs: product}, c.e, want, marginals)
		}
		for modes := 1; modes <= 3; modes++ {
			checkMean(t, name+", modes", m, Path{Rungs: 3, Step: c.step, FromBeliefs: modes == 2, Modes: modes}, c.e, want, marginals)
		}
		checkMean(t, name+", knots", m, Path{Rungs: 5, Step: c.step, Knots: []float64{0.1, 0.3, 1}}, c.e, want, marginals)
	}
}

// checkMean fails the test unless the mean of weights over seeds is near want, and weighted shares are near the marginals.
func checkMean(t *testing.T, name string, m *Model, p Path, e *sumproduct.Expression, want float64, marginals [][]float64) {
	t.Helper()
	const seeds = 1000
	sum, squares := 0.0, 0.0
	shares := make([]float64, len(e.Dims)) // of the first value: Σ w (f − p)
	spread := make([]float64, len(e.Dims))
	for seed := range uint64(seeds) {
		p.Seed = seed
		w, err := m.Run(t.Context(), p, 8, 24, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		mean, scale := 0.0, math.Exp(w.Top)/float64(len(w.Ln))
		for _, l := range w.Ln {
			mean += math.Exp(l) / float64(len(w.Ln))
		}
		sum += mean
		squares += mean * mean
		for i, s := range w.Share {
			total := 0.0
			for _, x := range s {
				total += x
			}
			if math.Abs(total*scale-mean) > 1e-9*mean {
				t.Fatalf("%s: shares of index %d add up to %v, not %v", name, i, total*scale, mean)
			}
			d := s[0]*scale - mean*marginals[i][0]
			shares[i] += d
			spread[i] += d * d
		}
	}
	mean := sum / seeds
	deviation := math.Sqrt((squares/seeds - mean*mean) / seeds)
	if z := (mean - want) / (deviation + 1e-7*want); math.Abs(z) > 4 {
		t.Errorf("%s: mean %v, Z %v, %.1f standard errors apart", name, mean, want, z)
	}
	for i := range shares {
		if z := shares[i] / math.Sqrt(spread[i]+1e-300); math.Abs(z) > 4 {
			t.Errorf("%s: the marginal of index %d is %.1f standard errors off", name, i, z)
		}
	}
}

// TestStatesWeighWhatTheySay: a state's share of the weights of all chains is its probability, by enumeration.
func TestStatesWeighWhatTheySay(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 7))
	for name, e := range map[string]*sumproduct.Expression{
		"spins": drawModel(r, []int{2, 2, 2}, pairScopes(3), 1, 0), "mixed": drawModel(r, []int{3, 2, 1, 2}, pairScopes(4), 1, 0.1),
		"modes": drawModel(r, []int{2, 2, 2}, pairScopes(3), 2.2, 0),
	} {
		m, err := New(e)
		if err != nil {
			t.Fatal(err)
		}
		const chains = 40_000
		w, err := m.Run(t.Context(), Path{Rungs: 3, Seed: 3, Modes: 2}, 0, chains, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		if name == "modes" && len(w.LnContributions) == len(w.Ln) {
			t.Fatal("there are none")
		}
		states := 1
		for _, d := range e.Dims {
			states *= d
		}
		share, squares := make([]float64, states), make([]float64, states)
		total := 0.0
		state := make([]int, len(e.Dims))
		for c, l := range w.LnContributions {
			m.ReadState(w, c, state)
			at := 0
			for i, a := range state {
				at = at*e.Dims[i] + a
			}
			x := math.Exp(l - w.Top)
			share[at] += x
			squares[at] += x * x
			total += x
		}
		z, _ := exactMarginals(e)
		for at := range share {
			p, rest := math.Exp(e.Scale.LogAbs()), at
			for i := len(state) - 1; i >= 0; i-- {
				state[i] = rest % e.Dims[i]
				rest /= e.Dims[i]
			}
			for _, table := range e.Tables {
				entry := 0
				for _, i := range table.Scope {
					entry = entry*e.Dims[i] + state[i]
				}
				p *= table.Data[entry]
			}
			if d := share[at]/total - p/z; math.Abs(d) > 4.5*math.Sqrt(squares[at])/total+1e-12 {
				t.Errorf("%s: state %v has %v of the weights, probability %v", name, state, share[at]/total, p/z)
			}
		}
	}
}

// TestVectorsGiveTheSameBits as the portable loop.
func TestVectorsGiveTheSameBits(t *testing.T) {
	defer setVectors(setVectors(true))
	if !vectors {
		t.Skip("no AVX2 here: the portable loop is all there is")
	}
	r := rand.New(rand.NewPCG(3, 3))
	dims := make([]int, 21)
	for i := range dims {
		dims[i] = 2
	}
	mixed := append([]int{3, 9, 17, 1, 5, 2, 2, 2}, dims[:5]...)
	for name, e := range map[string]*sumproduct.Expression{
		"sparse": drawModel(r, dims, ringScopes(21), 0.8, 0), "dense": drawModel(r, dims, pairScopes(21), 0.8, 0),
		"three":      drawModel(r, dims, tripleScopes(21), 0.8, 0),
		"four, five": drawModel(r, dims, [][]int{{0, 1, 2, 3}, {4, 3, 2, 5, 6}, {7, 8, 9, 10, 1, 11}, {12}, {13, 14}}, 0.8, 0.01),
		"mixed":      drawModel(r, mixed, append(ringScopes(13), []int{0, 4, 7}, []int{1, 2, 4}, []int{2}), 0.8, 0.01),
		"alone":      drawModel(r, mixed, [][]int{{0}, {1}, {6}}, 0.8, 0),
	} {
		m, err := New(e)
		if err != nil {
			t.Fatal(err)
		}
		if m.uniform.spins != nil && (m.uniform.spins.denseRows != nil) != (name == "dense") {
			t.Fatalf("%s: dense is %v", name, m.uniform.spins.denseRows != nil)
		}
		for _, step := range []Step{HeatBath, Metropolis, Forests} {
			var runs [2]*Weights
			for k := range runs {
				setVectors(k == 0)
				p := Path{Rungs: 400, Step: step, FromBeliefs: step != Metropolis, Knots: []float64{0.3, 0.5, 1}, Seed: 5}
				if runs[k], err = m.Run(t.Context(), p, 16, 32, 2, true); err != nil {
					t.Fatal(err)
				}
			}
			for c := range runs[0].Ln {
				if runs[0].Ln[c] != runs[1].Ln[c] {
					t.Errorf("%s, step %d, chain %d: %v and %v", name, step, c, runs[0].Ln[c], runs[1].Ln[c])
				}
			}
		}
	}
}

// TestSharesOfChainsAreThoseOfTheWhole: chains do not know with which others they are run.
func TestSharesOfChainsAreThoseOfTheWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 3))
	for _, e := range []*sumproduct.Expression{
		drawModel(r, []int{2, 2, 2, 2, 2}, ringScopes(5), 1, 0), drawModel(r, []int{3, 2, 2, 4, 2}, ringScopes(5), 1, 0.1),
	} {
		m, err := New(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []Path{{Rungs: 20, Step: Forests, Seed: 1}, {Rungs: 20, Seed: 2, Modes: 2}} {
			whole, err := m.Run(t.Context(), p, 0, 32, 3, false)
			if err != nil {
				t.Fatal(err)
			}
			part, err := m.Run(t.Context(), p, 16, 24, 1, false)
			if err != nil {
				t.Fatal(err)
			}
			for k, l := range part.Ln {
				if l != whole.Ln[16+k] {
					t.Errorf("chain %d: %v and %v", 16+k, l, whole.Ln[16+k])
				}
			}
			if whole.Ln[0] == whole.Ln[1] {
				t.Error("two chains are the same")
			}
		}
	}
}

// TestBeta: knots are reached at equal parts of the rungs, with straight lines between them.
func TestBeta(t *testing.T) {
	p := Path{Rungs: 8, Knots: []float64{0.1, 0.2, 0.6, 1}}
	for k, want := range []float64{0, 0.05, 0.1, 0.15, 0.2, 0.4, 0.6, 0.8, 1} {
		if got := p.Beta(k); math.Abs(got-want) > 1e-15 {
			t.Errorf("β of rung %d is %v, not %v", k, got, want)
		}
		if got := (&Path{Rungs: 8}).Beta(k); got != float64(k)/8 {
			t.Errorf("without knots β of rung %d is %v", k, got)
		}
	}
	p.Rungs = 7
	if p.Beta(7) != 1 || p.Beta(0) != 0 {
		t.Errorf("β from %v to %v", p.Beta(0), p.Beta(7))
	}
}

// TestGainsAddUp to the logarithms of the weights, over the same chains as Run's.
func TestGainsAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for name, e := range map[string]*sumproduct.Expression{
		"spins": drawModel(r, []int{2, 2, 2, 2, 2}, pairScopes(5), 1, 0), "mixed": drawModel(r, []int{3, 2, 4}, pairScopes(3), 1, 0),
	} {
		m, err := New(e)
		if err != nil {
			t.Fatal(err)
		}
		p := Path{Rungs: 24, Seed: 2, Knots: []float64{0.3, 1}}
		gains, w, err := m.Gains(t.Context(), p, 8, 24, 6)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := m.Run(t.Context(), p, 8, 24, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		constant := math.NaN()
		for c, ln := range w.Ln {
			if ln != whole.Ln[c] {
				t.Errorf("%s, chain %d: %v and %v", name, c, ln, whole.Ln[c])
			}
			for k := range gains {
				ln -= gains[k][c]
			}
			if c == 0 {
				constant = ln
			}
			if math.Abs(ln-constant) > 1e-5 {
				t.Errorf("%s, chain %d: %v beside its gains, and %v of others", name, c, ln, constant)
			}
		}
	}
}

// TestExp2: the powers of the loops are within a few units in the last place.
func TestExp2(t *testing.T) {
	for x := float32(-126); x < 126; x += 0.0137 {
		if got, want := float64(exp2Minus(x)), math.Exp2(-float64(x)); math.Abs(got-want) > 2.5e-7*want {
			t.Fatalf("2^-%v is %v, not %v", x, got, want)
		}
	}
}

// TestSmallConditionals: tables whose product leaves the range of float64 are no obstacle.
func TestSmallConditionals(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{3}, Scale: scaled.One}
	for range 8 {
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{0}, Data: []float64{1e-300, 1, 1e-300}})
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{0}, Data: []float64{1, 2e-300, 3}})
	}
	m, err := New(e)
	if err != nil {
		t.Fatal(err)
	}
	w, err := m.Run(t.Context(), Path{Rungs: 2000, Seed: 1}, 0, 64, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	// ln Z = 8 ln(3·1e-300) and little beside it.
	if want := 8 * math.Log(3e-300); math.Abs(w.Top-want) > 12 {
		t.Errorf("largest weight e^%v, Z e^%v", w.Top, want)
	}
	if w.Share[0][2] < 0.99*(w.Share[0][0]+w.Share[0][1]) {
		t.Errorf("shares %v", w.Share[0])
	}
}

// TestWhatIsRefused: entries below 0, and a context that is over.
func TestWhatIsRefused(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2}, Scale: scaled.One, Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{1, -1}}}}
	if _, err := New(e); err == nil {
		t.Error("an entry below 0 is accepted")
	}
	e.Tables[0].Data[1] = 1
	m, err := New(e)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Run(ctx, Path{Rungs: 10}, 0, 8, 1, false); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// BenchmarkSweep tells steps per second and flops' seconds per second, with vectors and without.
func BenchmarkSweep(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 3))
	of := func(n, d int) []int {
		dims := make([]int, n)
		for i := range dims {
			dims[i] = d
		}
		return dims
	}
	regular := append(ringScopes(300), ringScopes(150)...)
	for k := range 150 {
		regular[300+k] = []int{k, k + 150}
	}
	four := tripleScopes(300)
	for k := range four {
		four[k] = append(four[k], (7*k+5)%300)
	}
	for name, e := range map[string]*sumproduct.Expression{
		"regular-300": drawModel(r, of(300, 2), regular, 1, 0), "complete-40": drawModel(r, of(40, 2), pairScopes(40), 0.5, 0),
		"complete-100": drawModel(r, of(100, 2), pairScopes(100), 0.2, 0), "triples-300": drawModel(r, of(300, 2), tripleScopes(300), 1, 0),
		"four-300": drawModel(r, of(300, 2), four, 1, 0), "potts-3": drawModel(r, of(300, 3), regular, 1, 0),
		"potts-8": drawModel(r, of(300, 8), regular, 1, 0), "values-20": drawModel(r, of(300, 20), regular, 1, 0),
	} {
		m, err := New(e)
		if err != nil {
			b.Fatal(err)
		}
		for _, way := range []struct {
			name string
			on   bool
			step Step
		}{{"/vectors", true, HeatBath}, {"/portable", false, HeatBath}, {"/forests", true, Forests}} {
			b.Run(name+way.name, func(b *testing.B) {
				defer setVectors(setVectors(way.on))
				rungs := 0
				for b.Loop() {
					if _, err := m.Run(b.Context(), Path{Rungs: 1000, Step: way.step}, 0, GroupSize, 1, false); err != nil {
						b.Fatal(err)
					}
					rungs += 1000 * GroupSize
				}
				b.ReportMetric(float64(rungs*len(e.Dims))/b.Elapsed().Seconds(), "steps/s")
				b.ReportMetric(m.Flops(way.step, rungs)/3e9/b.Elapsed().Seconds(), "priced")
			})
		}
	}
}
