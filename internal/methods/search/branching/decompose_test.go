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
		n := draw(rand.New(rand.NewPCG(seed, 1)))
		if seed%2 == 0 {
			n = dense(rand.New(rand.NewPCG(seed, 2)))
		}
		costs := enumerate(n)
		want := math.Inf(1)
		if len(costs) > 0 {
			want = costs[0]
		}
		s, possible := newSolver(context.Background(), n)
		if !possible {
			continue
		}
		s.room = 1 << 14
		s.begin()
		if seed%3 == 0 { // without an assignment
			s.ub, s.bestCost, s.best, s.bestReal = s.forbidden, s.forbidden, nil, math.Inf(1)
		}
		open := true // less than the root does
		for x := range s.vars {
			if open = open && s.settle(int32(x)); s.vars[x].d == 1 {
				s.fixed = append(s.fixed, int32(x))
			}
		}
		open = open && s.everywhere()
		s.trail = s.trail[:0]
		if open = open && s.mem[s.openVars] > 0; open {
			s.floor = math.MaxInt64
			s.open = append(s.open, &node{bound: s.mem[s.bound]})
			for k := 0; s.below < s.ub; k++ {
				s.work = 1 << min(k, 30)
				s.open[0].bound = 0
				decompose(s)
				if bound := s.base + float64(min(s.below, s.ub))*s.unit; bound > want {
					t.Fatalf("seed %d: bound %v, the optimum is %v", seed, bound, want)
				}
				if k > 60 {
					t.Fatalf("seed %d: not proved", seed)
				}
			}
		}
		nodes += s.stats.Decomposed
		if s.bestReal < want || open && s.bestReal > want+tolerance(n) {
			t.Fatalf("seed %d: %v, the optimum is %v", seed, s.bestReal, want)
		}
	}
	if nodes < 200 {
		t.Errorf("%d nodes", nodes)
	}
}

// dense draws a network of more neighbours than an elimination at a node takes: pairs and triples, with ties or forbidden combinations.
func dense(rng *rand.Rand) *Network {
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
