package search

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
)

// draw draws a small network: tables of one to four variables, forbidden combinations, ties, wild costs.
func draw(rng *rand.Rand) *Network {
	n := &Network{Domains: make([]int, 2+rng.IntN(7))}
	size := 1
	for v := range n.Domains {
		n.Domains[v] = 1 + rng.IntN(4)
		if size*n.Domains[v] > 400 {
			n.Domains[v] = 1
		}
		size *= n.Domains[v]
	}
	kind := rng.IntN(5)
	zeros := []float64{0, 0, 0.1, 0.3}[rng.IntN(4)]
	arity := 2 + rng.IntN(3)
	for range 1 + rng.IntN(2*len(n.Domains)+2) {
		f := Factor{Scope: rng.Perm(len(n.Domains))[:min(len(n.Domains), 1+rng.IntN(arity))]}
		size := 1
		for _, v := range f.Scope {
			size *= n.Domains[v]
		}
		for range size {
			var x float64
			switch kind {
			case 0:
				x = -math.Log(rng.Float64())
			case 1:
				x = float64(rng.IntN(3)) // ties
			case 2:
				x = math.Exp(rng.NormFloat64()*8) * float64(1-2*rng.IntN(2)) // wild
			case 3:
				x = 5 * rng.NormFloat64()
			case 4:
				x = float64(rng.IntN(2)) * math.Ln2
			}
			if rng.Float64() < zeros {
				x = math.Inf(1)
			}
			f.Costs = append(f.Costs, x)
		}
		n.Factors = append(n.Factors, f)
	}
	return n
}

// enumerate is the least cost of all assignments.
func enumerate(n *Network) float64 {
	least := math.Inf(1)
	values := make([]int, len(n.Domains))
	for {
		least = min(least, n.Cost(values))
		v := len(values) - 1
		for ; v >= 0; v-- {
			if values[v]++; values[v] < n.Domains[v] {
				break
			}
			values[v] = 0
		}
		if v < 0 {
			return least
		}
	}
}

// tolerance is the rounding of a network's bound: a unit and a quarter for every table, and float64's.
func tolerance(n *Network) float64 {
	m, possible := n.merge()
	if !possible {
		return 0
	}
	unit, _ := m.unit()
	return unit*1.25*float64(len(n.Factors)+len(n.Domains)) + (m.size+math.Abs(m.constant))*0x1p-49
}

// TestEqualToEnumeration: the optimum is that of enumeration, and no bound is above it, wherever the search stops.
func TestEqualToEnumeration(t *testing.T) {
	for seed := range uint64(4000) {
		n := draw(rand.New(rand.NewPCG(seed, 1)))
		want := enumerate(n)
		for _, work := range []int64{0, 1, 100, 1000} {
			r, err := Solve(context.Background(), n, Options{Work: work})
			if err != nil {
				t.Fatal(err)
			}
			slack := tolerance(n)
			switch {
			case r.Bound > want:
				t.Fatalf("seed %d, %d work: bound %v, the optimum is %v", seed, work, r.Bound, want)
			case r.Values != nil && n.Cost(r.Values) != r.Cost:
				t.Fatalf("seed %d: cost %v, said to be %v", seed, n.Cost(r.Values), r.Cost)
			case r.Cost < want:
				t.Fatalf("seed %d: cost %v below the optimum %v", seed, r.Cost, want)
			case work == 0 && !r.Proved:
				t.Fatalf("seed %d: not proved: %+v", seed, r)
			case r.Proved && r.Cost > want+slack:
				t.Fatalf("seed %d: proved %v, the optimum is %v (slack %g)", seed, r.Cost, want, slack)
			case r.Proved && r.Cost-r.Bound > slack:
				t.Fatalf("seed %d: proved %v with bound %v (slack %g)", seed, r.Cost, r.Bound, slack)
			}
		}
	}
}
