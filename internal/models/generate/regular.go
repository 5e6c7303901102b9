package generate

// Random regular graphs.

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// drawRegularGraph returns a random simple graph in which all n vertices have the given degree; n·degree
// is even and degree < n. Edges (i, j), i < j, in lexicographic order.
//
// Every vertex has as many stubs, ends of edges, as its degree. Stubs are paired at random. A pair is refused if it would make a loop or a
// double edge, and the graph is begun again if nothing but such pairs is left.
// Source: Steger and Wormald, Generating random regular graphs quickly (1999): close to uniform for
// degree ≪ √n, expected O(n·degree²). A degree above (n−1)/2 is the complement of a smaller one.
func drawRegularGraph(rng *rand.Rand, n, degree int) [][2]int {
	if degree > n-1-degree {
		return complementEdges(n, drawRegularGraph(rng, n, n-1-degree))
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

// pairStubs draws a simple graph in which each of n vertices has the degree. It joins random pairs of stubs, of which
// each vertex has as many as its degree, and refuses loops and double edges. It returns false if no other pairs are
// left.
func pairStubs(rng *rand.Rand, n, degree int) ([][2]int, bool) {
	stubs := make([]int, 0, n*degree) // each vertex as often as it needs further edges
	for i := range n {
		for range degree {
			stubs = append(stubs, i)
		}
	}

	edges := make([][2]int, 0, n*degree/2)
	taken := make(map[[2]int]bool, n*degree/2)
	for refused := 0; len(stubs) > 0; { // refused counts the refused pairs since the last edge
		a, b := rng.IntN(len(stubs)), rng.IntN(len(stubs))
		e := [2]int{min(stubs[a], stubs[b]), max(stubs[a], stubs[b])}
		if e[0] == e[1] || taken[e] {
			if refused++; refused > 100+len(stubs) && isStuck(stubs, taken) { // so many refusals are rare unless few stubs are left
				return nil, false
			}
			continue
		}
		refused = 0
		taken[e] = true
		edges = append(edges, e)
		for _, k := range []int{max(a, b), min(a, b)} { // remove both, the larger first, since the last stub moves into the gap
			stubs[k] = stubs[len(stubs)-1]
			stubs = stubs[:len(stubs)-1]
		}
	}

	return edges, true
}

// isStuck reports whether no two of the stubs may be joined. It takes quadratic time, and is asked only if few stubs
// are left.
func isStuck(stubs []int, taken map[[2]int]bool) bool {
	for k, a := range stubs {
		for _, b := range stubs[:k] {
			if b != a && !taken[[2]int{min(a, b), max(a, b)}] {
				return false
			}
		}
	}
	return true
}

// complementEdges returns the edges of the complete graph of n vertices that are not in edges, in lexicographic order.
func complementEdges(n int, edges [][2]int) [][2]int {
	isEdge := make(map[[2]int]bool, len(edges))
	for _, e := range edges {
		isEdge[e] = true
	}
	complement := make([][2]int, 0, n*(n-1)/2-len(edges))
	for i := range n {
		for j := i + 1; j < n; j++ {
			if e := [2]int{i, j}; !isEdge[e] {
				complement = append(complement, e)
			}
		}
	}
	return complement
}
