package generate_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// couplings reads h and J back off the tables.
func couplings(t *testing.T, m *factorgraph.Model) (h []float64, pairs map[[2]int]float64) {
	t.Helper()
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	pairs = map[[2]int]float64{}
	for _, f := range m.Factors {
		data := f.Table.(*tensor.Dense).Data
		if len(f.Scope) == 1 {
			h = append(h, math.Log(data[1]))
			continue
		}
		if data[0] != data[3] || data[1] != data[2] {
			t.Errorf("factor on %v is not a function of x·y: %v", f.Scope, data)
		}
		e := [2]int{f.Scope[0], f.Scope[1]}
		if _, twice := pairs[e]; twice || e[0] >= e[1] {
			t.Errorf("edge %v is there twice or the wrong way round", e)
		}
		pairs[e] = math.Log(data[0])
	}
	return h, pairs
}

// TestIsingIsItsEnergy: Z = Σ_x exp(Σ J x x + Σ h x), x = ±1, over all spins.
func TestIsingIsItsEnergy(t *testing.T) {
	for seed, attractive := range []bool{false, true} {
		o := generate.Ising{Delta: 1, Attractive: attractive, Seed: uint64(seed)}
		for what, build := range map[string]func() (*factorgraph.Model, error){
			"grid 3 × 4":  func() (*factorgraph.Model, error) { return generate.Grid(3, 4, o) },
			"complete 6":  func() (*factorgraph.Model, error) { return generate.Complete(6, o) },
			"3-regular 8": func() (*factorgraph.Model, error) { return generate.RandomRegular(8, 3, o) },
			"3 + 4":       func() (*factorgraph.Model, error) { return generate.Bipartite(3, 4, o) },
		} {
			m, err := build()
			if err != nil {
				t.Fatal(err)
			}
			h, pairs := couplings(t, m)
			for i, v := range h {
				if math.Abs(v) > 0.1 {
					t.Errorf("%s: h_%d = %v", what, i, v)
				}
			}
			negative := 0
			for e, v := range pairs {
				if math.Abs(v) > 1 {
					t.Errorf("%s: J_%v = %v", what, e, v)
				}
				if v < 0 {
					negative++
				}
			}
			if (negative > 0) == attractive {
				t.Errorf("%s, attractive %v: %d of %d couplings are negative", what, attractive, negative, len(pairs))
			}
			z := 0.0
			for bits := range 1 << len(h) {
				spin := func(i int) float64 { return float64(bits>>i&1)*2 - 1 }
				energy := 0.0
				for i, v := range h {
					energy += v * spin(i)
				}
				for e, v := range pairs {
					energy += v * spin(e[0]) * spin(e[1])
				}
				z += math.Exp(energy)
			}
			if off := math.Abs(math.Log(z) - oracle.Ln(oracle.Z(m, factorgraph.Evidence{}))); off > 1e-12 {
				t.Errorf("%s: ln Z is off by %g", what, off)
			}
		}
	}
}

func TestGraphs(t *testing.T) {
	grid, err := generate.Grid(2, 3, generate.Ising{Delta: 1})
	if err != nil {
		t.Fatal(err)
	}
	var edges [][]int
	for _, f := range grid.Factors[6:] {
		edges = append(edges, f.Scope)
	}
	if got := fmt.Sprint(edges); got != "[[0 1] [0 3] [1 2] [1 4] [2 5] [3 4] [4 5]]" {
		t.Errorf("grid 2 × 3 has edges %s", got)
	}
	for _, c := range [][2]int{
		{1, 0},
		{10, 0},
		{10, 3},
		{9, 4},
		{9, 8},
		{12, 9},
		{30, 7},
		{200, 3},
		{50, 30},
	} {
		n, degree := c[0], c[1]
		m, err := generate.RandomRegular(n, degree, generate.Ising{Delta: 1, Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		_, pairs := couplings(t, m)
		count := make([]int, n)
		for e := range pairs {
			count[e[0]]++
			count[e[1]]++
		}
		for i, d := range count {
			if d != degree {
				t.Errorf("%d-regular on %d: variable %d has degree %d", degree, n, i, d)
			}
		}
	}
	edgesOf := func(seed uint64) string {
		m, err := generate.RandomRegular(20, 3, generate.Ising{Delta: 1, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		var edges [][]int
		for _, f := range m.Factors[20:] {
			edges = append(edges, f.Scope)
		}
		return fmt.Sprint(edges)
	}
	first, again := edgesOf(1), edgesOf(1)
	if first != again || first == edgesOf(2) {
		t.Error("the seed does not decide the graph")
	}
}
