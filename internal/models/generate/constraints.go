package generate

// Models with hard constraints: states of weight 0 are forbidden. And frustrated grids without a boundary.

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// mostArity bounds the variables of a constraint: its table has domain^arity entries.
const mostArity = 12

// ParityOptions describe a low-density parity-check code behind a binary symmetric channel.
type ParityOptions struct {
	Variables int     // bits sent
	Degree    int     // checks per bit; 0: 3
	Width     int     // bits per check; 0: 6. Variables·Degree is a multiple of it
	Noise     float64 // probability that a bit is flipped, 0 < Noise < 1; 0: 0.06
	Seed      uint64  // of the code and the flips
}

// Parity returns the posterior of a codeword: a factor per bit, 1−p for the value received and p for
// the other, then a factor per check, 1 where its bits are even and else 0. The word sent is 0, so Z
// > 0. Bits are dealt to the checks at random; one that a check gets twice leaves it both times.
func Parity(o ParityOptions) (*factorgraph.Model, error) {
	o.Degree = cmp.Or(o.Degree, 3)
	o.Width = cmp.Or(o.Width, 6)
	o.Noise = cmp.Or(o.Noise, 0.06)
	n := o.Variables
	switch {
	case n < 1 || o.Degree < 1 || n > maxEdges/o.Degree || o.Width < 2 || o.Width > mostArity ||
		n*o.Degree%o.Width != 0:
		return nil, fmt.Errorf("%w: %d bits in %d checks each, %d a check", ErrOptions, n, o.Degree, o.Width)
	case !(o.Noise > 0 && o.Noise < 1):
		return nil, fmt.Errorf("%w: noise %v, between 0 and 1 is possible", ErrOptions, o.Noise)
	}

	rng := rand.New(rand.NewPCG(o.Seed, 0x6c64))
	stubs := make([]int, 0, n*o.Degree)
	for i := range n {
		for range o.Degree {
			stubs = append(stubs, i)
		}
	}

	rng.Shuffle(len(stubs), func(i, j int) { stubs[i], stubs[j] = stubs[j], stubs[i] })
	checks := len(stubs) / o.Width
	b := room(slices.Repeat([]int{2}, n), n+checks, 2*n+checks<<o.Width, n+len(stubs))
	for i := range n {
		if rng.Float64() < o.Noise {
			b.add([]int{i}, o.Noise, 1-o.Noise)
		} else {
			b.add([]int{i}, 1-o.Noise, o.Noise)
		}
	}

	for c := range checks {
		scope := odd(stubs[c*o.Width : (c+1)*o.Width])
		if len(scope) > 0 {
			b.constrain(scope, func(x uint) bool { return bits.OnesCount(x)%2 == 0 })
		}
	}
	return b.model(), nil
}

// odd returns the items that a list has an odd number of times, in increasing order.
func odd(list []int) []int {
	list = slices.Clone(list)
	slices.Sort(list)
	var out []int
	for i := 0; i < len(list); {
		k := i
		for k < len(list) && list[k] == list[i] {
			k++
		}
		if (k-i)%2 == 1 {
			out = append(out, list[i])
		}
		i = k
	}
	return out
}

// Colouring returns the uniform distribution over proper colourings of a random graph of n vertices
// and so many different edges: a factor per edge, 0 for equal colours and else 1. Z is the number of
// colourings; it may be 0.
func Colouring(n, edges, colours int, seed uint64) (*factorgraph.Model, error) {
	if n < 2 || n > 4000 || edges < 0 || edges > n*(n-1)/2 || colours < 2 || colours > maxDim {
		return nil, fmt.Errorf("%w: %d colours on a graph of %d vertices and %d edges",
			ErrOptions, colours, n, edges)
	}
	rng := rand.New(rand.NewPCG(seed, 0x636f))
	all := without(n, nil)
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	b := room(slices.Repeat([]int{colours}, n), edges, edges*colours*colours, 2*edges)
	for _, e := range all[:edges] {
		b.different(e[0], e[1])
	}
	return b.model(), nil
}

