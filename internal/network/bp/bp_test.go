package bp_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/scaled"
)

func run(t *testing.T, e *sumproduct.Expression, o bp.Options) *bp.State {
	t.Helper()
	s, err := bp.Run(context.Background(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTreesAreExactAfterOnePair: ln Z and all marginals, at any numbering, against enumeration; with
// zeros too.
func TestTreesAreExactAfterOnePair(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		e := tree(rng, 2+rng.IntN(9), float64(seed%3)*0.1)
		sums := oracle.Sum(e, 0)
		want, marginals := oracle.Ln(sums.Z), sums.Marginals()
		for _, schedule := range []bp.Schedule{bp.Auto, bp.Residual} {
			s := run(t, e, bp.Options{Schedule: schedule})
			if math.IsInf(want-e.Scale.LogAbs(), -1) {
				if s.Contradiction < 0 || s.LnZ() != math.Inf(-1) {
					t.Errorf("seed %d: Z = 0, but BP says %v, contradiction %d", seed, s.LnZ(), s.Contradiction)
				}
				continue
			}
			if !s.Converged || schedule == bp.Auto && s.Sweeps > 1 {
				t.Errorf("seed %d: converged %v after %d pairs, change %g", seed, s.Converged, s.Sweeps, s.Change)
			}
			if math.Abs(s.LnZ()-want) > 1e-11 { // ln Scale alone is 3467: 5e-13 each rounding
				t.Errorf("seed %d: ln Z = %v, want %v", seed, s.LnZ(), want)
			}
			for i := range e.Dims {
				for x, p := range s.Belief(i) {
					if math.Abs(p-marginals[i][x]) > 1e-12 {
						t.Errorf("seed %d: P(%d = %d) = %v, want %v", seed, i, x, p, marginals[i][x])
					}
				}
			}
		}
	}
}

// TestFixedPointEquations: the messages of a converged run reproduce themselves, by a double loop
// that shares no code.
func TestFixedPointEquations(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 2))
		e := loopy(rng, 6, 8, float64(seed%2)*0.05)
		s := run(t, e, bp.Options{})
		if s.Contradiction >= 0 {
			continue
		}
		if !s.Converged {
			t.Errorf("seed %d: not converged, change %g", seed, s.Change)
			continue
		}
		for n, table := range e.Tables {
			for k, i := range table.Scope {
				want := make([]float64, e.Dims[i])
				each(e, table.Scope, func(x []int, at int) {
					p := table.Data[at]
					for l, j := range table.Scope {
						if l != k {
							p *= toFactor(e, s, n, j, x[l])
						}
					}
					want[x[k]] += p
				})
				compare(t, "message", s.ToVariable(n, k), want, 1e-10)
				v := make([]float64, e.Dims[i])
				for x := range v {
					v[x] = toFactor(e, s, n, i, x)
				}
				compare(t, "message to the factor", s.ToFactor(n, k), v, 1e-10)
				product := 0.0
				for x, m := range s.ToVariable(n, k) {
					product += m * s.ToFactor(n, k)[x]
				}
				if math.Abs(product-1) > 1e-12 {
					t.Errorf("seed %d: ⟨m, v⟩ = %v", seed, product)
				}
			}
		}
	}
}

// toFactor is Π over the tables of i other than table n of their messages at x.
func toFactor(e *sumproduct.Expression, s *bp.State, n, i, x int) float64 {
	p := 1.0
	for t, table := range e.Tables {
		if k := slices.Index(table.Scope, i); k >= 0 && t != n {
			p *= s.ToVariable(t, k)[x]
		}
	}
	return p
}

// each calls f with the values of scope and the place in a table over it.
func each(e *sumproduct.Expression, scope []int, f func(x []int, at int)) {
	dims := make([]int, len(scope))
	for k, i := range scope {
		dims[k] = e.Dims[i]
	}
	at := 0
	oracle.Each(dims, func(x []int) { f(x, at); at++ })
}

// compare checks that got and want are the same up to a factor.
func compare(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	a, b := 0.0, 0.0
	for x := range got {
		a += got[x]
		b += want[x]
	}
	for x := range got {
		if math.Abs(got[x]/a-want[x]/b) > tolerance {
			t.Errorf("%s: %v, want %v times a number", what, got, want)
			return
		}
	}
}

