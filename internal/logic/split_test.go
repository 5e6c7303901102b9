package logic_test

// A search in cubes: they sum to the whole, and each follows the order of the split.

import (
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/logic"
	"github.com/basetensor/basetensor/internal/logic/compiler"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// linked draws a model whose variables have up to three values, some of them the same as others in other words: simplification
// takes the copies out, and cubes cover the rest.
func linked(rng *rand.Rand) *factorgraph.Model {
	m := &factorgraph.Model{}
	const n = 10
	for range n {
		m.Domains = append(m.Domains, 2+rng.IntN(2))
	}
	add := func(scope []int, entry func(k int) float64) {
		var shape []int
		cells := 1
		for _, v := range scope {
			shape, cells = append(shape, m.Domains[v]), cells*m.Domains[v]
		}
		data := make([]float64, cells)
		for k := range data {
			data[k] = entry(k)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: &tensor.Dense{Shape: shape, Data: data}})
	}
	for range 2 { // y is a function of x
		p := rng.Perm(n)[:2]
		x, y := p[0], p[1]
		shift := rng.IntN(3)
		add(p, func(k int) float64 {
			if (k/m.Domains[y]+shift)%m.Domains[y] == k%m.Domains[y] && m.Domains[x] > 1 {
				return 1
			}
			return 0
		})
	}
	for range 10 {
		add(rng.Perm(n)[:3], func(int) float64 {
			if rng.IntN(4) == 0 {
				return 0
			}
			return 0.5 + rng.Float64()
		})
	}
	return m
}

func TestCubesSumToTheWhole(t *testing.T) {
	split, ordered := 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 32))
		m := linked(rng)
		p := enginetest.New(t, m, factorgraph.Evidence{}, reparam.Options{}, seed)
		cubes, err := logic.Split(t.Context(), p.Base, logic.Options{Work: 100}, compiler.SplitOptions{Most: 6, Again: 100})
		if fault.CodeOf(err) == fault.Unsupported && err != nil {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(cubes.Literals) > 1 {
			split++
		}
		if len(cubes.Order) > 0 {
			ordered++
		}
		sum := scaled.Number{}
		for _, c := range cubes.Literals {
			z, of, err := logic.Sum(t.Context(), p.Base, logic.Options{Cube: c, Order: cubes.Order})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			checkCircuit(t, of)
			sum = sum.Add(z)
		}
		sum = sum.Mul(p.Base.Scale)
		want := oracle.Z(m, factorgraph.Evidence{})
		if off := oracle.Off(sum.Mant, sum.Exp, want, want); off > 1e-12 || want.Sign() == 0 != sum.IsZero() {
			t.Fatalf("seed %d: %d cubes sum to %v, enumeration %v", seed, len(cubes.Literals), sum, want)
		}
	}
	if split < 20 || ordered < 20 {
		t.Errorf("%d models were split, %d had an order", split, ordered)
	}
}

// TestFewerCubesWhereTheyRepeatWork: without leave to do work again there is one cube.
func TestFewerCubesWhereTheyRepeatWork(t *testing.T) {
	m := linked(rand.New(rand.NewPCG(3, 32)))
	p := enginetest.New(t, m, factorgraph.Evidence{}, reparam.Options{}, 3)
	for again, want := range map[float64]int{0: 1, 100: 6} {
		cubes, err := logic.Split(t.Context(), p.Base, logic.Options{Work: 1}, compiler.SplitOptions{Most: 6, Again: again})
		if err != nil || len(cubes.Literals) != want {
			t.Errorf("again %v: %d cubes, want %d: %v", again, len(cubes.Literals), want, err)
		}
	}
}
