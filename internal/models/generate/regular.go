package generate

// Random regular graphs.

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// regularGraph returns a random simple graph in which all n vertices have the given degree; n·degree
// is even and degree < n. Edges (i, j), i < j, in lexicographic order.
//
// Stubs are paired at random, a pair being refused if it would make a loop or a double edge, and the
// graph restarted if nothing but such pairs is left.
// Source: Steger and Wormald, Generating random regular graphs quickly (1999): close to uniform for
// degree ≪ √n, expected O(n·degree²). A degree above (n−1)/2 is the complement of a smaller one.
func regularGraph(rng *rand.Rand, n, degree int) [][2]int {
	if degree > n-1-degree {
		return without(n, regularGraph(rng, n, n-1-degree))
	}
	for {
		if edges, ok := pairStubs(rng, n, degree); ok {
			slices.SortFunc(edges, func(a, b [2]int) int {
				return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
			})
			return edges
		}
	}
}

// pairStubs joins stubs at random, degree of them for each of n nodes, without loops and double
// edges; false where it got stuck.
func pairStubs(rng *rand.Rand, n, degree int) ([][2]int, bool) {
	stubs := make([]int, 0, n*degree)
	for i := range n {
		for range degree {
			stubs = append(stubs, i)
		}
	}

	edges := make([][2]int, 0, n*degree/2)
	taken := make(map[[2]int]bool, n*degree/2)
	for refused := 0; len(stubs) > 0; {
		a, b := rng.IntN(len(stubs)), rng.IntN(len(stubs))
		e := [2]int{min(stubs[a], stubs[b]), max(stubs[a], stubs[b])}
		if e[0] == e[1] || taken[e] {
			if refused++; refused > 100+len(stubs) && stuck(stubs, taken) {
				return nil, false
			}
			continue
		}
		refused = 0
		taken[e] = true
		edges = append(edges, e)
		for _, at := range []int{max(a, b), min(a, b)} { // the larger first: the last stub moves into the gap
			stubs[at] = stubs[len(stubs)-1]
			stubs = stubs[:len(stubs)-1]
		}
	}

	return edges, true
}

// stuck reports whether no two of the stubs may be joined. It is asked only when few are left.
func stuck(stubs []int, taken map[[2]int]bool) bool {
	for a := range stubs {
		for _, s := range stubs[:a] {
			if s != stubs[a] && !taken[[2]int{min(s, stubs[a]), max(s, stubs[a])}] {
				return false
			}
		}
	}
	return true
}

// without returns the edges of the complete graph of n vertices that are not in edges, in
// lexicographic order.
func without(n int, edges [][2]int) [][2]int {
	gone := make(map[[2]int]bool, len(edges))
	for _, e := range edges {
		gone[e] = true
	}
	rest := make([][2]int, 0, n*(n-1)/2-len(edges))
	for i := range n {
		for j := i + 1; j < n; j++ {
			if e := [2]int{i, j}; !gone[e] {
				rest = append(rest, e)
			}
		}
	}
	return rest
}
