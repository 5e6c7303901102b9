package generate

// Models of hard constraints: dimers, ice, permutations, Latin squares, parities, independent sets; and noisy gates.

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// dimers has a variable per edge of a grid of 14 × n, ln of its weight U(−Δ, Δ), and one dimer at every vertex.
func dimers(length int, delta float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "dimers")
	n, edges := lattice(false, length, 14)
	b := spins(len(edges))
	at := make([][]int, n)
	for k, e := range edges {
		b.add([]int{k}, 1, math.Exp(uniform(r, delta)))
		at[e[0]], at[e[1]] = append(at[e[0]], k), append(at[e[1]], k)
	}
	for _, scope := range at {
		b.constrain(scope, func(x uint) bool { return bits.OnesCount(x) == 1 })
	}
	return b.model(), nil
}

// constrain adds 1 where the values of binary variables, the first one highest, are allowed, else 0.
func (b *builder) constrain(scope []int, allowed func(x uint) bool) {
	entries := make([]float64, 1<<len(scope))
	for x := range entries {
		if allowed(uint(x)) {
			entries[x] = 1
		}
	}
	b.add(scope, entries...)
}

// ice is the six-vertex model on a torus of 6 × n: two arrows in and two out at every vertex, e^c where arrows turn (kind c), and weak
// fields on the arrows.
func ice(length int, turning float64, seed uint64) (*factorgraph.Model, error) {
	const width = 6
	if length < 3 {
		return nil, fmt.Errorf("%w: a torus of %d", ErrOptions, length)
	}
	r := random(seed, "ice")
	n := width * length
	b := spins(2 * n) // arrows to the right of each vertex, then those below it
	for i := range 2 * n {
		b.field(i, uniform(r, weak))
	}
	for i := range n {
		row, column := i/width, i%width
		left, above := row*width+(column+width-1)%width, (row+length-1)%length*width+column
		entries := make([]float64, 16)
		for x := range entries {
			in, out := x>>3&1+x>>2&1, x>>1&1+x&1 // left, above: in where 1; right, below: out where 1
			switch {
			case in != out:
			case x>>3&1 != x>>1&1: // the arrow from the left does not go on to the right
				entries[x] = math.Exp(turning)
			default:
				entries[x] = 1
			}
		}
		b.add([]int{left, n + above, i, n + i}, entries...)
	}
	return b.model(), nil
}

// different adds that two variables of n values differ.
func (b *builder) different(i, j int) {
	n := b.domains[i]
	entries := make([]float64, n*n)
	for k := range entries {
		if k/n != k%n {
			entries[k] = 1
		}
	}
	b.add([]int{i, j}, entries...)
}

// weigh adds weights of all values of a variable, their logarithms U(−Δ, Δ).
func (b *builder) weigh(i int, draw func() float64) {
	entries := make([]float64, b.domains[i])
	for x := range entries {
		entries[x] = math.Exp(draw())
	}
	b.add([]int{i}, entries...)
}

func permanent(n int, delta float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "permanent")
	b := builder{domains: slices.Repeat([]int{n}, n)}
	for i := range n {
		b.weigh(i, func() float64 { return uniform(r, delta) })
		for j := range i {
			b.different(j, i)
		}
	}
	return b.model(), nil
}

func latin(n int, delta float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "latin")
	b := builder{domains: slices.Repeat([]int{n}, n*n)}
	for i := range n * n {
		b.weigh(i, func() float64 { return uniform(r, delta) })
		for j := range i {
			if i/n == j/n || i%n == j%n {
				b.different(j, i)
			}
		}
	}
	return b.model(), nil
}

// triples are so many sets of three of n variables.
func triples(n, count int, seed uint64) [][]int {
	r := random(seed, "triples")
	list := make([][]int, count)
	for k := range list {
		list[k] = r.Perm(n)[:3]
	}
	return list
}

// softParity has 1.5 n parities of three variables at random, and e^−w for each that is violated.
func softParity(n int, weight float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "soft parity")
	b := spins(n)
	for _, scope := range triples(n, 3*n/2, seed) {
		b.triple(scope, weight/2*float64(1-2*r.IntN(2)))
	}
	return b.model(), nil
}

// hardParity has share·n parities of three variables, of a planted state.
func hardParity(n int, share float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "hard parity")
	b := spins(n)
	state := make([]uint, n)
	for i := range state {
		state[i] = uint(r.IntN(2))
	}
	for _, scope := range triples(n, int(share*float64(n)), seed) {
		odd := state[scope[0]] ^ state[scope[1]] ^ state[scope[2]]
		b.constrain(scope, func(x uint) bool { return uint(bits.OnesCount(x))&1 == odd })
	}
	return b.model(), nil
}

// independent are independent sets of a grid n×n, ln of the fugacity of each vertex ln λ + U(−0.1, 0.1).
func independent(side int, fugacity float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "independent sets")
	n, edges := lattice(false, side, side)
	b := spins(n)
	for i := range n {
		b.add([]int{i}, 1, fugacity*math.Exp(uniform(r, weak)))
	}
	for _, e := range edges {
		b.add([]int{e[0], e[1]}, 1, 1, 1, 0)
	}
	return b.model(), nil
}

// noisyGates is a circuit of n wires, the first ten random, the others functions of three of the thirty wires before: and, or, parity, the
// majority, or one of them chosen by another; each is flipped with probability ε, and every fifth observed.
func noisyGates(n int, noise float64, seed uint64) (*factorgraph.Model, error) {
	const inputs, near = 10, 30
	if n < inputs {
		return nil, fmt.Errorf("%w: a circuit of %d wires", ErrOptions, n)
	}
	gates := [][8]float64{{7: 1}, {0, 1, 1, 1, 1, 1, 1, 1}, {0, 1, 1, 0, 1, 0, 0, 1}, {0, 0, 0, 1, 0, 1, 1, 1}, {0, 0, 1, 1, 0, 1, 0, 1}}
	r := random(seed, "noisy gates")
	b := spins(n)
	var observed []int
	for i := range n {
		if i < inputs {
			b.add([]int{i}, 0.5, 0.5)
			continue
		}
		first := max(0, i-near)
		of := r.Perm(i - first)[:3]
		var entries []float64
		for _, one := range gates[r.IntN(len(gates))] {
			p := noise + (1-2*noise)*one
			entries = append(entries, 1-p, p)
		}
		b.add([]int{first + of[0], first + of[1], first + of[2], i}, entries...)
		if i%5 == 0 {
			observed = append(observed, i)
		}
	}
	b.observe(r, observed)
	return b.model(), nil
}
