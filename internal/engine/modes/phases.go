package modes

// Phases: maxima far from each other. Equivalent maxima are one phase.

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Phase is a maximum, with the other maxima of the same weight and surroundings. A model that is unchanged if its values are renamed has
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

// PhasesWork returns the price of Phases in flops. It is 0 if no index has two values.
func PhasesWork(e *sumproduct.Expression) float64 {
	hub := newHub(e)
	if hub < 0 {
		return 0
	}
	looks := 0.0
	for _, t := range e.Tables {
		if len(t.Scope) > 2 {
			looks += float64(len(t.Data) * len(t.Scope))
		}
	}
	grown := float64(min(e.Dims[hub], maxGrown))
	return Work(e)*(1+grown/tries) + lookWork*grown*looks
}

// Phases returns up to limit phases, the largest mass first, from ascents that begin at random states and at grown ones. In a grown state
// the index of most tables has one of its values, and one index after the other, neighbours first, takes the most probable value given
// those before. It leaves out maxima whose surroundings are near those of a maximum of larger mass. The same input gives the same phases.
// Errors: as of Find. Cost: PhasesWork.
func Phases(ctx context.Context, e *sumproduct.Expression, limit int) ([]Phase, error) {
	grown, err := grownStates(ctx, e)
	if err != nil {
		return nil, err
	}
	_, found, err := maxima(ctx, e, newRand(), grown)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b Mode) int { return cmp.Compare(b.mass(), a.mass()) })
	var far []Mode
	var kinds []Phase
	for _, m := range found {
		if slices.ContainsFunc(far, func(o Mode) bool { return o.hasNearSurroundings(&m) }) {
			continue
		}
		far = append(far, m)
		k := slices.IndexFunc(kinds, func(p Phase) bool {
			return isEqualUpToRounding(p.Ln, m.Ln) && isEqualUpToRounding(p.mass(), m.mass()) && isEqualUpToRounding(p.LnAround, m.LnAround)
		})
		switch {
		case k >= 0:
			kinds[k].Others = append(kinds[k].Others, m)
		case len(kinds) < limit:
			kinds = append(kinds, Phase{Mode: m})
		}
	}
	return kinds, nil
}

// grownStates returns the states that grow from each value of the index of most tables. There are none if an entry is below 0, if e is
// unfit, or if no index has two values.
func grownStates(ctx context.Context, e *sumproduct.Expression) (grown [][]int, err error) {
	hub := newHub(e)
	if hub < 0 || e.Signed() || e.Fits() != nil {
		return nil, nil
	}
	c := newClimber(e)
	for a := range min(e.Dims[hub], maxGrown) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.grow(hub, a)
		grown = append(grown, slices.Clone(c.x))
	}
	return grown, nil
}

// hasNearSurroundings reports whether the surroundings of two maxima differ in less than 1/distancePart of the indices.
func (m *Mode) hasNearSurroundings(o *Mode) bool {
	different := 0.0
	for i, p := range m.Given {
		for a, x := range p {
			different += math.Abs(x-o.Given[i][a]) / 2
		}
	}
	return different*distancePart < float64(len(m.Given))
}

// isEqualUpToRounding reports whether two logarithms differ by rounding at most.
func isEqualUpToRounding(a, b float64) bool {
	return math.Abs(a-b) <= relativeTolerance*(1+math.Abs(a))
}

// newHub returns the index of two or more values that is in the most tables, −1 if there is none.
func newHub(e *sumproduct.Expression) int {
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

// grow sets the state: the hub gets the value a, and all other indices, in breadth-first order from it, the most probable value given those
// before.
func (c *climber) grow(hub, a int) {
	isSet := make([]bool, len(c.x))
	queue := []int{hub}
	isQueued := make([]bool, len(c.x))
	isQueued[hub] = true
	next := 0
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		if i == hub {
			c.x[i] = a
		} else {
			c.x[i] = c.bestValue(i, isSet)
		}
		isSet[i] = true
		for _, p := range c.over[i] {
			for _, j := range c.e.Tables[p.table].Scope {
				if !isQueued[j] {
					isQueued[j] = true
					queue = append(queue, j)
				}
			}
		}
		for ; len(queue) == 0 && next < len(c.x); next++ { // another component
			if !isQueued[next] {
				isQueued[next] = true
				queue = append(queue, next)
			}
		}
	}
}

// bestValue returns the value of index i for which the product of its tables is largest. In each table the other indices have the values of
// the state if they are set, else the values that make this table's entry largest.
func (c *climber) bestValue(i int, isSet []bool) int {
	score := c.score[:c.e.Dims[i]]
	clear(score)
	best := make([]float64, len(score))
	for _, p := range c.over[i] {
		table := &c.e.Tables[p.table]
		if j, step := otherIndex(c.e, p, i); j >= 0 && isSet[j] {
			for a := range score {
				score[a] += c.tables[p.table][a*p.stride+c.x[j]*step]
			}
			continue
		}
		for a := range best {
			best[a] = math.Inf(-1)
		}
		at := sumproduct.NewWalk(c.e.Dims, table.Scope)
		for k := range table.Data {
			isConsistent, value := true, 0 // with the values that are set; of index i
			for n, j := range table.Scope {
				if j == i {
					value = at.X[n]
				} else if isSet[j] && at.X[n] != c.x[j] {
					isConsistent = false
					break
				}
			}
			if isConsistent {
				best[value] = max(best[value], c.tables[p.table][k])
			}
			at.Next()
		}
		for a := range score {
			score[a] += best[a]
		}
	}
	top := 0
	for a, s := range score {
		if s > score[top] {
			top = a
		}
	}
	return top
}

// otherIndex returns the other index of a table over two indices, one of which is i, and its stride. It returns −1 if the table is over
// more or fewer indices.
func otherIndex(e *sumproduct.Expression, p place, i int) (j, stride int) {
	switch scope := e.Tables[p.table].Scope; {
	case len(scope) != 2:
		return -1, 0
	case p.stride == 1:
		return scope[0], e.Dims[i]
	default:
		return scope[1], 1
	}
}
