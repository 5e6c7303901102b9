package generate

// Random constraint satisfaction problems: states of weight 0 are forbidden.

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// mostArity bounds the variables of a constraint: its table has domain^arity entries.
const mostArity = 12

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

// Constraints returns a random constraint satisfaction problem with weights. It is random 3-SAT if only Variables and
// Constraints are given. One assignment, drawn first, is never forbidden, so Z > 0.
func Constraints(o ConstraintOptions) (*factorgraph.Model, error) {
	o.Domain = cmp.Or(o.Domain, 2)
	o.Arity = cmp.Or(o.Arity, 3)
	size := math.Pow(float64(o.Domain), float64(o.Arity)) // entries of a table
	areSizesPossible := o.Arity >= 1 && o.Arity <= mostArity && o.Variables >= o.Arity && o.Variables <= maxSpins &&
		o.Domain >= 2 && o.Domain <= maxDim && !(size > maxTable)
	switch {
	case !areSizesPossible:
		return nil, fmt.Errorf("%w: constraints over %d of %d variables of %d values",
			ErrOptions, o.Arity, o.Variables, o.Domain)
	case o.Constraints < 0 || float64(o.Constraints)*size > maxEntries:
		return nil, fmt.Errorf("%w: %d constraints of %.0f entries", ErrOptions, o.Constraints, size)
	case !(o.Forbidden >= 0 && o.Forbidden < 1) || !(o.Strength >= 0 && o.Strength <= maxCoupling):
		return nil, fmt.Errorf("%w: forbidden %v, strength %v", ErrOptions, o.Forbidden, o.Strength)
	}

	// the assignment that is never forbidden
	rng := rand.New(rand.NewPCG(o.Seed, 0x6373)) // "cs"
	planted := make([]int, o.Variables)
	for i := range planted {
		planted[i] = rng.IntN(o.Domain)
	}

	// constraints, each with some of its entries set to 0
	zeros := max(1, int(o.Forbidden*size)) // entries of a constraint that become 0
	b := newBuilder(slices.Repeat([]int{o.Domain}, o.Variables), o.Constraints, o.Constraints*int(size), o.Constraints*o.Arity)
	for range o.Constraints {
		scope := drawDistinct(rng, o.Variables, o.Arity)
		kept := 0 // the index of the entry of the planted assignment
		for _, v := range scope {
			kept = kept*o.Domain + planted[v]
		}
		entries := b.addRandom(rng, o.Strength, scope...)
		for _, index := range drawDistinct(rng, int(size)-1, min(zeros, int(size)-1)) {
			if index >= kept { // the numbers drawn are those of the entries without kept
				index++
			}
			entries[index] = 0
		}
	}
	return b.model(), nil
}

// drawDistinct draws k different numbers below n, and returns them in increasing order.
func drawDistinct(rng *rand.Rand, n, k int) []int {
	numbers := make([]int, 0, k)
	for len(numbers) < k {
		if x := rng.IntN(n); !slices.Contains(numbers, x) {
			numbers = append(numbers, x)
		}
	}
	slices.Sort(numbers)
	return numbers
}