// ConstraintOptions describe a random constraint satisfaction problem.
type ConstraintOptions struct {
	Variables   int
	Domain      int     // 0: 2
	Constraints int     // each over Arity different variables at random
	Arity       int     // 0: 3
	Forbidden   float64 // share of each table that is 0, at least one entry; 0: one entry, a clause
	Strength    float64 // ln of the other entries ~ U(−Strength, Strength)
	Seed        uint64
}

// Constraints returns a random constraint satisfaction problem with weights: random 3-SAT where only
// Variables and Constraints are given. One assignment, drawn first, is never forbidden, so Z > 0.
func Constraints(o ConstraintOptions) (*factorgraph.Model, error) {
	o.Domain = cmp.Or(o.Domain, 2)
	o.Arity = cmp.Or(o.Arity, 3)
	size := math.Pow(float64(o.Domain), float64(o.Arity))
	switch {
	case o.Arity < 1 || o.Arity > mostArity || o.Variables < o.Arity || o.Variables > maxSpins ||
		o.Domain < 2 ||
		o.Domain > maxDim ||
		size > maxTable:
		return nil, fmt.Errorf("%w: constraints over %d of %d variables of %d values",
			ErrOptions, o.Arity, o.Variables, o.Domain)
	case o.Constraints < 0 || float64(o.Constraints)*size > maxEntries:
		return nil, fmt.Errorf("%w: %d constraints of %.0f entries", ErrOptions, o.Constraints, size)
	case !(o.Forbidden >= 0 && o.Forbidden < 1) || !(o.Strength >= 0 && o.Strength <= maxCoupling):
		return nil, fmt.Errorf("%w: forbidden %v, strength %v", ErrOptions, o.Forbidden, o.Strength)
	}

	rng := rand.New(rand.NewPCG(o.Seed, 0x6373))
	planted := make([]int, o.Variables)
	for i := range planted {
		planted[i] = rng.IntN(o.Domain)
	}
	zeros := max(1, int(o.Forbidden*size))
	b := room(slices.Repeat([]int{o.Domain}, o.Variables), o.Constraints, o.Constraints*int(size), o.Constraints*o.Arity)
	for range o.Constraints {
		scope := distinct(rng, o.Variables, o.Arity)
		kept := 0
		for _, v := range scope {
			kept = kept*o.Domain + planted[v]
		}
		entries := b.random(rng, o.Strength, scope...)
		for _, x := range distinct(rng, int(size)-1, min(zeros, int(size)-1)) {
			if x >= kept {
				x++
			}
			entries[x] = 0
		}
	}
	return b.model(), nil
}

// distinct draws k different numbers below n, in increasing order.
func distinct(rng *rand.Rand, n, k int) []int {
	out := make([]int, 0, k)
	for len(out) < k {
		if x := rng.IntN(n); !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	slices.Sort(out)
	return out
}

// Frustrated returns the Ising model with couplings ±J, each sign with probability ½, and no field
// on a rows × cols grid with periodic boundary, both at least 3: the Edwards–Anderson spin glass at
// temperature 1/J. Z is even in every spin, and at large J many states weigh alike.
func Frustrated(rows, cols int, coupling float64, seed uint64) (*factorgraph.Model, error) {
	if rows < 3 || cols < 3 || rows > maxSpins/cols || !(coupling >= 0 && coupling <= maxCoupling) {
		return nil, fmt.Errorf("%w: couplings ±%v on a periodic grid of %d × %d",
			ErrOptions, coupling, rows, cols)
	}
	rng := rand.New(rand.NewPCG(seed, 0x6561))
	n := rows * cols
	b, j := room(slices.Repeat([]int{2}, n), 2*n, 8*n, 4*n), sign(rng, coupling)
	for i := range n {
		r, c := i/cols, i%cols
		for _, k := range []int{r*cols + (c+1)%cols, (r+1)%rows*cols + c} {
			b.couple(min(i, k), max(i, k), j())
		}
	}
	return b.model(), nil
}
