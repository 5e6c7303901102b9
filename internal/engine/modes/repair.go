package modes

// Repair: from a state that some tables forbid to one that none does.

import (
	"math/rand/v2"
	"slices"
)

// Parameters of a repair. Chosen, as of WalkSAT (Selman, Kautz, Cohen, 1994).
const (
	maxRepairMoves = 30  // moves per index, at most
	randomShare    = 0.1 // share of moves to any value
)

// repair changes the state until no table has an entry of 0 there: until none forbids it. Each move takes a random table that forbids it.
// With the probability randomShare it gives a random index of the table a random value; otherwise it makes the best change of one of the
// table's indices (bestRepair). It returns false if that takes more than maxRepairMoves moves per index.
func (c *climber) repair(r *rand.Rand) bool {
	c.locate()
	broken := forbiddingTables{positions: slices.Repeat([]int{-1}, len(c.positions))}
	for t := range c.positions {
		broken.set(t, c.forbids(t))
	}
	for moves := maxRepairMoves * len(c.state); len(broken.tables) > 0 && moves > 0; moves-- {
		scope := c.expression.Tables[broken.tables[r.IntN(len(broken.tables))]].Scope
		var index, value int
		if r.Float64() < randomShare {
			index = scope[r.IntN(len(scope))]
			value = r.IntN(c.expression.Dims[index])
		} else if index, value = c.bestRepair(scope, r); index < 0 {
			return false // no index of the table has another value
		}
		c.move(index, value)
		for _, p := range c.places[index] {
			broken.set(p.table, c.forbids(p.table))
		}
	}
	return len(broken.tables) == 0
}

// forbiddingTables is the set of the tables that forbid a state, in a list for random draws.
type forbiddingTables struct {
	tables    []int
	positions []int // by table: its position in tables, −1 if it is not there
}

// set adds table t to the set if forbids is true, else it removes it.
func (s *forbiddingTables) set(t int, forbids bool) {
	switch k := s.positions[t]; {
	case forbids && k < 0:
		s.positions[t], s.tables = len(s.tables), append(s.tables, t)
	case !forbids && k >= 0: // the last table takes its position
		last := s.tables[len(s.tables)-1]
		s.tables[k], s.positions[last], s.positions[t] = last, k, -1
		s.tables = s.tables[:len(s.tables)-1]
	}
}

// bestRepair returns the change of one index of scope to another value after which the fewest tables forbid the state, a random one of
// several. index is −1 if all indices of scope have a single value.
func (c *climber) bestRepair(scope []int, r *rand.Rand) (index, value int) {
	index = -1
	least, ties := 0, 0 // the smallest change of the number of forbidding tables, and how many candidates have it so far
	for _, j := range scope {
		for a := range c.expression.Dims[j] {
			if a == c.state[j] {
				continue
			}
			change := c.countForbidding(j, a) - c.countForbidding(j, c.state[j])
			if index < 0 || change < least {
				index, value, least, ties = j, a, change, 1
			} else if change == least {
				// Each of the ties so far is kept with the same probability.
				if ties++; r.IntN(ties) == 0 {
					index, value = j, a
				}
			}
		}
	}
	return index, value
}

// forbids reports whether table t has an entry of 0 at the state.
func (c *climber) forbids(t int) bool { return c.expression.Tables[t].Data[c.positions[t]] == 0 }

// countForbidding returns how many tables of index i have an entry of 0 if the index gets the value a and all others keep theirs.
func (c *climber) countForbidding(i, a int) (n int) {
	for _, p := range c.places[i] {
		if c.expression.Tables[p.table].Data[c.positions[p.table]+(a-c.state[i])*p.stride] == 0 {
			n++
		}
	}
	return n
}
