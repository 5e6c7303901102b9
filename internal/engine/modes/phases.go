package modes

// Phases: maxima far from each other. Equivalent maxima are one phase.

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Phase is a maximum, with the other maxima that have the same weight and mass. A model that is unchanged if its values are renamed has
// such maxima: one for each renaming.
type Phase struct {
	Mode
	Others []Mode
}

// maxGrown bounds the states that Phases grows, and relativeTolerance is the share of a logarithm by which equal maxima may differ.
const (
	maxGrown          = 32
	relativeTolerance = 1e-10
)

// PhasesWork returns the price of Phases in flops: that of a search (Work), of the ascents from grown states, and of growing these states.
// Growing a state reads all entries of each table of more than two indices, once for each of its indices. The price is 0 if no index has
// two values.
func PhasesWork(e *sumproduct.Expression) float64 {
	hub := mostConnectedIndex(e)
	if hub < 0 {
		return 0
	}
	entriesRead := 0.0
	for _, t := range e.Tables {
		if len(t.Scope) > 2 {
			entriesRead += float64(len(t.Data) * len(t.Scope))
		}
	}
	grownStates := float64(min(e.Dims[hub], maxGrown))
	return Work(e)*(1+grownStates/tries) + lookWork*grownStates*entriesRead // Work is for the ascents from as many random states as tries
}

// Phases returns up to limit phases, the largest mass first, from ascents that begin at random states and at grown ones. A grown state
// begins with one of the values of the index that has the most tables. Then one index after the other, neighbours first, takes the most
// probable value given those before. Maxima whose surroundings are near those of a maximum of larger mass are left out. The same input
// gives the same phases. Errors: as of Find. Cost: PhasesWork.
func Phases(ctx context.Context, e *sumproduct.Expression, limit int) ([]Phase, error) {
	grown, err := grownStates(ctx, e)
	if err != nil {
		return nil, err
	}
	_, maxima, err := ascend(ctx, e, newRand(), grown)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(maxima, func(a, b Mode) int { return cmp.Compare(b.mass(), a.mass()) })
	var distinct []Mode // maxima that are not near one of larger mass
	var phases []Phase
	for _, m := range maxima {
		if slices.ContainsFunc(distinct, func(larger Mode) bool { return larger.hasNearSurroundings(&m) }) {
			continue
		}
		distinct = append(distinct, m)
		isEquivalent := func(p Phase) bool { // the same by a symmetry of the model, as far as the numbers tell
			return isEqualUpToRounding(p.Ln, m.Ln) && isEqualUpToRounding(p.mass(), m.mass()) && isEqualUpToRounding(p.LnAround, m.LnAround)
		}
		k := slices.IndexFunc(phases, isEquivalent)
		switch {
		case k >= 0:
			phases[k].Others = append(phases[k].Others, m)
		case len(phases) < limit:
			phases = append(phases, Phase{Mode: m})
		}
	}
	return phases, nil
}

// grownStates returns a state for each value of the index with the most tables, up to maxGrown: the one that grows from this value (grow).
// There are none if an entry is below 0, if e is unfit, or if no index has two values.
func grownStates(ctx context.Context, e *sumproduct.Expression) (grown [][]int, err error) {
	hub := mostConnectedIndex(e)
	if hub < 0 || e.Signed() || e.CheckFit() != nil {
		return nil, nil
	}
	c := newClimber(e)
	for a := range min(e.Dims[hub], maxGrown) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.grow(hub, a)
		grown = append(grown, slices.Clone(c.state))
	}
	return grown, nil
}

// hasNearSurroundings reports whether the conditional distributions at two maxima are near: whether their total variation distance is less
// than 1/distancePart on average over the indices.
func (m *Mode) hasNearSurroundings(other *Mode) bool {
	distance := 0.0
	for i, p := range m.Conditionals {
		for a, x := range p {
			distance += math.Abs(x-other.Conditionals[i][a]) / 2
		}
	}
	return distance*distancePart < float64(len(m.Conditionals))
}