// TestBetheValueIsTheFreeEnergyOfTheBeliefs: ln Z_BP = Σ_t Σ b_t ln(T/b_t) + Σ_i (deg_i − 1) Σ b_i
// ln b_i.
func TestBetheValueIsTheFreeEnergyOfTheBeliefs(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 3))
		e := loopy(rng, 7, 9, float64(seed%2)*0.05)
		s := run(t, e, bp.Options{})
		if s.Contradiction >= 0 {
			continue
		}
		want, degree := 0.0, make([]int, len(e.Dims))
		for n, table := range e.Tables {
			b, total := make([]float64, len(table.Data)), 0.0
			each(e, table.Scope, func(x []int, at int) {
				b[at] = table.Data[at]
				for l, i := range table.Scope {
					b[at] *= toFactor(e, s, n, i, x[l])
				}
				total += b[at]
			})
			for at := range b {
				if b[at] > 0 {
					want += b[at] / total * math.Log(table.Data[at]*total/b[at])
				}
			}
			for _, i := range table.Scope {
				degree[i]++
			}
		}
		for i := range e.Dims {
			for _, p := range s.Belief(i) {
				if p > 0 {
					want += float64(degree[i]-1) * p * math.Log(p)
				}
			}
		}
		if math.Abs(s.LnZ()-want) > 1e-9 {
			t.Errorf("seed %d: %v, want %v", seed, s.LnZ(), want)
		}
	}
}

// TestSchedulesAgree: sequential, residual and damped runs come to the one fixed point of weak
// models.
func TestSchedulesAgree(t *testing.T) {
	e := ising(rand.New(rand.NewPCG(4, 4)), 12, 9, 0.5, false)
	want := run(t, e, bp.Options{}).LnZ()
	for _, o := range []bp.Options{
		{Schedule: bp.Residual},
		{Schedule: bp.Sequential, Damping: 0.4},
		{Seed: 9},
		{Schedule: bp.Residual, Seed: 3, Damping: 0.1},
	} {
		if s := run(t, e, o); !s.Converged || math.Abs(s.LnZ()-want) > 1e-9 {
			t.Errorf("%+v: converged %v, %v, want %v", o, s.Converged, s.LnZ(), want)
		}
	}
}

// TestRestore: converged messages are a fixed point when they come back.
func TestRestore(t *testing.T) {
	e := ising(rand.New(rand.NewPCG(5, 5)), 8, 8, 1, false)
	s := run(t, e, bp.Options{})
	if !s.Converged {
		t.Fatal("not converged")
	}
	r, err := bp.Restore(e, s.Messages())
	if err != nil {
		t.Fatal(err)
	}
	if !r.Converged || math.Abs(r.LnZ()-s.LnZ()) > 1e-12 || r.Change > 1e-12 {
		t.Errorf("restored: converged %v, change %g, ln Z %v, want %v", r.Converged, r.Change, r.LnZ(), s.LnZ())
	}
	e.Tables[0].Data[0] *= 2 // a table of order one
	if r, err = bp.Restore(e, s.Messages()); err != nil || r.Converged {
		t.Errorf("messages of another model: %v, converged %v", err, r.Converged)
	}
	if _, err := bp.Restore(e, s.Messages()[1:]); err == nil {
		t.Error("messages of another shape were taken")
	}
}

// TestPhases: below the critical temperature random starts find both magnetisations; the larger ln Z
// comes first.
func TestPhases(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	e := &sumproduct.Expression{Scale: scaled.One}
	for range 16 {
		e.Dims = append(e.Dims, 2)
	}
	for i := range 16 {
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i}, Data: []float64{1.02, 1}})
		for _, j := range []int{(i + 1) % 16, (i + 4) % 16} {
			c := math.Exp(0.8 + 0.1*rng.Float64())
			e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, j}, Data: []float64{c, 1 / c, 1 / c, c}})
		}
	}
	states, err := bp.FixedPoints(context.Background(), e, 12, bp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(states) < 2 || len(states) > 4 || states[0].Belief(0)[0] < 0.9 || states[1].Belief(0)[0] > 0.1 ||
		states[0].LnZ() <= states[1].LnZ() {
		t.Errorf("%d fixed points", len(states))
		for _, s := range states {
			t.Log(s.Converged, s.LnZ(), s.Belief(0))
		}
	}
}

