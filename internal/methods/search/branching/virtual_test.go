package branching

import (
	"context"
	"math/rand/v2"
	"testing"
)

// totalCost returns the cost of an assignment in the network as it is: the bound plus what remains in functions and variables. It fails the
// test if one of these is below 0.
func (s *solver) totalCost(t *testing.T, values []int) int64 {
	cost := s.lowerBound()
	add := func(c int64) {
		if c < 0 {
			t.Fatalf("a cost of %d", c)
		}
		cost += c
	}
	for x, a := range values {
		add(s.cells[s.vars[x].unaryCell+a])
	}
	for k := 0; k < len(s.arcs); k += 2 {
		e, reverse := &s.arcs[k], &s.arcs[k+1]
		a, b := values[e.from], values[e.to]
		add(e.table[a*s.vars[e.to].domainSize+b] - s.cells[e.movedCell+a] - s.cells[reverse.movedCell+b])
	}
	for k := range s.wides {
		w := &s.wides[k]
		c, at := int64(0), 0
		for i, x := range w.scope {
			at += values[x] * int(w.strides[i])
			c -= s.cells[w.movedCells[i]+values[x]]
		}
		add(c + w.table[at])
	}
	return cost
}

// TestVirtualMovesKeepTotals: a rise of the bound by virtual arc consistency leaves every assignment's total and no cost below 0, over
// pairs and wider functions, forbidden combinations among them; and there are rises.
func TestVirtualMovesKeepTotals(t *testing.T) {
	rises, wide := 0, 0
	for seed := range uint64(2000) {
		n := drawNetwork(rand.New(rand.NewPCG(seed, 9)))
		s, possible := newSolver(context.Background(), n)
		if !possible {
			continue
		}
		for x := range s.vars {
			s.makeNodeConsistent(int32(x))
		}
		v := s.newVirtual()
		for v.theta > 0 {
			x := v.findWipedOut()
			if x < 0 || v.raiseAlong(x) == 0 {
				v.theta /= 2
				continue
			}
			rises++
			for f := range v.usedFunctions {
				if f < ownCost {
					wide++
				}
			}
			if s.lowerBound() >= s.upperBound {
				break
			}
		}
		values := make([]int, len(n.Domains))
		for v := 0; v < len(values); {
			possible := true
			for x, a := range values {
				possible = possible && s.isLive(int32(x), int32(a))
			}
			if possible {
				if got, want := s.totalCost(t, values), s.costOfAll(values); got != want {
					t.Fatalf("seed %d: %v costs %d, %d before", seed, values, got, want)
				}
			}
			for v = 0; v < len(values); v++ {
				if values[v]++; values[v] < n.Domains[v] {
					break
				}
				values[v] = 0
			}
		}
	}
	if rises < 1000 || wide < 1000 {
		t.Errorf("%d rises, %d wide functions in them", rises, wide)
	}
}

// shops returns a network of n shops, each supplied from one of the houses, which has to be opened at a cost.
func shops(n, houses int, opening float64, rng *rand.Rand) *Network {
	network := &Network{Domains: make([]int, n+houses)}
	for j := range houses {
		network.Domains[n+j] = 2
		network.Factors = append(network.Factors, Factor{[]int{n + j}, []float64{0, opening}})
	}
	for i := range n {
		network.Domains[i] = houses
		way := make([]float64, houses)
		for j := range way {
			way[j] = 10 * rng.Float64()
			closed := make([]float64, 2*houses)
			closed[2*j] = 100
			network.Factors = append(network.Factors, Factor{[]int{i, n + j}, closed})
		}
		network.Factors = append(network.Factors, Factor{[]int{i}, way})
	}
	return network
}

// TestShops: virtual arc consistency proves the supply of 40 shops in half of the work that message passing takes, by many small steps:
// 74 million entries for the three of them.
func TestShops(t *testing.T) {
	work := int64(0)
	for seed := range uint64(3) {
		r, err := Solve(t.Context(), shops(40, 20, 8, rand.New(rand.NewPCG(seed, 4))), Options{Work: 1e8})
		if err != nil || !r.Proved {
			t.Fatalf("seed %d: %v, cost %v, bound %v", seed, err, r.Cost, r.Bound)
		}
		work += r.Stats.Work
	}
	if work > 4e7 {
		t.Errorf("%d entries looked at", work)
	}
}
