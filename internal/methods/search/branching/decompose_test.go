package branching

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
)

// TestAlongSeparators: what the root leaves is searched along its separators, and the optimum is that of enumeration.
func TestAlongSeparators(t *testing.T) {
	nodes := int64(0)
	for seed := range uint64(600) {
		n := drawNetwork(rand.New(rand.NewPCG(seed, 1)))
		if seed%2 == 0 {
			n = drawDense(rand.New(rand.NewPCG(seed, 2)))
		}
		costs := sortedCosts(n)
		want := math.Inf(1)
		if len(costs) > 0 {
			want = costs[0]
		}
		s, possible := newSolver(context.Background(), n)
		if !possible {
			continue
		}
		s.openBytesLimit = 1 << 14
		s.offerGreedyStart()
		if seed%3 == 0 { // without an assignment
			s.upperBound, s.bestCost, s.best, s.bestNats = s.forbidden, s.forbidden, nil, math.Inf(1)
		}
		open := true // less than the root does
		for x := range s.vars {
			if open = open && s.makeNodeConsistent(int32(x)); s.vars[x].domainSize == 1 {
				s.toAssign = append(s.toAssign, int32(x))
			}
		}
		open = open && s.propagateAll()
		s.trail = s.trail[:0]
		if open = open && s.cells[s.openCountCell] > 0; open {
			s.leafFloor = math.MaxInt64
			s.open = append(s.open, &node{bound: s.lowerBound()})
			for k := 0; s.provenBound < s.upperBound; k++ {
				s.work = 1 << min(k, 30)
				s.open[0].bound = 0
				decompose(s)
				if bound := s.base + float64(min(s.provenBound, s.upperBound))*s.unit; bound > want {
					t.Fatalf("seed %d: bound %v, the optimum is %v", seed, bound, want)
				}
				if k > 60 {
					t.Fatalf("seed %d: not proved", seed)
				}
			}
		}
		nodes += s.stats.Decomposed
		if s.bestNats < want || open && s.bestNats > want+tolerance(n) {
			t.Fatalf("seed %d: %v, the optimum is %v", seed, s.bestNats, want)
		}
	}
	if nodes < 200 {
		t.Errorf("%d nodes", nodes)
	}
}

// drawDense draws a network whose variables have more neighbours than an elimination takes: pairs and triples, with ties or forbidden
// combinations.
func drawDense(rng *rand.Rand) *Network {
	n := &Network{}
	for range 7 + rng.IntN(3) {
		n.Domains = append(n.Domains, 2+rng.IntN(2))
	}
	zeros := []float64{0, 0.1, 0.3}[rng.IntN(3)]
	for range 3 * len(n.Domains) {
		f := Factor{Scope: rng.Perm(len(n.Domains))[:2+rng.IntN(2)]}
		size := 1
		for _, v := range f.Scope {
			size *= n.Domains[v]
		}
		ties := rng.IntN(2) == 0
		for range size {
			x := 3 * rng.NormFloat64()
			if ties {
				x = math.Round(x)
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
