package modeltest

// Models of hard constraints, from parity codes to ice: states of weight 0 are forbidden. And frustrated grids without a boundary.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Parity returns a low-density parity-check code behind a noisy channel, as the posterior of its codeword of n bits, n even.
//
//   - The word sent is all 0 (so Z > 0); the channel flips each bit with probability noise. Each bit has a factor: 1 − noise for the
//     value received, noise for the other.
//   - n/2 checks follow. Each is a factor that is 1 if the sum of its bits is even and 0 otherwise.
//
// Every bit is dealt to three checks and every check gets six bits, at random. A bit that a check gets twice leaves it both times.
func Parity(n int, noise float64, seed uint64) (*factorgraph.Model, error) {
	const checksPerBit, bitsPerCheck = 3, 6
	if n < 1 || n*checksPerBit%bitsPerCheck != 0 || !(noise > 0 && noise < 1) {
		return nil, fmt.Errorf("modeltest: a code of %d bits, flipped with probability %v", n, noise)
	}

	// Deal the bits to the checks: each run of six in the shuffled list is one check.
	rng := rand.New(rand.NewPCG(seed, 0x6c64))
	var dealt []int
	for i := range n {
		dealt = append(dealt, slices.Repeat([]int{i}, checksPerBit)...)
	}
	rng.Shuffle(len(dealt), func(i, j int) { dealt[i], dealt[j] = dealt[j], dealt[i] })

	// A received bit is 1 if the channel flipped it.
	b := newBuilder(n, 2)
	for i := range n {
		if rng.Float64() < noise {
			b.addFactor([]int{i}, noise, 1-noise)
		} else {
			b.addFactor([]int{i}, 1-noise, noise)
		}
	}

	for check := range slices.Chunk(dealt, bitsPerCheck) {
		if scope := oddOnes(check); len(scope) > 0 {
			b.addCountFactor(scope, func(count int) bool { return count%2 == 0 })
		}
	}
	return &b.Model, nil
}

// oddOnes returns the items that a list has an odd number of times, in increasing order.
func oddOnes(list []int) (odd []int) {
	for _, item := range slices.Sorted(slices.Values(list)) {
		if n := len(odd); n > 0 && odd[n-1] == item {
			odd = odd[:n-1]
		} else {
			odd = append(odd, item)
		}
	}
	return odd
}

// Colouring returns a model whose variables are the colours of the vertices of a random graph: factors are 1 if the ends of an edge
// differ and 0 otherwise, so Z is the number of proper colourings (it may be 0). The graph has n vertices and this number of different
// edges, which must not exceed n(n−1)/2.
func Colouring(n, edges, colours int, seed uint64) *factorgraph.Model {
	_, pairs := allPairs(n, nil)
	b := newBuilder(n, colours)
	b.addInequalities(rand.New(rand.NewPCG(seed, 0x636f)), pairs, edges)
	return &b.Model
}

// addInequalities draws count of the pairs at random and appends a factor for each: 1 if the two variables differ, 0 if they are equal.
// It shuffles pairs.
func (b *builder) addInequalities(r *rand.Rand, pairs [][2]int, count int) {
	r.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	for _, e := range pairs[:count] {
		b.addEqualityFactor(e[0], e[1], 0, 1)
	}
}

// colouring returns the proper colourings with three colours of a random graph of n vertices and edgesPerVertex·n edges. The graph is
// drawn so that one colouring exists: vertices get colours at random, each colour equally often, and edges join different colours only.
// Without this planted colouring, random graphs near the threshold of three-colourability have none.
func colouring(n int, edgesPerVertex float64, seed uint64) (*factorgraph.Model, error) {
	r := newStream(seed, "colouring")
	colour := make([]int, n)
	for i := range colour {
		colour[i] = i % 3
	}
	r.Shuffle(n, func(i, j int) { colour[i], colour[j] = colour[j], colour[i] })
	var possible [][2]int
	for i := range n {
		for j := range i {
			if colour[i] != colour[j] {
				possible = append(possible, [2]int{j, i})
			}
		}
	}
	count := int(edgesPerVertex * float64(n))
	if count > len(possible) {
		return nil, fmt.Errorf("modeltest: %d edges between %d vertices", count, n)
	}
	b := newBuilder(n, 3)
	b.addInequalities(r, possible, count)
	return &b.Model, nil
}

// Frustrated returns the Edwards–Anderson spin glass on a periodic grid of rows × cols spins, both at least 3: couplings are +J or −J
// with probability ½ each, and there is no field. Variable row·cols + column is the spin at (row, column). At large J many states
// have nearly the largest weight.
func Frustrated(rows, cols int, coupling float64, seed uint64) *factorgraph.Model {
	rng := rand.New(rand.NewPCG(seed, 0x6561))
	b := newBuilder(rows*cols, 2)
	for i := range rows * cols {
		row, column := i/cols, i%cols
		right := row*cols + (column+1)%cols
		below := (row+1)%rows*cols + column
		for _, k := range []int{right, below} {
			b.addCoupling(min(i, k), max(i, k), randomSign(rng, 0, coupling))
		}
	}
	return &b.Model
}

