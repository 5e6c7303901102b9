package plan

// A bound on every elimination, before any order is looked for.

import (
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// outOfReach returns the error, over budget, of a network of which every elimination order and every contraction tree takes more than
// limit flops: some subgraph of the variables that its tables join has degree k at each of them, so that the treewidth is at least k
// (Lovász and Szekeres' degeneracy). nil says nothing. Cost: linear in the pairs of variables that tables join.
func outOfReach(net *btn.Network, limit float64) error {
	n := len(net.Links)
	link := net.LegLink()
	free := make([]bool, n)
	for l := range net.Links {
		cp, ok := net.Links[l].T.(*tensor.CP)
		if !ok {
			return nil
		}
		possible := 0
		for _, w := range cp.Weights {
			if w != 0 {
				possible++
			}
		}
		free[l] = possible > 1
	}
	neighbours := make([]map[int32]struct{}, n)
	for _, core := range net.Cores {
		for i, a := range core.Legs {
			for _, b := range core.Legs[:i] {
				u, v := link[a], link[b]
				if u == v || !free[u] || !free[v] {
					continue
				}
				for _, e := range [][2]int{{u, v}, {v, u}} {
					if neighbours[e[0]] == nil {
						neighbours[e[0]] = map[int32]struct{}{}
					}
					neighbours[e[0]][int32(e[1])] = struct{}{}
				}
			}
		}
	}
	k := degeneracy(neighbours)
	if flops := math.Exp2(float64(k) + 1); flops > limit {
		return fault.New(fault.OverBudget,
			"plan: exact: every elimination order has a table of at least 2^%d entries, and %.3g operations are allowed", k+1, limit)
	}
	return nil
}

// degeneracy is the largest k for which some subgraph has degree k everywhere: vertices of least degree are removed one after the other.
func degeneracy(neighbours []map[int32]struct{}) (k int) {
	n := len(neighbours)
	degree, gone := make([]int, n), make([]bool, n)
	buckets := make([][]int32, n+1)
	for v := range neighbours {
		degree[v] = len(neighbours[v])
		buckets[degree[v]] = append(buckets[degree[v]], int32(v))
	}
	for at := 0; at <= n; {
		if len(buckets[at]) == 0 {
			at++
			continue
		}
		last := len(buckets[at]) - 1
		v := buckets[at][last]
		buckets[at] = buckets[at][:last]
		if gone[v] || degree[v] != at {
			continue
		}
		gone[v] = true
		k = max(k, at)
		for u := range neighbours[v] {
			if !gone[u] {
				degree[u]--
				buckets[degree[u]] = append(buckets[degree[u]], u)
				at = min(at, degree[u])
			}
		}
	}
	return k
}

// plain reports whether a network has tables and identity maps alone: no closed form of it is of few terms.
func plain(net *btn.Network) bool {
	for _, m := range net.Maps {
		if m.A != nil {
			return false
		}
	}
	for _, core := range net.Cores {
		if _, ok := core.T.(*tensor.Dense); !ok {
			return false
		}
	}
	return true
}
