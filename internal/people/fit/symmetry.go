package fit

// Symmetric tables: those from which EM does not move, although they are no maximum.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

const (
	equal    = 1e-6 // relative difference of numbers that EM begins with and does not tell apart
	near     = 1e-2 // and of those that it leaves too slowly to go on
	strength = 0.25 // entries are multiplied by 1 ± this, and rows normalised
)

// perturb multiplies the tables of the children of hidden variables whose states are alike by random numbers. It reports whether there are
// such variables, and says so. after is the iteration before; −1: none was.
func (f *fitting) perturb(after int) bool {
	alike := equal
	if after >= 0 {
		alike = near
	}
	hidden := f.symmetric(alike)
	if len(hidden) == 0 {
		return false
	}
	seed := max(1, f.Seed)
	if f.Said != nil {
		names := make([]string, len(hidden))
		for k, v := range hidden {
			names[k] = fmt.Sprint(v)
			if f.model.Names != nil {
				names[k] = fmt.Sprintf("%q", f.model.Names[v])
			}
		}
		when := "in the tables that EM begins with"
		if after >= 0 {
			when = fmt.Sprintf("after iteration %d", after)
		}
		f.Said(fmt.Sprintf("no case observes %s, and its states are alike %s: EM cannot tell them apart, which is no maximum; "+
			"the tables under it are perturbed by seed %d; --seed draws others", strings.Join(names, ", "), when, seed))
	}
	rng := rand.New(rand.NewPCG(seed, 2+uint64(f.state.Start)))
	for _, c := range f.cpts {
		if slices.ContainsFunc(hidden, func(v int) bool { return c.variable != v && slices.Contains(f.model.Factors[c.factor].Scope, v) }) {
			c.perturb(rng)
		}
	}
	return true
}

// perturb multiplies every entry by a random number near 1, and normalises.
func (c cpt) perturb(rng *rand.Rand) {
	numbers := make([]float64, len(c.data))
	for k, p := range c.data {
		numbers[k] = p * (1 + strength*(2*rng.Float64()-1))
	}
	c.normalise(numbers)
}

// symmetric lists the variables that no case observes, with two states that are possible and in the tables of all children no further
// apart than a relative difference: what cases expect of them is proportional.
func (f *fitting) symmetric(alike float64) (hidden []int) {
	for _, table := range f.cpts {
		v := table.variable
		if _, isObserved := slices.BinarySearch(f.data.variables, v); isObserved || !f.isAbove(v) {
			continue
		}
		possible := table.possible()
		isAlike := false
		for x := range table.values {
			for y := x + 1; y < table.values && !isAlike; y++ {
				isAlike = possible[x] && possible[y] && f.sameBelow(v, x, y, alike)
			}
		}
		if isAlike {
			hidden = append(hidden, v)
		}
	}
	return hidden
}

// isAbove reports whether a variable has children, all of whose tables are fitted.
func (f *fitting) isAbove(v int) bool {
	factors, fitted := 0, 0
	for _, factor := range f.model.Factors {
		if slices.Contains(factor.Scope, v) {
			factors++
		}
	}
	for _, c := range f.cpts {
		if slices.Contains(f.model.Factors[c.factor].Scope, v) {
			fitted++
		}
	}
	return fitted == factors && factors > 1
}

// possible says which values of its variable some row has above 0.
func (c cpt) possible() []bool {
	list := make([]bool, c.values)
	for k, p := range c.data {
		x := k / c.stride % c.values
		list[x] = list[x] || p > 0
	}
	return list
}

// sameBelow reports whether two values of a variable are alike in the tables of its children.
func (f *fitting) sameBelow(v, x, y int, alike float64) bool {
	for _, c := range f.cpts {
		mode := slices.Index(f.model.Factors[c.factor].Scope, v)
		if mode < 0 || c.variable == v {
			continue
		}
		shape := f.model.Factors[c.factor].Table.Dims()
		step := stride(shape, mode)
		for k := range c.data {
			if k/step%shape[mode] != x {
				continue
			}
			p, q := c.data[k], c.data[k+(y-x)*step]
			if math.Abs(p-q) > alike*max(p, q) {
				return false
			}
		}
	}
	return true
}
