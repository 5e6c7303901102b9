package modeltest

// Models of hard constraints, from parity codes to ice: states of weight 0 are forbidden. And frustrated grids without a boundary.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Parity returns the posterior of a codeword of n bits, n even, behind a channel that flips each with this probability: a factor per bit,
// 1−p for the value received and p for the other, then n/2 checks, 1 where their bits are even and else 0. Every bit is in three checks and
// every check has six bits, dealt at random; a bit that a check gets twice leaves it both times. The word sent is 0, so Z > 0.
func Parity(n int, noise float64, seed uint64) (*factorgraph.Model, error) {
	const degree, width = 3, 6
	if n < 1 || n*degree%width != 0 || !(noise > 0 && noise < 1) {
		return nil, fmt.Errorf("modeltest: a code of %d bits, flipped with probability %v", n, noise)
	}
	rng := rand.New(rand.NewPCG(seed, 0x6c64))
	var stubs []int
	for i := range n {
		stubs = append(stubs, slices.Repeat([]int{i}, degree)...)
	}
	rng.Shuffle(len(stubs), func(i, j int) { stubs[i], stubs[j] = stubs[j], stubs[i] })
	b := variables(n, 2)
	for i := range n {
		if rng.Float64() < noise {
			b.add([]int{i}, noise, 1-noise)
		} else {
			b.add([]int{i}, 1-noise, noise)
		}
	}
	for check := range slices.Chunk(stubs, width) {
		if scope := oddOnes(check); len(scope) > 0 {
			b.ones(scope, func(count int) bool { return count%2 == 0 })
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

// Colouring returns the uniform distribution over proper colourings of a random graph of n vertices and so many different edges, at most
// all. Z is the number of colourings; it may be 0.
func Colouring(n, edges, colours int, seed uint64) *factorgraph.Model {
	_, pairs := allPairs(n, nil)
	b := variables(n, colours)
	b.someDiffer(rand.New(rand.NewPCG(seed, 0x636f)), pairs, edges)
	return &b.Model
}

// someDiffer has variables differ in so many of these pairs, drawn at random.
func (b *builder) someDiffer(r *rand.Rand, pairs [][2]int, count int) {
	r.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	for _, e := range pairs[:count] {
		b.pair(e[0], e[1], 0, 1)
	}
}

// colouring plants a colouring, each colour as often as the others, and joins vertices of different colours: random graphs near the
// threshold have none.
func colouring(n int, edges float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "colouring")
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
	count := int(edges * float64(n))
	if count > len(possible) {
		return nil, fmt.Errorf("modeltest: %d edges between %d vertices", count, n)
	}
	b := variables(n, 3)
	b.someDiffer(r, possible, count)
	return &b.Model, nil
}

// Frustrated returns the Ising model with couplings ±J, each sign with probability ½, and no field on a rows × cols grid with periodic
// boundary, both at least 3: the Edwards–Anderson spin glass at temperature 1/J. Z is even in every spin, and at large J many states weigh
// alike.
func Frustrated(rows, cols int, coupling float64, seed uint64) *factorgraph.Model {
	rng := rand.New(rand.NewPCG(seed, 0x6561))
	b := variables(rows*cols, 2)
	for i := range rows * cols {
		row, column := i/cols, i%cols
		for _, k := range []int{row*cols + (column+1)%cols, (row+1)%rows*cols + column} {
			b.couple(min(i, k), max(i, k), eitherSign(rng, 0, coupling))
		}
	}
	return &b.Model
}

// CurieWeiss returns a model of n spins x = ±1, value 0 being −1, of treewidth n − 1:
//
//	P(x) ∝ exp(J Σ_{i<j} x_i x_j) · Π_j L^(j)[x],
//
// with tables L^(j), entries U(½, 3/2), that divide the variables at random into groups of 1 to widest.
func CurieWeiss(n int, coupling float64, widest int, seed uint64) *factorgraph.Model {
	b, rng := variables(n, 2), rand.New(rand.NewPCG(seed, 0x6377))
	for rest := rng.Perm(n); len(rest) > 0; {
		k := min(1+rng.IntN(widest), len(rest))
		entries := b.table(rest[:k]...)
		for x := range entries {
			entries[x] = 0.5 + rng.Float64()
		}
		rest = rest[k:]
	}
	_, edges := allPairs(n, nil)
	for _, e := range edges {
		b.couple(e[0], e[1], coupling)
	}
	return &b.Model
}

// dimers has a variable per edge of a grid of 14 × n, ln of its weight U(−Δ, Δ), and one dimer at every vertex.
func dimers(length int, delta float64, seed uint64) (*factorgraph.Model, error) {
	return dimersOn("dimers", length, 14, delta, seed)
}

// dimersOn are dimers on a grid, drawn from the stream of this name.
func dimersOn(stream string, rows, columns int, delta float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, stream)
	n, edges := lattice(false, rows, columns)
	b, touching := variables(len(edges), 2), make([][]int, n)
	for k, e := range edges {
		b.add([]int{k}, 1, math.Exp(uniform(r, delta)))
		touching[e[0]], touching[e[1]] = append(touching[e[0]], k), append(touching[e[1]], k)
	}
	for _, scope := range touching {
		b.ones(scope, func(count int) bool { return count == 1 })
	}
	return &b.Model, nil
}

// ice is the six-vertex model on a torus of 6 × n: two arrows in and two out at every vertex, e^turning where arrows turn (kind c), and
// weak fields on the arrows. Variables are the arrows to the right of each vertex, then those below it.
func ice(length int, turning float64, seed uint64) (*factorgraph.Model, error) {
	const width = 6
	if length < 3 {
		return nil, fmt.Errorf("modeltest: ice on a torus of length %d", length)
	}
	r := random(seed, "ice")
	n := width * length
	b := variables(2*n, 2)
	for i := range 2 * n {
		b.field(i, uniform(r, weak))
	}
	for i := range n {
		row, column := i/width, i%width
		left, above := row*width+(column+width-1)%width, (row+length-1)%length*width+column
		entries := b.table(left, n+above, i, n+i)
		for x := range entries {
			fromLeft, fromAbove, toRight, toBelow := x>>3&1, x>>2&1, x>>1&1, x&1
			if fromLeft+fromAbove != toRight+toBelow {
				continue
			}
			entries[x] = 1
			if fromLeft != toRight {
				entries[x] = math.Exp(turning)
			}
		}
	}
	return &b.Model, nil
}

// latin has a variable per cell of so many rows of a Latin square of order n, ln weights of its values U(−Δ, Δ): cells of a row differ,
// and those of a column.
func latin(stream string, rows func(n int) int) generator {
	return func(n int, delta float64, seed uint64) (*factorgraph.Model, error) {
		r := random(seed, stream)
		b := variables(rows(n)*n, n)
		for i := range b.Domains {
			b.weigh(i, func() float64 { return uniform(r, delta) })
			for j := range i {
				if i/n == j/n || i%n == j%n {
					b.pair(j, i, 0, 1)
				}
			}
		}
		return &b.Model, nil
	}
}

func oneRow(int) int    { return 1 }
func allRows(n int) int { return n }

// hardParity has share·n parities of three variables, of a planted state.
func hardParity(n int, share float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "hard parity")
	b, state := variables(n, 2), make([]int, n)
	for i := range state {
		state[i] = r.IntN(2)
	}
	for _, scope := range randomTriples(n, int(share*float64(n)), seed) {
		planted := state[scope[0]] + state[scope[1]] + state[scope[2]]
		b.ones(scope, func(count int) bool { return count%2 == planted%2 })
	}
	return &b.Model, nil
}

// independent are independent sets of a grid n×n, ln of the fugacity of each vertex ln λ + U(−0.1, 0.1).
func independent(side int, fugacity float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "independent sets")
	n, edges := lattice(false, side, side)
	b := variables(n, 2)
	for i := range n {
		b.add([]int{i}, 1, fugacity*math.Exp(uniform(r, weak)))
	}
	for _, e := range edges {
		b.add(e[:], 1, 1, 1, 0)
	}
	return &b.Model, nil
}