// isEqualUpToRounding reports whether two logarithms differ by rounding at most.
func isEqualUpToRounding(a, b float64) bool {
	return math.Abs(a-b) <= relativeTolerance*(1+math.Abs(a))
}

// mostConnectedIndex returns the index that is in the most tables, of those with two or more values; −1 if there is none.
func mostConnectedIndex(e *sumproduct.Expression) int {
	degree := make([]int, len(e.Dims))
	for _, t := range e.Tables {
		for _, i := range t.Scope {
			degree[i]++
		}
	}
	hub := -1
	for i, d := range e.Dims {
		if d > 1 && (hub < 0 || degree[i] > degree[hub]) {
			hub = i
		}
	}
	return hub
}

// grow sets the state: the index hub gets the value a, and each other index the most probable value given those set before (bestValue). The
// indices come in breadth-first order from hub, where two are neighbours if they share a table; then come those not connected with it.
func (c *climber) grow(hub, a int) {
	isSet := make([]bool, len(c.state))
	queue := []int{hub}
	isQueued := make([]bool, len(c.state))
	isQueued[hub] = true
	next := 0 // all indices before it have been queued
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		if i == hub {
			c.state[i] = a
		} else {
			c.state[i] = c.bestValue(i, isSet)
		}
		isSet[i] = true
		for _, p := range c.places[i] {
			for _, j := range c.expression.Tables[p.table].Scope {
				if !isQueued[j] {
					isQueued[j] = true
					queue = append(queue, j)
				}
			}
		}
		for ; len(queue) == 0 && next < len(c.state); next++ { // begin another connected component
			if !isQueued[next] {
				isQueued[next] = true
				queue = append(queue, next)
			}
		}
	}
}

// bestValue returns the value of index i for which the product of its tables is largest. In each table the other indices have the values of
// the state if they are set, else those that make this table's entry largest.
func (c *climber) bestValue(i int, isSet []bool) int {
	score := c.scratch[:c.expression.Dims[i]] // by value of i: Σ over its tables of the logarithm of the entry
	clear(score)
	for _, p := range c.places[i] {
		if j, stride := otherIndex(c.expression, p, i); j >= 0 && isSet[j] {
			for a := range score {
				score[a] += c.lnTables[p.table][a*p.stride+c.state[j]*stride]
			}
			continue
		}
		for a, x := range c.largestEntries(p.table, i, isSet) {
			score[a] += x
		}
	}
	best := 0
	for a, s := range score {
		if s > score[best] {
			best = a
		}
	}
	return best
}

// largestEntries returns, for each value of index i, the logarithm of the largest entry of table t with this value. The table's other
// indices have the values of the state if isSet is true for them; the maximum is over the values of the rest.
func (c *climber) largestEntries(t, i int, isSet []bool) []float64 {
	scope := c.expression.Tables[t].Scope
	largest := slices.Repeat([]float64{math.Inf(-1)}, c.expression.Dims[i])
	walk := sumproduct.NewWalk(c.expression.Dims, scope)
	for _, ln := range c.lnTables[t] {
		agrees, value := true, 0 // the entry's values agree with those that are set; its value of index i
		for n, j := range scope {
			if j == i {
				value = walk.Values[n]
			} else if isSet[j] && walk.Values[n] != c.state[j] {
				agrees = false
				break
			}
		}
		if agrees {
			largest[value] = max(largest[value], ln)
		}
		walk.Next()
	}
	return largest
}

// otherIndex returns the other index of a table over two indices, one of which is i, and its stride. p is the place of i in the table. It
// returns −1 if the table is over more or fewer indices. If the other index has one value, it may return i itself: bestValue does not use
// that, since i is not set yet.
func otherIndex(e *sumproduct.Expression, p place, i int) (other, stride int) {
	switch scope := e.Tables[p.table].Scope; {
	case len(scope) != 2:
		return -1, 0
	case p.stride == 1: // i is the last index of the table
		return scope[0], e.Dims[i]
	default:
		return scope[1], 1
	}
}