// TestContradictions: Z = 0 is a state, the end of float64 a run with bounded messages.
func TestContradictions(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2, 2}, Scale: scaled.One, Tables: []sumproduct.Table{
		{Scope: []int{0, 1}, Data: []float64{1, 0, 0, 1}}, {Scope: []int{0}, Data: []float64{1, 0}},
		{Scope: []int{1}, Data: []float64{0, 1}}}}
	if s := run(t, e, bp.Options{}); s.Contradiction < 0 || s.Converged || s.LnZ() != math.Inf(-1) ||
		s.Belief(0)[0] != 0.5 {
		t.Errorf("contradiction %d, converged %v, ln Z %v, belief %v",
			s.Contradiction, s.Converged, s.LnZ(), s.Belief(0))
	}
	// Tiny numbers survive as long as no message holds both them and large ones.
	const small = 1e-300
	e.Tables[1].Data, e.Tables[2].Data = []float64{1, small}, []float64{small, 1}
	if s := run(t, e, bp.Options{}); math.Abs(s.LnZ()-math.Log(2*small)) > 1e-12*690 {
		t.Errorf("ln Z = %v", s.LnZ())
	}
	e.Tables = append(e.Tables, sumproduct.Table{
		Scope: []int{0},
		Data:  []float64{0, 1e-300},
	}, sumproduct.Table{Scope: []int{0}, Data: []float64{1, 1e-250}})
	if s := run(t, e, bp.Options{}); math.Abs(s.LnZ()-math.Log(1e-300)*2-math.Log(1e-250)) > 1e-9 {
		t.Errorf("ln Z = %v", s.LnZ())
	}
	// 1e-600 of a message is more than it holds: v_{0→1} is [1, 1e-600] and index 1 excludes the 1.
	e.Tables = []sumproduct.Table{{Scope: []int{0, 1}, Data: []float64{1, 0, 0, 1}},
		{Scope: []int{0}, Data: []float64{1, small}},
		{Scope: []int{0}, Data: []float64{1, small}}, {Scope: []int{1}, Data: []float64{0, 1}}}
	// It is no contradiction, and no fixed point. The value is one of messages of 2^-30 at least.
	if s := run(t, e, bp.Options{}); s.Contradiction >= 0 || s.Converged || math.IsInf(s.LnZ(), 0) || s.Belief(0)[1] == 0 {
		t.Errorf("a contradiction of float64: at %d, converged %v, ln Z %v, belief %v", s.Contradiction, s.Converged, s.LnZ(), s.Belief(0))
	}
	if s := run(t, &sumproduct.Expression{Dims: []int{3}}, bp.Options{}); s.LnZ() != math.Inf(-1) {
		t.Errorf("scale 0: ln Z = %v", s.LnZ())
	}
}

// TestNegativeEntries: trees stay exact, Z has its sign.
func TestNegativeEntries(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 8))
		e := tree(rng, 6, 0)
		e.Scale = scaled.One
		for _, table := range e.Tables {
			for a := range table.Data {
				if rng.IntN(4) == 0 {
					table.Data[a] = -table.Data[a]
				}
			}
		}
		want := 0.0
		oracle.Each(e.Dims, func(x []int) {
			p := 1.0
			for _, t := range e.Tables {
				p *= t.Data[place(e, t.Scope, x)]
			}
			want += p
		})
		s := run(t, e, bp.Options{})
		ln, sign := s.Z()
		if got := float64(sign) * math.Exp(ln); math.Abs(got-want) > 1e-10*max(1, math.Abs(want)) || !s.Signed {
			t.Errorf("seed %d: Z = %v, want %v", seed, got, want)
		}
	}
}

// TestHub: a variable in 3,000 tables is linear work and stays in range.
func TestHub(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	e := &sumproduct.Expression{Scale: scaled.One, Dims: []int{3}}
	want := []float64{0, 0, 0}
	for i := 1; i <= 3000; i++ {
		e.Dims = append(e.Dims, 2)
		table := draw(rng, e.Dims, []int{i, 0}, 0)
		e.Tables = append(e.Tables, table)
		for x := range want {
			want[x] += math.Log(table.Data[x] + table.Data[3+x])
		}
	}
	top := slices.Max(want)
	sum := 0.0
	for _, w := range want {
		sum += math.Exp(w - top)
	}
	s := run(t, e, bp.Options{})
	if lnZ := top + math.Log(sum); math.Abs(s.LnZ()-lnZ) > 1e-9 || s.Sweeps != 1 {
		t.Errorf("ln Z = %v, want %v; %d pairs", s.LnZ(), lnZ, s.Sweeps)
	}
}

