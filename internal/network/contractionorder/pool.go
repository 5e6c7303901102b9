package contractionorder

// pool: the tables that are left while a tree is built from the leaves up.

import (
	"slices"
)

// pool merges tables of a network one pair at a time.
type pool struct {
	n     *network
	scope [][]int32 // by table, sorted
	// by table and position in its scope: where the table is in the list of that index
	place  [][]int32
	size   []logs    // by table
	alive  []bool    // by table
	at     [][]int32 // by index: its live tables, in no particular sequence
	merges [][2]int
	moves  int64
}

func newPool(n *network) *pool {
	p := &pool{n: n, at: make([][]int32, len(n.of))}
	degree := make([]int, len(n.of))
	for _, e := range n.edges {
		for _, v := range e {
			degree[v]++
		}
	}
	for v, d := range degree {
		p.at[v] = make([]int32, 0, d)
	}

	for _, e := range n.edges {
		p.add(slices.Clone(e))
	}
	return p
}

// add makes a table.
func (p *pool) add(scope []int32) int32 {
	t := int32(len(p.scope))
	place := make([]int32, len(scope))
	for k, v := range scope {
		place[k] = int32(len(p.at[v]))
		p.at[v] = append(p.at[v], t)
	}
	p.scope = append(p.scope, scope)
	p.place = append(p.place, place)
	p.size = append(p.size, p.weigh(scope))
	p.alive = append(p.alive, true)
	p.moves += int64(16 * len(scope))
	return t
}

// remove takes a table out of the lists of its indices, the last of a list taking its place.
func (p *pool) remove(t int32) {
	for k, v := range p.scope[t] {
		list, at := p.at[v], p.place[t][k]
		last := list[len(list)-1]
		list[at] = last
		i, _ := slices.BinarySearch(p.scope[last], v)
		p.place[last][i] = at
		p.at[v] = list[:len(list)-1]
	}

	p.moves += int64(16 * len(p.scope[t]))
	p.alive[t] = false
	p.scope[t], p.place[t] = nil, nil
}

// weigh returns log2 of the entries of a table over scope.
func (p *pool) weigh(scope []int32) logs {
	var w logs
	for _, v := range scope {
		w += p.n.weight(v)
	}
	return w
}

// merge replaces tables a and b by their product, summed over the indices nobody else has.
func (p *pool) merge(a, b int32) int32 {
	x, y := p.scope[a], p.scope[b]
	p.remove(a)
	p.remove(b)

	// Of the indices of both, those that a third table has stay.
	out := make([]int32, 0, len(x)+len(y))
	for len(x) > 0 && len(y) > 0 {
		switch v, u := x[0], y[0]; {
		case v < u:
			out, x = append(out, v), x[1:]
		case u < v:
			out, y = append(out, u), y[1:]
		default:
			if len(p.at[v]) > 0 {
				out = append(out, v)
			}
			x, y = x[1:], y[1:]
		}
	}
	out = append(append(out, x...), y...)

	p.merges = append(p.merges, [2]int{int(a), int(b)})
	return p.add(out)
}

// rest lists the live tables.
func (p *pool) rest() []int32 {
	var out []int32
	for t, ok := range p.alive {
		if ok {
			out = append(out, int32(t))
		}
	}
	return out
}

// finish multiplies the remaining numbers and unconnected tables, smallest
// first, and returns all merges.
func (p *pool) finish() [][2]int {
	left := p.rest()
	slices.SortStableFunc(left,
		func(a, b int32) int { return int(min(max(p.size[a]-p.size[b], -1), 1)) })
	for len(left) > 1 {
		left[1] = p.merge(left[0], left[1])
		left = left[1:]
	}
	return p.merges
}

// unionSize returns log2 of the size of the union of two scopes.
func (p *pool) unionSize(a, b int32) logs {
	x, y := p.scope[a], p.scope[b]
	p.moves += int64(len(x) + len(y))
	size := p.size[a] + p.size[b]
	for len(x) > 0 && len(y) > 0 {
		switch v, u := x[0], y[0]; {
		case v < u:
			x = x[1:]
		case u < v:
			y = y[1:]
		default:
			size -= p.n.weight(v)
			x, y = x[1:], y[1:]
		}
	}
	return size
}
