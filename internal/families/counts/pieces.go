package counts

// Pieces: the connected parts of the network without the cores in count space, and their classes of equal
// ones.

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// piece is a connected part: links that tables join, both ascending.
type piece struct {
	links, cores []int
}

// kind is the common data of equal pieces: their numbers, and so their polynomial.
type kind struct {
	piece        // the first of them
	members int  // number of equal pieces
	wired   *net // of pieces with tables
}

// pieces splits the links of a network: two are in one piece that a table joins.
func (l *layout) pieces() []piece {
	parent := make([]int32, len(l.net.Links))
	for k := range parent {
		parent[k] = int32(k)
	}
	find := func(k int) int32 {
		for parent[k] != int32(k) {
			parent[k] = parent[parent[k]]
			k = int(parent[k])
		}
		return int32(k)
	}
	for c, core := range l.net.Cores {
		if !l.table[c] {
			continue
		}
		for _, leg := range core.Legs {
			parent[find(l.link[leg])] = find(l.link[core.Legs[0]])
		}
	}

	// Pieces in the sequence of their first links.
	number := make([]int32, len(parent)) // 1 + the piece, by root
	of := func(link int) int { return int(number[find(link)]) - 1 }
	links, cores := []int{}, []int{} // counts of each piece
	for k := range parent {
		if of(k) < 0 {
			links, cores = append(links, 0), append(cores, 0)
			number[find(k)] = int32(len(links))
		}
		links[of(k)]++
	}
	for c, core := range l.net.Cores {
		if l.table[c] {
			cores[of(l.link[core.Legs[0]])]++
		}
	}

	out := make([]piece, len(links))
	space := make([]int, len(parent)+len(l.net.Cores))
	for t := range out {
		out[t].links, space = space[:0:links[t]], space[links[t]:]
		out[t].cores, space = space[:0:cores[t]], space[cores[t]:]
	}
	for k := range parent {
		out[of(k)].links = append(out[of(k)].links, k)
	}
	for c, core := range l.net.Cores {
		if l.table[c] {
			t := of(l.link[core.Legs[0]])
			out[t].cores = append(out[t].cores, c)
		}
	}
	return out
}

// kinds finds equal pieces: of says which kind each is of, kinds are in the sequence of their first
// pieces. Equal are pieces whose numbers are, bit by bit, read in the sequence of links and cores. Linear
// in the size of the network.
func (l *layout) kinds(ctx context.Context, pieces []piece) (kinds []kind, of []int32, err error) {
	p := pace.New(ctx)
	known := map[string]int32{}
	w := keyWriter{layout: l, local: make([]int32, len(l.net.Cores))}
	of = make([]int32, len(pieces))
	for t := range pieces {
		w.piece(pieces[t])
		if p.Over(int64(len(w.buf))/8 + 16) {
			return nil, nil, p.Err()
		}
		k, ok := known[string(w.buf)]
		if !ok {
			k = int32(len(kinds))
			known[string(w.buf)] = k
			kinds = append(kinds, kind{piece: pieces[t]})
		}
		kinds[k].members++
		of[t] = k
	}
	return kinds, of, nil
}

// keyWriter writes all that a piece's polynomial and marginals depend on.
type keyWriter struct {
	*layout
	buf   []byte
	local []int32 // by core: its number in the piece
}

// piece replaces the key by a piece's.
func (w *keyWriter) piece(p piece) {
	w.buf = w.buf[:0]
	w.int(len(p.links))
	w.int(len(p.cores))
	for i, c := range p.cores {
		w.local[c] = int32(i)
		w.tensor(w.net.Cores[c].T)
	}
	for _, k := range p.links {
		link := &w.net.Links[k]
		w.tensor(link.T)
		for _, leg := range link.Legs {
			w.leg(leg)
		}
	}
}

// leg writes the node at the other end of a leg.
func (w *keyWriter) leg(leg int) {
	if w.onTable(leg) {
		w.int(-1)
		w.int(int(w.local[w.core[leg]]))
		w.int(int(w.mode[leg]))
		return
	}
	for y := range w.net.Dims[leg] {
		x, level := w.weight(leg, y)
		w.int(level)
		w.float(x)
	}
}

// tensor writes form, shape and numbers.
func (w *keyWriter) tensor(t tensor.Tensor) {
	switch t := t.(type) {
	case *tensor.Dense:
		w.int(1)
		w.ints(t.Shape)
		w.floats(t.Data)
	case *tensor.CP:
		w.int(2)
		w.ints(t.Shape)
		w.floats(t.Weights)
		for _, v := range t.Vectors {
			w.floats(v)
		}
	case *tensor.Symmetric:
		w.int(3)
		w.ints(t.Shape)
		w.symmetric(t.Levels.D, t.Levels.Of)
		w.floats(t.Values.Mant)
		w.exponents(t.Values.Exp)
	case *tensor.SymmetryCP:
		w.int(4)
		w.ints(t.Shape)
		w.symmetric(t.Levels.D, t.Levels.Of)
		for _, term := range t.Terms {
			w.float(term.Alpha)
			w.floats(term.S.Mant)
			w.exponents(term.S.Exp)
			w.int(len(term.R))
			for _, r := range term.R {
				w.floats(r)
			}
		}
	}
}

// symmetric writes levels.
func (w *keyWriter) symmetric(d int, of [][]uint8) {
	w.int(d)
	for _, row := range of {
		w.int(len(row))
		w.buf = append(w.buf, row...)
	}
}

func (w *keyWriter) int(x int) { w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(int32(x))) }

func (w *keyWriter) float(x float64) {
	w.buf = binary.LittleEndian.AppendUint64(w.buf, math.Float64bits(x))
}

func (w *keyWriter) ints(list []int) {
	w.int(len(list))
	for _, x := range list {
		w.int(x)
	}
}

// floats tells a missing list from an empty one.
func (w *keyWriter) floats(list []float64) {
	if list == nil {
		w.int(-1)
		return
	}
	w.int(len(list))
	for _, x := range list {
		w.float(x)
	}
}

func (w *keyWriter) exponents(list []int64) {
	w.int(len(list))
	for _, x := range list {
		w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(x))
	}
}