func TestEdges(t *testing.T) {
	for _, c := range []struct {
		name string
		e    sumproduct.Expression
		want float64
	}{
		{"nothing", sumproduct.Expression{Scale: scaled.One}, 0},
		{"indices in no table", sumproduct.Expression{Scale: scaled.One, Dims: []int{2, 3}}, math.Log(6)},
		{"numbers", sumproduct.Expression{
			Scale:  scaled.FromFloat(2),
			Tables: []sumproduct.Table{{Data: []float64{5}}},
		}, math.Log(10)},
		{"a table of zeros", sumproduct.Expression{
			Scale:  scaled.One,
			Dims:   []int{2},
			Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{0, 0}}},
		}, math.Inf(-1)},
	} {
		if s := run(t, &c.e, bp.Options{}); s.LnZ() != c.want && math.Abs(s.LnZ()-c.want) > 1e-15 {
			t.Errorf("%s: ln Z = %v, want %v", c.name, s.LnZ(), c.want)
		}
	}
	for _, e := range []sumproduct.Expression{
		{Dims: []int{2}, Tables: []sumproduct.Table{{Scope: []int{1}, Data: []float64{1, 1}}}},
		{Dims: []int{2}, Tables: []sumproduct.Table{{Scope: []int{0, 0}, Data: []float64{1, 1, 1, 1}}}},
		{Dims: []int{2}, Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{1}}}},
	} {
		if _, err := bp.Run(context.Background(), &e, bp.Options{}); !errors.Is(err, sumproduct.ErrExpression) {
			t.Errorf("%+v: error %v", e, err)
		}
	}
	nan := sumproduct.Expression{
		Dims:   []int{1},
		Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{math.NaN()}}},
	}
	if _, err := bp.Run(context.Background(), &nan, bp.Options{}); !errors.Is(err, sumproduct.ErrNotFinite) {
		t.Errorf("NaN: error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := bp.Run(ctx, ising(rand.New(rand.NewPCG(1, 1)), 300, 300, 1, true),
		bp.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}

// TestUpdatesAreBounded: a frustrated model that does not converge ends at its budget with a state.
func TestUpdatesAreBounded(t *testing.T) {
	e := ising(rand.New(rand.NewPCG(2, 2)), 10, 10, 4, false)
	s := run(t, e, bp.Options{Updates: 3000})
	if s.Converged || s.Updates < 3000 || s.Updates > 3000+3*500 || !(s.Change > 0) || math.IsNaN(s.LnZ()) {
		t.Errorf("converged %v, %d updates, change %g, ln Z %v", s.Converged, s.Updates, s.Change, s.LnZ())
	}
}

func TestGauge(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 10))
		d := 1 + rng.IntN(6)
		m, v := make([]float64, d), make([]float64, d)
		dot := 0.0
		for x := range m {
			m[x], v[x] = rng.Float64(), rng.Float64()
			if seed%4 == 0 {
				v[x] = m[x]
			}
			dot += m[x] * v[x]
		}
		for x := range v {
			v[x] /= dot
		}
		a, inverse := bp.Gauge(m, v)
		for x := range d {
			if a[x*d] != m[x] || inverse[x] != v[x] {
				t.Fatalf("seed %d: column 0 is not m, or row 0 of the inverse not v", seed)
			}
			for y := range d {
				sum := 0.0
				for k := range d {
					sum += inverse[x*d+k] * a[k*d+y]
				}
				if x == y {
					sum--
				}
				if math.Abs(sum) > 1e-11 {
					t.Errorf("seed %d: the product with the inverse is off by %g at %d, %d", seed, sum, x, y)
				}
			}
		}
		for k := 1; k < d; k++ {
			column, row := 0.0, 0.0
			for x := range d {
				column += a[x*d+k] * a[x*d+k]
				row += inverse[k*d+x] * inverse[k*d+x]
			}
			if math.Abs(column-row) > 1e-9*row {
				t.Errorf("seed %d: column %d has norm² %g, its dual %g", seed, k, column, row)
			}
		}
	}
}

// TestLargeGrid converges on a 150×150 grid.
func TestLargeGrid(t *testing.T) {
	e := ising(rand.New(rand.NewPCG(11, 11)), 150, 150, 0.5, false)
	if s := run(t, e, bp.Options{}); !s.Converged {
		t.Error("not converged")
	}
}

// BenchmarkLargeGrid runs on a 1,000×1,000 grid.
func BenchmarkLargeGrid(b *testing.B) {
	e := ising(rand.New(rand.NewPCG(11, 11)), 1000, 1000, 0.5, false)
	for b.Loop() {
		s, err := bp.Run(b.Context(), e, bp.Options{})
		if err != nil || !s.Converged {
			b.Fatal(err, "not converged")
		}
		b.ReportMetric(float64(s.Sweeps), "pairs/op")
	}
}
