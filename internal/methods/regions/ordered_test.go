package regions

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// excluding are blocks of n sites with weights λ, of which no two in different blocks are occupied: Z = 1 + Σ_b ((1 + λ_b)^n − 1).
func excluding(n int, weights ...float64) (e *sumproduct.Expression, lnZ float64) {
	e = &sumproduct.Expression{Scale: scaled.One}
	z := 1.0
	for b, w := range weights {
		z += math.Pow(1+w, float64(n)) - 1
		for range n {
			i := len(e.Dims)
			e.Dims = append(e.Dims, 2)
			e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i}, Data: []float64{1, w}})
			for k := range b * n {
				e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{k, i}, Data: []float64{1, 1, 1, 0}})
			}
		}
	}
	return e, math.Log(z)
}

// renamed are n Potts spins, all pairs coupled by J, the q values of each permuted: the sum over counts, with a field on one.
func renamed(n, q int, j float64) (e *sumproduct.Expression, lnZ float64) {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(q)))
	e = &sumproduct.Expression{Scale: scaled.One}
	var names [][]int
	for i := range n {
		e.Dims, names = append(e.Dims, q), append(names, rng.Perm(q))
		for k := range i {
			data := make([]float64, q*q)
			for a := range q {
				for b := range q {
					data[a*q+b] = 1
					if names[k][a] == names[i][b] {
						data[a*q+b] = math.Exp(j)
					}
				}
			}
			e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{k, i}, Data: data})
		}
	}
	lnFactorial := func(n int) float64 { x, _ := math.Lgamma(float64(n + 1)); return x }
	sum := 0.0
	var counts func(left, values int, ln float64)
	counts = func(left, values int, ln float64) {
		if values == 1 {
			sum += math.Exp(ln - lnFactorial(left) + j*float64(left*(left-1))/2 - j*float64(n*n)/2)
			return
		}
		for c := range left + 1 {
			counts(left-c, values-1, ln-lnFactorial(c)+j*float64(c*(c-1))/2)
		}
	}
	counts(n, q, lnFactorial(n))
	return e, math.Log(sum) + j*float64(n*n)/2
}

// TestPhasesFromMaxima: belief propagation that begins near maxima finds every phase, and their sum is near ln Z in closed form, where one
// start leaves out most of them.
func TestPhasesFromMaxima(t *testing.T) {
	for name, c := range map[string]struct {
		make func() (*sumproduct.Expression, float64)
		off  float64 // at most
		one  float64 // that the first state alone is off at least
	}{
		"two blocks":           {func() (*sumproduct.Expression, float64) { return excluding(30, 1.02, 1) }, 1e-6, 0.3},
		"three equal blocks":   {func() (*sumproduct.Expression, float64) { return excluding(20, 1, 1, 1) }, 1e-4, 1},
		"four values":          {func() (*sumproduct.Expression, float64) { return renamed(14, 4, 0.7) }, 0.02, 1},
		"more values than run": {func() (*sumproduct.Expression, float64) { return renamed(8, 9, 2) }, 0.02, 2},
	} {
		e, want := c.make()
		first, err := bp.Propagate(t.Context(), e, bp.PropagateOptions{Starts: 1})
		if err != nil {
			t.Fatal(err)
		}
		j := &proposal.Job{Settings: query.Settings{Budget: 20 * policy.Rate}}
		all, err := findPhases(t.Context(), j, e, first)
		if err != nil {
			t.Fatal(err)
		}
		got, terms := all.sumOfPhases()
		if math.Abs(got-want) > c.off || terms < 2 || math.Abs(first[0].LnZ()-want) < c.one {
			t.Errorf("%s: %v by %d of %d states, want %v; the first is %v", name, got, terms, len(all.states), want, first[0].LnZ())
		}
		j.Settings.Budget = 1
		if few, err := findPhases(t.Context(), j, e, first); err != nil || len(few.states) != 1 {
			t.Errorf("%s, without work: %d states, %v", name, len(few.states), err)
		}
	}
}
