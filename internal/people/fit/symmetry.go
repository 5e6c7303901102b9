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
	startTolerance = 1e-6 // relative difference up to which states are alike in the tables that EM begins with
	endTolerance   = 1e-2 // the same after convergence: EM would move such states apart too slowly
	perturbation   = 0.25 // largest relative change of an entry, before its row is normalised
)

// perturbAlike looks for unobserved variables with states that EM cannot tell apart, perturbs the tables of their children, and reports
// whether there are such variables. after is the iteration that has just ended; -1 if EM begins.
func (f *fitting) perturbAlike(after int) bool {
	tolerance := startTolerance // relative difference up to which states count as alike
	if after >= 0 {
		tolerance = endTolerance
	}
	hidden := f.hiddenWithAlikeStates(tolerance)
	if len(hidden) == 0 {
		return false
	}

	// Tell it.
	seed := max(1, f.Seed)
	if f.OnNote != nil {
		names := make([]string, len(hidden))
		for i, v := range hidden {
			names[i] = fmt.Sprint(v)
			if f.model.Names != nil {
				names[i] = fmt.Sprintf("%q", f.model.Names[v])
			}
		}
		when := "in the tables that EM begins with"
		if after >= 0 {
			when = fmt.Sprintf("after iteration %d", after)
		}
		f.OnNote(fmt.Sprintf("no case observes %s, and its states are alike %s: EM cannot tell them apart, which is no maximum; "+
			"the tables under it are perturbed by seed %d; --seed draws others", strings.Join(names, ", "), when, seed))
	}

	// Perturb the tables that have such a variable as a parent.
	rng := rand.New(rand.NewPCG(seed, 2+uint64(f.state.Start))) // 2 or more: beginStart draws rows with 1
	for _, table := range f.cpts {
		hasHiddenParent := slices.ContainsFunc(hidden, func(v int) bool {
			return table.variable != v && slices.Contains(f.model.Factors[table.factor].Scope, v)
		})
		if hasHiddenParent {
			table.perturbEntries(rng)
		}
	}
	return true
}

// perturbEntries multiplies every entry by a random number near 1, and normalises the rows.
func (c cpt) perturbEntries(rng *rand.Rand) {
	numbers := make([]float64, len(c.data))
	for k, p := range c.data {
		numbers[k] = p * (1 + perturbation*(2*rng.Float64()-1))
	}
	c.normalise(numbers)
}

// hiddenWithAlikeStates returns the variables that no case observes and that have two possible states which are alike
// in the tables of all children. EM cannot tell such states apart: their expected counts stay proportional.
func (f *fitting) hiddenWithAlikeStates(tolerance float64) (hidden []int) {
	for _, table := range f.cpts {
		v := table.variable
		if _, isObserved := slices.BinarySearch(f.data.variables, v); isObserved || !f.hasOnlyFittedChildren(v) {
			continue
		}
		isPossible := table.possibleValues()
		isAlike := false
		for x := range table.values {
			for y := x + 1; y < table.values && !isAlike; y++ {
				isAlike = isPossible[x] && isPossible[y] && f.areAlikeInChildren(v, x, y, tolerance)
			}
		}
		if isAlike {
			hidden = append(hidden, v)
		}
	}
	return hidden
}

// hasOnlyFittedChildren reports whether a variable has children, all of whose tables are fitted.
func (f *fitting) hasOnlyFittedChildren(v int) bool {
	// A variable with children is in its own table and in theirs: in more than one factor.
	factorCount, fittedCount := 0, 0
	for _, factor := range f.model.Factors {
		if slices.Contains(factor.Scope, v) {
			factorCount++
		}
	}
	for _, c := range f.cpts {
		if slices.Contains(f.model.Factors[c.factor].Scope, v) {
			fittedCount++
		}
	}
	hasChildren := factorCount > 1
	return hasChildren && fittedCount == factorCount
}

// possibleValues returns for each value of the table's variable whether some row gives it a probability above 0.
func (c cpt) possibleValues() []bool {
	isPossible := make([]bool, c.values)
	for k, p := range c.data {
		x := k / c.stride % c.values // the value that entry k is for
		isPossible[x] = isPossible[x] || p > 0
	}
	return isPossible
}

// areAlikeInChildren reports whether the probabilities for values x and y of variable v differ by at most the relative
// tolerance in the tables of all children of v.
func (f *fitting) areAlikeInChildren(v, x, y int, tolerance float64) bool {
	for _, c := range f.cpts {
		mode := slices.Index(f.model.Factors[c.factor].Scope, v)
		if mode < 0 || c.variable == v {
			continue // no table of a child
		}
		shape := f.model.Factors[c.factor].Table.Dims()
		valueStride := stride(shape, mode)
		for i := range c.data {
			if i/valueStride%shape[mode] != x {
				continue // an entry for another value of v
			}
			p, q := c.data[i], c.data[i+(y-x)*valueStride]
			if math.Abs(p-q) > tolerance*max(p, q) {
				return false
			}
		}
	}
	return true
}
