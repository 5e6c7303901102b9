package pairwise

// Hash joins of sparse tables.

import (
	"slices"
)

// move takes a run of bits of a key to another place.
type move struct {
	mask        uint64 // of the bits, where they are
	left, right int
}

// apply moves bits of a key.
func apply(moves []move, key uint64) uint64 {
	out := uint64(0)
	for _, m := range moves {
		out |= key & m.mask << m.left >> m.right
	}
	return out
}

// moving maps the fields of a table that are in to as well;
// neighbours that stay neighbours move together.
func moving(from, to []field) []move {
	var out []move
	last := field{shift: -1}
	for _, f := range from {
		i := slices.IndexFunc(to, func(g field) bool { return g.index == f.index })
		if i < 0 || f.width == 0 {
			continue
		}
		m := move{
			mask:  (1<<f.width - 1) << f.shift,
			left:  max(0, to[i].shift-f.shift),
			right: max(0, f.shift-to[i].shift),
		}
		if n := len(out); n > 0 && out[n-1].left == m.left && out[n-1].right == m.right &&
			last.shift == f.shift+f.width {
			out[n-1].mask |= m.mask
		} else {
			out = append(out, m)
		}

		last = f
	}
	return out
}

// join is the index of the smaller operand: its entries by the key of the common indices,
// groups in the sequence of their first appearance, entries within a group in theirs.
type join struct {
	group []uint64  // common key by group
	slots []uint32  // hash table: number of a group plus 1, 0 for none
	shift int       // of the hash, which leaves the bits of a slot
	first []uint32  // by group: where its entries begin; one more at the end
	of    []uint32  // by entry: its group
	key   []uint64  // by place: the part of the result's key
	value []float64 // by place
}

// merge computes a table from two.
func (x *sparse) merge(i, j, out int) error {
	s := x.run.shape
	a, b := &x.tables[i], &x.tables[j]
	if len(a.key) < len(b.key) {
		a, b = b, a
	}
	fields, err := x.fields(s.scope[out])
	if err != nil {
		return err
	}

	var common []field
	at := 0
	for k := len(a.fields) - 1; k >= 0; k-- {
		f := a.fields[k]
		if slices.ContainsFunc(b.fields, func(g field) bool { return g.index == f.index }) {
			common = append(common, field{f.index, at, f.width})
			at += f.width
		}
	}

	bytes := 28 * float64(len(b.key)) * 2
	if err := x.grow(bytes); err != nil {
		return err
	}

	g := &x.join
	g.index(b, moving(b.fields, common), moving(b.fields, fields))
	pick := moving(a.fields, common)
	place := moving(a.fields, fields)

	sum := newSums(x, len(s.sums[out-s.leaves]) > 0)
	for k, key := range a.key {
		if k&0xffff == 0 && x.run.ctx.Err() != nil {
			return x.run.ctx.Err()
		}
		n := g.find(apply(pick, key))
		if n < 0 {
			continue
		}

		mine := apply(place, key)
		v := a.value[k]
		from, to := g.first[n], g.first[n+1]
		x.stats.Products += float64(to - from)
		for p := from; p < to; p++ {
			if err := sum.add(mine|g.key[p], v*g.value[p]); err != nil {
				return err
			}
		}
	}

	x.live -= bytes
	x.tables[out] = sum.table(fields)
	return nil
}

// index groups the entries of b.
func (g *join) index(b *entries, pick, place []move) {
	n := len(b.key)
	size := 64
	shift := 64 - 6
	for size < 2*n {
		size *= 2
		shift--
	}

	g.shift = shift
	g.slots = append(g.slots[:0], make([]uint32, size)...)
	g.group = g.group[:0]
	g.of = g.of[:0]
	for _, key := range b.key {
		c := apply(pick, key)
		h := c * golden >> shift
		for g.slots[h] != 0 && g.group[g.slots[h]-1] != c {
			h = (h + 1) & uint64(size-1)
		}
		if g.slots[h] == 0 {
			g.group = append(g.group, c)
			g.slots[h] = uint32(len(g.group))
		}
		g.of = append(g.of, g.slots[h]-1)
	}

	// Counting sort of the entries by group, which keeps their sequence.
	g.first = append(g.first[:0], make([]uint32, len(g.group)+2)...)
	for _, c := range g.of {
		g.first[c+2]++
	}
	for c := range g.group {
		g.first[c+2] += g.first[c+1]
	}

	g.key = append(g.key[:0], make([]uint64, n)...)
	g.value = append(g.value[:0], make([]float64, n)...)
	for k, c := range g.of {
		p := g.first[c+1]
		g.first[c+1]++
		g.key[p] = apply(place, b.key[k])
		g.value[p] = b.value[k]
	}
}

// find returns the group of a common key, −1 for none.
func (g *join) find(c uint64) int {
	for h := c * golden >> g.shift; ; h = (h + 1) & uint64(len(g.slots)-1) {
		i := g.slots[h]
		if i == 0 {
			return -1
		}
		if g.group[i-1] == c {
			return int(i - 1)
		}
	}
}
