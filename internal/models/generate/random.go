package generate

// Random factor graphs of any arity and mixed domains.

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// RandomOptions describe a random factor graph. The zero value of a field means its default, but for
// Strength.
type RandomOptions struct {
	Variables int     // default 20
	Degree    int     // factors per variable, default 2
	Arity     int     // variables per factor, default 3
	MinDomain int     // smallest domain, default 2
	MaxDomain int     // largest domain, default 5, or MinDomain where that is larger
	Strength  float64 // ln of every entry is U(−Strength, Strength); 0 to 500
	Seed      uint64  // of everything drawn
}

// withDefaults replaces zeros by the defaults.
func (o RandomOptions) withDefaults() RandomOptions {
	o.Variables, o.Degree, o.Arity = cmp.Or(o.Variables, 20), cmp.Or(o.Degree, 2), cmp.Or(o.Arity, 3)
	o.MinDomain = cmp.Or(o.MinDomain, 2)
	o.MaxDomain = cmp.Or(o.MaxDomain, max(5, o.MinDomain))
	return o
}

// validate refuses options out of bounds, with ErrOptions.
func (o RandomOptions) validate() error {
	for _, c := range []struct {
		name             string
		value, low, high int
	}{
		{"variables", o.Variables, 1, maxSpins}, {"factors per variable", o.Degree, 1, 1000},
		{"arity", o.Arity, 1, min(10, o.Variables)},
		{"smallest domain", o.MinDomain, 1, maxDim}, {"largest domain", o.MaxDomain, o.MinDomain, maxDim},
	} {
		if c.value < c.low || c.value > c.high {
			return fmt.Errorf("%w: %s %d, %d to %d are possible", ErrOptions, c.name, c.value, c.low, c.high)
		}
	}

	if !(o.Strength >= 0 && o.Strength <= maxCoupling) {
		return fmt.Errorf("%w: strength %v, 0 to %v are possible", ErrOptions, o.Strength, float64(maxCoupling))
	}
	factors := float64(o.Variables)*float64(o.Degree)/float64(o.Arity) + 1 // 1: the last one, filled up
	if entries := factors * math.Pow(float64(o.MaxDomain), float64(o.Arity)); entries > maxEntries ||
		factors > maxEdges {
		return fmt.Errorf("%w: %.0f factors of up to %.3g entries in all, at most %d and %d",
			ErrOptions, factors, entries, maxEdges, maxEntries)
	}
	return nil
}

// Random returns a model of random positive tables in which every variable has Degree factors.
// Domains are uniform in MinDomain to MaxDomain, ln of every entry uniform in ±Strength. Where
// Variables·Degree is no multiple of Arity the last factor is filled up, and up to Arity − 1
// variables have one factor more.
// Errors: ErrOptions.
// Cost: linear.
//
// The scopes are random permutations of the variables, one after the other, cut into pieces of
// Arity; a piece across two permutations takes the first variables of the second that it does not
// have.
func Random(o RandomOptions) (*factorgraph.Model, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x7266)) // "rf"
	domains := make([]int, o.Variables)
	for i := range domains {
		domains[i] = o.MinDomain + rng.IntN(o.MaxDomain-o.MinDomain+1)
	}

	// reserve memory for all tables
	scopes, entries := dealScopes(rng, o), 0
	for scope := range slices.Chunk(scopes, o.Arity) {
		size := 1
		for _, v := range scope {
			size *= domains[v]
		}
		entries += size
	}

	b := newBuilder(domains, len(scopes)/o.Arity, entries, len(scopes)) // factors, entries, variables in scopes
	for scope := range slices.Chunk(scopes, o.Arity) {
		b.addRandom(rng, o.Strength, scope...)
	}
	return b.model(), nil
}

// dealScopes returns the scopes of all factors, one after another, each of o.Arity variables: random permutations of
// the variables, cut into pieces. A piece across two permutations takes the first variables of the second that it does
// not have.
func dealScopes(rng *rand.Rand, o RandomOptions) []int {
	n, k := o.Variables, o.Arity
	total := (n*o.Degree + k - 1) / k * k // a multiple of k
	list := make([]int, 0, total+n)
	for len(list) < total {
		permutation := rng.Perm(n)

		// move variables to the front that complete the last scope without having one of its variables again
		lastScope := list[len(list)/k*k:]
		moved := 0
		for i := range permutation {
			if moved == k-len(lastScope) {
				break
			}
			if !slices.Contains(lastScope, permutation[i]) {
				permutation[moved], permutation[i] = permutation[i], permutation[moved]
				moved++
			}
		}
		list = append(list, permutation...)
	}

	return list[:total]
}
