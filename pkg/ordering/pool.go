package ordering

// pool: the tables that are left while a tree is built from the leaves up.

import "slices"

// pool merges tables of a network one pair at a time.
type pool struct {
	n      *network
	scope  [][]int32 // by table, sorted
	size   []logs    // by table
	alive  []bool    // by table
	at     [][]int32 // by index: its tables, with dead ones among them
	live   []int32   // by index: its live tables
	merges [][2]int
	moves  int64
}

func newPool(n *network) *pool {
	p := &pool{n: n, at: n.incidence(), live: make([]int32, len(n.of))}
	p.scope = append(make([][]int32, 0, 2*len(n.edges)), n.edges...)
	for v, list := range p.at {
		p.live[v] = int32(len(list))
		p.moves += int64(len(list))
	}
	for _, s := range p.scope {
		p.size = append(p.size, p.weigh(s))
		p.alive = append(p.alive, true)
	}
	return p
}

func (p *pool) weigh(scope []int32) logs {
	var w logs
	for _, v := range scope {
		w += p.n.weight(v)
	}
	return w
}

// tables returns the live tables with index v, in the sequence they were made.
func (p *pool) tables(v int32) []int32 {
	if list := p.at[v]; len(list) > int(p.live[v]) {
		p.moves += int64(len(list))
		p.at[v] = slices.DeleteFunc(list, func(t int32) bool { return !p.alive[t] })
	}
	return p.at[v]
}

// merge replaces tables a and b by their product, summed over the indices nobody else has.
func (p *pool) merge(a, b int32) int32 {
	c := int32(len(p.scope))
	x, y := p.scope[a], p.scope[b]
	p.moves += int64(2 * (len(x) + len(y)))
	out := make([]int32, 0, len(x)+len(y))
	keep := func(v int32) {
		out = append(out, v)
		p.at[v] = append(p.at[v], c)
	}
	for len(x) > 0 && len(y) > 0 {
		switch v, u := x[0], y[0]; {
		case v < u:
			keep(v)
			x = x[1:]
		case u < v:
			keep(u)
			y = y[1:]
		default:
			if p.live[v]--; p.live[v] > 1 {
				keep(v)
			} else {
				p.live[v] = 0
				p.at[v] = nil
			}
			x, y = x[1:], y[1:]
		}
	}
	for _, v := range x {
		keep(v)
	}
	for _, v := range y {
		keep(v)
	}
	p.alive[a], p.alive[b] = false, false
	p.scope[a], p.scope[b] = nil, nil
	p.scope = append(p.scope, out)
	p.size = append(p.size, p.weigh(out))
	p.alive = append(p.alive, true)
	p.merges = append(p.merges, [2]int{int(a), int(b)})
	return c
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

// finish multiplies what is left, numbers and unconnected tables, smallest first, and returns all merges.
func (p *pool) finish() [][2]int {
	left := p.rest()
	slices.SortStableFunc(left, func(a, b int32) int { return int(min(max(p.size[a]-p.size[b], -1), 1)) })
	for len(left) > 1 {
		left = append([]int32{p.merge(left[0], left[1])}, left[2:]...)
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
