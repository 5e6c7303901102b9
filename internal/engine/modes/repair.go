package modes

// Repair: from a state that some tables forbid to one that none does.

import (
	"math/rand/v2"
)

// Parameters of a repair. Chosen, as of WalkSAT (Selman, Kautz, Cohen, 1994).
const (
	maxRepairMoves = 30  // moves per index, at most
	randomShare    = 0.1 // share of moves to any value
)

// repair changes the state until no table forbids it. Each move takes a random table that does, and changes one of its indices to the value
// with which the fewest tables forbid the state, or, at random, one of its indices to any value. It returns false if that takes more than
// maxRepairMoves moves per index.
func (c *climber) repair(r *rand.Rand) bool {
	c.locate()
	var broken []int                   // the tables that forbid the state
	position := make([]int, len(c.at)) // by table: its position in broken, or −1
	for t := range position {
		position[t] = -1
	}
	update := func(t int) { // enters t into broken, or removes it
		forbidden := c.e.Tables[t].Data[c.at[t]] == 0
		switch k := position[t]; {
		case forbidden && k < 0:
			position[t], broken = len(broken), append(broken, t)
		case !forbidden && k >= 0:
			last := broken[len(broken)-1]
			broken[k], position[last], position[t] = last, k, -1
			broken = broken[:len(broken)-1]
		}
	}
	for t := range c.at {
		update(t)
	}
	for moves := maxRepairMoves * len(c.x); len(broken) > 0 && moves > 0; moves-- {
		scope := c.e.Tables[broken[r.IntN(len(broken))]].Scope
		i, a := -1, 0
		if r.Float64() < randomShare {
			i = scope[r.IntN(len(scope))]
			a = r.IntN(c.e.Dims[i])
		} else {
			least, ties := 0, 0 // the smallest change of the number of forbidding tables, and how many moves have it
			for _, j := range scope {
				for b := range c.e.Dims[j] {
					if b == c.x[j] {
						continue
					}
					change := c.countForbidding(j, b) - c.countForbidding(j, c.x[j])
					if i < 0 || change < least {
						i, a, least, ties = j, b, change, 1
					} else if change == least {
						if ties++; r.IntN(ties) == 0 {
							i, a = j, b
						}
					}
				}
			}
			if i < 0 {
				return false
			}
		}
		c.move(i, a)
		for _, p := range c.over[i] {
			update(p.table)
		}
	}
	return len(broken) == 0
}

// countForbidding returns the number of tables with an entry of 0 if index i gets the value a and all others keep theirs.
func (c *climber) countForbidding(i, a int) (n int) {
	for _, p := range c.over[i] {
		if c.e.Tables[p.table].Data[c.at[p.table]+(a-c.x[i])*p.stride] == 0 {
			n++
		}
	}
	return n
}
