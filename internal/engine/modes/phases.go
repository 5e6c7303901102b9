package modes

// Where phases may be: maxima far from each other, of which equal ones are one kind.

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Phase is a maximum and others of the same weight and surroundings. A model that looks the same after its values are renamed
// has as many phases.
type Phase struct {
	Mode
	Others []Mode
}

// mostGrown bounds the states that Phases grows, and alike is the share of a logarithm by which equal maxima may differ.
const (
	mostGrown = 32
	alike     = 1e-10
)

// PhasesWork is the price of Phases in flops.
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
	grown := float64(min(e.Dims[hub], mostGrown))
	return Work(e)*(1+grown/tries) + lookWork*grown*looks
}

// Phases returns at most so many kinds of maxima by falling mass, from ascents that begin at random states and at grown ones: the index
// of most tables has one of its values, and all others, neighbours first, take the most probable value beside those before. Dropped are
// those whose surroundings are near those of a maximum of larger mass. The same input gives the same phases. Errors: as of Find. Cost:
// PhasesWork.
func Phases(ctx context.Context, e *sumproduct.Expression, most int) ([]Phase, error) {
	grown, err := grownStates(ctx, e)
	if err != nil {
		return nil, err
	}
	_, found, err := maxima(ctx, e, drawing(), grown)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b Mode) int { return cmp.Compare(b.mass(), a.mass()) })
	var far []Mode
	var kinds []Phase
	for _, m := range found {
		if slices.ContainsFunc(far, func(o Mode) bool { return o.around(&m) }) {
			continue
		}
		far = append(far, m)
		k := slices.IndexFunc(kinds, func(p Phase) bool {
			return same(p.Ln, m.Ln) && same(p.mass(), m.mass()) && same(p.LnAround, m.LnAround)
		})
		switch {
		case k >= 0:
			kinds[k].Others = append(kinds[k].Others, m)
		case len(kinds) < most:
			kinds = append(kinds, Phase{Mode: m})
		}
	}
	return kinds, nil
}

// grownStates are the states that grow from the values of the index of most tables; none where entries are below 0.
func grownStates(ctx context.Context, e *sumproduct.Expression) (grown [][]int, err error) {
	hub := newHub(e)
	if hub < 0 || e.Signed() || e.Fits() != nil {
		return nil, nil
	}
	c := newClimber(e)
	for a := range min(e.Dims[hub], mostGrown) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.grow(hub, a)
		grown = append(grown, slices.Clone(c.x))
	}
	return grown, nil
}

// around reports whether the surroundings of two maxima differ in less than 1/apart of the indices.
func (m *Mode) around(o *Mode) bool {
	different := 0.0
	for i, p := range m.Given {
		for a, x := range p {
			different += math.Abs(x-o.Given[i][a]) / 2
		}
	}
	return different*apart < float64(len(m.Given))
}

// same reports whether two logarithms are equal but for rounding.
func same(a, b float64) bool { return math.Abs(a-b) <= alike*(1+math.Abs(a)) }

// newHub returns the index of most tables, −1 where none has two values.
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

// grow gives an index a value, and all others the most probable one beside those before, along tables that share an index.
func (c *climber) grow(hub, a int) {
	known := make([]bool, len(c.x))
	queue := []int{hub}
	queued := make([]bool, len(c.x))
	queued[hub] = true
	next := 0
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		if i == hub {
			c.x[i] = a
		} else {
			c.x[i] = c.beside(i, known)
		}
		known[i] = true
		for _, p := range c.over[i] {
			for _, j := range c.e.Tables[p.table].Scope {
				if !queued[j] {
					queued[j] = true
					queue = append(queue, j)
				}
			}
		}
		for ; len(queue) == 0 && next < len(c.x); next++ { // another component
			if !queued[next] {
				queued[next] = true
				queue = append(queue, next)
			}
		}
	}
}

// beside is the value of an index with the largest product of its tables, whose other indices have their values where these are known and
// their best ones else.
func (c *climber) beside(i int, known []bool) int {
	score := c.score[:c.e.Dims[i]]
	clear(score)
	best := make([]float64, len(score))
	for _, p := range c.over[i] {
		table := &c.e.Tables[p.table]
		if j, step := other(c.e, p, i); j >= 0 && known[j] {
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
			fits, own := true, 0
			for n, j := range table.Scope {
				if j == i {
					own = at.X[n]
				} else if known[j] && at.X[n] != c.x[j] {
					fits = false
					break
				}
			}
			if fits {
				best[own] = max(best[own], c.tables[p.table][k])
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

// other returns the index of a table of two beside one of them, and its stride; −1 of other tables.
func other(e *sumproduct.Expression, p place, i int) (j, stride int) {
	switch scope := e.Tables[p.table].Scope; {
	case len(scope) != 2:
		return -1, 0
	case p.stride == 1:
		return scope[0], e.Dims[i]
	default:
		return scope[1], 1
	}
}
