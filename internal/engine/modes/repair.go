package modes

// States that no table forbids, from states that some do.

import (
	"math/rand/v2"
)

// Parameters of a repair. Chosen, as of WalkSAT (Selman, Kautz, Cohen, 1994).
const (
	repairs = 30  // moves per index, at most
	astray  = 0.1 // share of moves to any value
)

// repair changes the state until no table forbids it: of a table that does, one index moves to the value that leaves the fewest such
// tables, or anywhere. It returns false where that takes more than repairs moves per index.
func (c *climber) repair(r *rand.Rand) bool {
	c.enter()
	var broken []int // tables
	at := make([]int, len(c.at))
	for t := range at {
		at[t] = -1
	}
	update := func(t int) {
		forbidden := c.e.Tables[t].Data[c.at[t]] == 0
		switch k := at[t]; {
		case forbidden && k < 0:
			at[t], broken = len(broken), append(broken, t)
		case !forbidden && k >= 0:
			last := broken[len(broken)-1]
			broken[k], at[last], at[t] = last, k, -1
			broken = broken[:len(broken)-1]
		}
	}
	for t := range c.at {
		update(t)
	}
	for moves := repairs * len(c.x); len(broken) > 0 && moves > 0; moves-- {
		scope := c.e.Tables[broken[r.IntN(len(broken))]].Scope
		i, a := -1, 0
		if r.Float64() < astray {
			i = scope[r.IntN(len(scope))]
			a = r.IntN(c.e.Dims[i])
		} else {
			least, ties := 0, 0
			for _, j := range scope {
				for b := range c.e.Dims[j] {
					if b == c.x[j] {
						continue
					}
					left := c.forbid(j, b) - c.forbid(j, c.x[j])
					if i < 0 || left < least {
						i, a, least, ties = j, b, left, 1
					} else if left == least {
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

// forbid is the number of tables that forbid an index a value, all others as they are.
func (c *climber) forbid(i, a int) (n int) {
	for _, p := range c.over[i] {
		if c.e.Tables[p.table].Data[c.at[p.table]+(a-c.x[i])*p.stride] == 0 {
			n++
		}
	}
	return n
}
