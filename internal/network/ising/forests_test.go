package ising

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// random is a model of n spins and so many couplings, U(−1, 1).
func random(r *rand.Rand, n, couplings int) *Model {
	by := make([]map[int32]float64, n)
	for i := range by {
		by[i] = map[int32]float64{}
	}
	for couplings > 0 {
		a, b := r.IntN(n), r.IntN(n)
		if _, known := by[a][int32(b)]; known || a == b {
			continue
		}
		j := 2*r.Float64() - 1
		by[a][int32(b)], by[b][int32(a)] = j, j
		couplings--
	}
	m := &Model{N: n, H: make([]float64, n), First: make([]int32, n+1)}
	for i := range n {
		for k := range int32(n) {
			if j, known := by[i][k]; known {
				m.To, m.J = append(m.To, k), append(m.J, j)
			}
		}
		m.First[i+1] = int32(len(m.To))
	}
	return m
}

// inForests returns the share of Σ J² within classes, and the number of spins on cycles or between them: the spins that remain
// after leaves are removed as long as there are any.
func inForests(m *Model, classes [][]int) (share float64, onCycles int) {
	class := make([]int, m.N)
	for c, members := range classes {
		for _, i := range members {
			class[i] = c
		}
	}
	degree := make([]int, m.N)
	within, all := 0.0, 0.0
	for i := range m.N {
		for k := m.First[i]; k < m.First[i+1]; k++ {
			all += m.J[k] * m.J[k]
			if class[m.To[k]] == class[i] {
				within += m.J[k] * m.J[k]
				degree[i]++
			}
		}
	}
	gone := make([]bool, m.N)
	for again := true; again; {
		again = false
		for i := range m.N {
			if gone[i] || degree[i] > 1 {
				continue
			}
			gone[i], again = true, true
			for _, to := range m.To[m.First[i]:m.First[i+1]] {
				if class[to] == class[i] && !gone[to] {
					degree[to]--
				}
			}
		}
	}
	for _, g := range gone {
		if !g {
			onCycles++
		}
	}
	return within / math.Max(all, 1e-300), onCycles
}

// TestForestsHaveNoCycles: classes are a partition, no class has a cycle, and a half or more of Σ J² is within them on sparse models.
func TestForestsHaveNoCycles(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, c := range []struct {
		n, couplings int
		least        float64
	}{{1, 0, 0}, {5, 0, 0}, {2, 1, 1}, {9, 36, 0.1}, {60, 50, 0.9}, {100, 150, 0.7}, {100, 200, 0.55}, {300, 450, 0.7}, {40, 300, 0.1}} {
		m := random(r, c.n, c.couplings)
		classes := m.Forests()
		members := slices.Concat(classes...)
		slices.Sort(members)
		for i, k := range members {
			if i != k || len(members) != c.n {
				t.Fatalf("%d spins, %d couplings: classes have %v", c.n, c.couplings, members)
			}
		}
		share, onCycles := inForests(m, classes)
		if onCycles > 0 {
			t.Errorf("%d spins, %d couplings: %d spins are on cycles", c.n, c.couplings, onCycles)
		}
		if share < c.least {
			t.Errorf("%d spins, %d couplings: %.2f of the squares of couplings are within forests", c.n, c.couplings, share)
		}
		for k, again := range m.Forests() {
			if !slices.Equal(again, classes[k]) || !slices.IsSorted(again) || len(again) == 0 {
				t.Fatalf("%d spins, %d couplings: class %d is %v, then %v", c.n, c.couplings, k, classes[k], again)
			}
		}
	}
}
