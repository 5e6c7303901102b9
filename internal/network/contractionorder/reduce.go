package contractionorder

// Reduction: merges that a good tree makes anyway, made before the search.

// fewTables bounds the partners that one table is compared with.
const fewTables = 256

// reduce merges tables as long as no table gets larger:
//
//   - a tensor whose scope is inside another's, with that one;
//   - the two tensors of an index that only they have, where the result is no larger than the
//     larger of them.
//
// A chain, a tree, and every tensor that hangs on one other disappear. The tables alive
// in the pool are the search's input. Time: near linear for bounded degrees.
func reduce(n *network) *pool {
	p := newPool(n)
	queue := make([]int32, 0, 2*len(n.edges))
	for t := range n.edges {
		queue = append(queue, int32(t))
	}

	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		if !p.alive[t] {
			continue
		}
		if o := p.partner(t); o != none {
			c := p.merge(o, t)
			queue = append(append(queue, c), p.near(c)...)
		}
	}
	return p
}

// partner returns a table to merge t with, or none.
func (p *pool) partner(t int32) int32 {
	// Two tensors that alone have an index, while looking for the index that fewest tables have.
	rare := none
	for _, v := range p.scope[t] {
		list := p.at[v]
		if rare == none || len(list) < len(p.at[rare]) {
			rare = v
		}
		if len(list) != 2 {
			continue
		}
		o := list[0] + list[1] - t
		if p.resultSize(t, o) <= max(p.size[t], p.size[o]) {
			return o
		}
	}

	// A table around t has its rarest index too.
	if rare == none {
		return none
	}
	list := p.at[rare]
	for _, o := range list[:min(len(list), fewTables)] {
		if o != t && p.unionSize(t, o) == p.size[o] {
			return o
		}
	}
	return none
}

// resultSize is the size of merge(a, b) beforehand.
func (p *pool) resultSize(a, b int32) logs {
	size := p.unionSize(a, b)
	x, y := p.scope[a], p.scope[b]
	for len(x) > 0 && len(y) > 0 {
		switch v, u := x[0], y[0]; {
		case v < u:
			x = x[1:]
		case u < v:
			y = y[1:]
		default:
			if len(p.at[v]) == 2 {
				size -= p.n.weight(v)
			}
			x, y = x[1:], y[1:]
		}
	}
	return size
}

// near lists tables that share an index with t, for a second look; of hubs only the first ones.
func (p *pool) near(t int32) []int32 {
	var out []int32
	for _, v := range p.scope[t] {
		list := p.at[v]
		for _, o := range list[:min(len(list), fewTables/8)] {
			if o != t {
				out = append(out, o)
			}
		}
		if len(out) > fewTables {
			break
		}
	}
	p.moves += int64(len(out))
	return out
}

// kernel returns the network of the tables that are alive, and their numbers.
func (p *pool) kernel(dims []int) (*network, []int32) {
	left := p.rest()
	edges := make([][]int, len(left))
	for i, t := range left {
		for _, v := range p.scope[t] {
			edges[i] = append(edges[i], p.n.of[v])
		}
	}
	return newNetwork(dims, edges, func(int) bool { return false }), left
}

// expand returns a tree over the kernel as merges over the network that was reduced.
func (p *pool) expand(left []int32, merges [][2]int) [][2]int {
	out := make([][2]int, 0, len(p.merges)+len(merges))
	out = append(out, p.merges...)
	next := len(p.n.edges) + len(p.merges)
	number := func(t int) int {
		if t < len(left) {
			return int(left[t])
		}
		return next + t - len(left)
	}
	for _, m := range merges {
		out = append(out, [2]int{number(m[0]), number(m[1])})
	}
	return out
}