// CurieWeiss returns a model of n spins x = ±1 (value 0 is −1), all of them coupled with each other, so its treewidth is n − 1:
//
//	P(x) ∝ exp(J Σ_{i<j} x_i x_j) · Π_j L^(j)[x].
//
// The scopes of the tables L^(j) partition the variables at random into groups of 1 to maxGroup; their entries are U(½, 3/2).
// The factors are the tables L^(j) first, then a factor for each pair.
func CurieWeiss(n int, coupling float64, maxGroup int, seed uint64) *factorgraph.Model {
	b, rng := newBuilder(n, 2), rand.New(rand.NewPCG(seed, 0x6377))
	for ungrouped := rng.Perm(n); len(ungrouped) > 0; {
		size := min(1+rng.IntN(maxGroup), len(ungrouped))
		entries := b.addTable(ungrouped[:size]...)
		for x := range entries {
			entries[x] = 0.5 + rng.Float64()
		}
		ungrouped = ungrouped[size:]
	}
	_, edges := allPairs(n, nil)
	for _, e := range edges {
		b.addCoupling(e[0], e[1], coupling)
	}
	return &b.Model
}

// dimers returns the dimer coverings of a grid of length × 14 vertices (see dimersOn); the ln weights of dimers are U(−Δ, Δ).
func dimers(length int, delta float64, seed uint64) (*factorgraph.Model, error) {
	return dimersOn("dimers", length, 14, delta, seed)
}

// dimersOn returns the dimer coverings of a grid: variable k is 1 if edge k of the grid carries a dimer, and every vertex is touched by
// exactly one dimer. A dimer has a weight whose logarithm is U(−Δ, Δ). Random numbers come from the stream of this name.
func dimersOn(stream string, rows, columns int, delta float64, seed uint64) (*factorgraph.Model, error) {
	r := newStream(seed, stream)
	n, edges := openLattice(rows, columns)
	b := newBuilder(len(edges), 2)
	edgesAt := make([][]int, n) // for each vertex
	for k, e := range edges {
		b.addFactor([]int{k}, 1, math.Exp(uniform(r, delta)))
		edgesAt[e[0]], edgesAt[e[1]] = append(edgesAt[e[0]], k), append(edgesAt[e[1]], k)
	}
	for _, scope := range edgesAt {
		b.addCountFactor(scope, func(count int) bool { return count == 1 })
	}
	return &b.Model, nil
}

// ice returns the six-vertex model on a torus of length × 6 vertices. Each edge carries an arrow, and every vertex has two arrows in and
// two out. A vertex whose arrows turn (kind c of the six) weighs e^turning, the others 1; each arrow has a weak field.
// Variable i < n is the arrow on the edge to the right of vertex i, variable n + i that on the edge below it; value 1 points right or
// down.
func ice(length int, turning float64, seed uint64) (*factorgraph.Model, error) {
	const width = 6
	if length < 3 {
		return nil, fmt.Errorf("modeltest: ice on a torus of length %d", length)
	}
	r := newStream(seed, "ice")
	n := width * length
	b := newBuilder(2*n, 2)
	for i := range 2 * n {
		b.addField(i, uniform(r, weakField))
	}

	// One factor for each vertex, over its four arrows.
	for i := range n {
		row, column := i/width, i%width
		left := row*width + (column+width-1)%width
		above := (row+length-1)%length*width + column
		entries := b.addTable(left, n+above, i, n+i)
		for x := range entries {
			fromLeft, fromAbove, toRight, toBelow := x>>3&1, x>>2&1, x>>1&1, x&1
			if fromLeft+fromAbove != toRight+toBelow {
				continue // not two in and two out: weight 0
			}
			entries[x] = 1
			if fromLeft != toRight {
				entries[x] = math.Exp(turning)
			}
		}
	}
	return &b.Model, nil
}

// latin returns a generator of Latin rectangles: the first rows(n) rows of a Latin square of order n. Variable row·n + column is a cell;
// two cells of one row or one column differ. The ln weights of the values of each cell are U(−Δ, Δ).
func latin(stream string, rows func(n int) int) generator {
	return func(n int, delta float64, seed uint64) (*factorgraph.Model, error) {
		r := newStream(seed, stream)
		b := newBuilder(rows(n)*n, n)
		for i := range b.Domains {
			b.addValueWeights(i, func() float64 { return uniform(r, delta) })
			for j := range i {
				isSameRow, isSameColumn := i/n == j/n, i%n == j%n
				if isSameRow || isSameColumn {
					b.addEqualityFactor(j, i, 0, 1)
				}
			}
		}
		return &b.Model, nil
	}
}

// oneRow is the number of rows of a permutation: a Latin rectangle of one row.
func oneRow(int) int { return 1 }

// allRows is the number of rows of a whole Latin square of order n.
func allRows(n int) int { return n }

// hardParity returns share·n parity constraints on random triples of n bits. All of them are met by one state that is drawn first, so
// Z > 0.
func hardParity(n int, share float64, seed uint64) (*factorgraph.Model, error) {
	r := newStream(seed, "hard parity")
	b, planted := newBuilder(n, 2), make([]int, n)
	for i := range planted {
		planted[i] = r.IntN(2)
	}
	for _, scope := range randomTriples(n, int(share*float64(n)), seed) {
		plantedCount := planted[scope[0]] + planted[scope[1]] + planted[scope[2]]
		b.addCountFactor(scope, func(count int) bool { return count%2 == plantedCount%2 })
	}
	return &b.Model, nil
}

// independent returns the independent sets of a grid of side × side vertices: value 1 is "in the set", and no two neighbours are both
// in it. A vertex in the set weighs fugacity · e^U(−0.1, 0.1).
func independent(side int, fugacity float64, seed uint64) (*factorgraph.Model, error) {
	r := newStream(seed, "independent sets")
	n, edges := openLattice(side, side)
	b := newBuilder(n, 2)
	for i := range n {
		b.addFactor([]int{i}, 1, fugacity*math.Exp(uniform(r, weakField)))
	}
	for _, e := range edges {
		b.addFactor(e[:], 1, 1, 1, 0)
	}
	return &b.Model, nil
}
