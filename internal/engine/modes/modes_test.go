package modes

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// random is an expression over three to seven indices of random strength; every third seed allows entries of 0.
func random(seed uint64) *sumproduct.Expression {
	r := rand.New(rand.NewPCG(seed, 27))
	n := 3 + r.IntN(5)
	e := &sumproduct.Expression{Scale: scaled.FromFloat(math.Exp(3 * r.NormFloat64()))}
	for range n {
		e.Dims = append(e.Dims, []int{1, 2, 2, 2, 3}[r.IntN(5)])
	}
	e.Tables = oracle.RandomTables(r, e.Dims, 2*n, 0.5+3*r.Float64(), []float64{0, 0, 0.1}[seed%3])
	return e
}

// TestModesAreWhatTheySay: no change of one index increases the weight, conditional distributions agree with enumeration,
// and LnAround is between the weight of the mode and Z.
func TestModesAreWhatTheySay(t *testing.T) {
	found, several, more := 0, 0, 0
	for seed := range uint64(400) {
		e := random(seed)
		list, err := Find(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		z := 0.0
		oracle.Each(e.Dims, func(x []int) { z += math.Exp(oracle.LnWeight(e, x)) })
		if len(list) > 1 {
			several++
		}
		for _, m := range list {
			found++
			if ln := oracle.LnWeight(e, m.State); math.Abs(m.Ln-ln) > 1e-9*(1+math.Abs(ln)) {
				t.Errorf("seed %d: %v weighs e^%v, not e^%v", seed, m.State, ln, m.Ln)
			}
			if m.LnAround > math.Log(z)+1e-12 || m.LnAround < m.Ln-1e-9 {
				t.Errorf("seed %d: a mode of e^%v has e^%v around it, all weighs %v", seed, m.Ln, m.LnAround, z)
			}
			if m.LnAround > m.Ln+1e-6 {
				more++
			}
			x := slices.Clone(m.State)
			for i, d := range e.Dims {
				p, total := make([]float64, d), 0.0
				for a := range p {
					x[i] = a
					p[a] = math.Exp(oracle.LnWeight(e, x))
					total += p[a]
				}
				x[i] = m.State[i]
				for a := range p {
					if math.Abs(p[a]/total-m.Conditionals[i][a]) > 1e-9 || p[a] > p[m.State[i]]*(1+1e-9) {
						t.Errorf("seed %d, state %v: index %d is %d with %v, want %v of %v", seed, x, i, a, m.Conditionals[i][a], p[a], total)
					}
				}
			}
		}
	}
	if found < 300 || several < 50 || more < 200 {
		t.Errorf("%d modes, %d models have several, around %d there is more", found, several, more)
	}
}

// TestTheHeaviestStateIsFound in at least four of five models whose heaviest state has 90 % of Z.
func TestTheHeaviestStateIsFound(t *testing.T) {
	missed, models := 0, 0
	for seed := range uint64(800) {
		e := random(seed)
		list, err := Find(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		most, z := math.Inf(-1), 0.0
		oracle.Each(e.Dims, func(x []int) {
			ln := oracle.LnWeight(e, x)
			most = max(most, ln)
			z += math.Exp(ln)
		})
		if z == 0 || most < math.Log(z)-0.1 { // it does not dominate
			continue
		}
		models++
		if !slices.ContainsFunc(list, func(m Mode) bool { return m.Ln > most-0.5 }) {
			missed++
		}
	}
	if models < 50 || missed > models/5 {
		t.Errorf("of %d models %d miss it", models, missed)
	}
}

// switched is a ring of n weakly coupled spins with a switch: its last value pulls every spin to a random pattern.
func switched(n, values int, weight float64) (e *sumproduct.Expression, pattern []int) {
	r := rand.New(rand.NewPCG(uint64(n), 4))
	e = &sumproduct.Expression{Scale: scaled.One, Dims: append(slices.Repeat([]int{2}, n), values)}
	for i := range n {
		j := math.Exp(0.4*r.Float64() - 0.2)
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, (i + 1) % n}, Data: []float64{j, 1 / j, 1 / j, j}})
		pattern = append(pattern, r.IntN(2))
		pull := slices.Repeat([]float64{1}, 2*values)
		pull[2*(values-1)+pattern[i]], pull[2*(values-1)+1-pattern[i]] = weight, weight*math.Exp(-6)
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{n, i}, Data: pull})
	}
	return e, append(pattern, values-1)
}

// TestNarrowModesAreFound: the pattern behind the switch is the only mode, for the remaining states weigh nearly the same.
func TestNarrowModesAreFound(t *testing.T) {
	for _, n := range []int{20, 60, 200} {
		for _, values := range []int{2, 5} {
			e, pattern := switched(n, values, 2)
			list, err := Find(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			if len(list) != 1 || !slices.Equal(list[0].State, pattern) {
				t.Errorf("%d spins, %d values: %d modes, not %v", n, values, len(list), pattern)
			}
		}
	}
}

// TestTheSameModes: a second search returns the same modes, and a search from a given mode returns it.
func TestTheSameModes(t *testing.T) {
	e, pattern := switched(30, 3, 2)
	first, err := Find(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := Find(t.Context(), e); !reflect.DeepEqual(first, again) {
		t.Error("other modes")
	}
	given, err := Find(t.Context(), e, pattern)
	if err != nil || len(given) != 1 || !slices.Equal(given[0].State, pattern) {
		t.Errorf("%v, %v", given, err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	e := random(1)
	e.Tables[0].Data[0] = -1
	if _, err := Find(t.Context(), e); err == nil {
		t.Error("an entry below 0 is accepted")
	}
	zero := &sumproduct.Expression{Scale: scaled.One, Dims: []int{2}, Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{0, 0}}}}
	if list, err := Find(t.Context(), zero); err != nil || len(list) != 0 {
		t.Errorf("where all is forbidden: %v, %v", list, err)
	}
}
