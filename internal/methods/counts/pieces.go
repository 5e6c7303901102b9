package counts

// Pieces: the connected parts of the network without the cores in count space, and their classes of equal
// ones.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/btn"
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
// pieces. Equal are pieces whose numbers have one digest, read in the sequence of links and cores. Linear
// in the size of the network.
func (l *layout) kinds(ctx context.Context, pieces []piece) (kinds []kind, of []int32, err error) {
	p := pace.New(ctx)
	known := map[[digest.Size]byte]int32{}
	w := keyWriter{layout: l, Builder: digest.New(), local: make([]int32, len(l.net.Cores))}
	of = make([]int32, len(pieces))
	for t := range pieces {
		if p.Over(int64(64 * (len(pieces[t].links) + len(pieces[t].cores)))) {
			return nil, nil, p.Err()
		}
		key := w.piece(pieces[t])
		k, ok := known[key]
		if !ok {
			k = int32(len(kinds))
			known[key] = k
			kinds = append(kinds, kind{piece: pieces[t]})
		}
		kinds[k].members++
		of[t] = k
	}
	return kinds, of, nil
}

// keyWriter takes all that a piece's polynomial and marginals depend on.
type keyWriter struct {
	*layout
	*digest.Builder
	local []int32 // by core: its number in the piece
}

// piece returns the key of a piece.
func (w *keyWriter) piece(p piece) [digest.Size]byte {
	w.Reset()
	w.Int(len(p.links))
	w.Int(len(p.cores))
	for i, c := range p.cores {
		w.local[c] = int32(i)
		btn.DigestTensor(w.Builder, w.net.Cores[c].T)
	}
	for _, k := range p.links {
		link := &w.net.Links[k]
		btn.DigestTensor(w.Builder, link.T)
		for _, leg := range link.Legs {
			w.leg(leg)
		}
	}
	return w.Sum()
}

// leg takes the node at the other end of a leg.
func (w *keyWriter) leg(leg int) {
	if w.onTable(leg) {
		w.Int(-1)
		w.Int(int(w.local[w.core[leg]]))
		w.Int(int(w.mode[leg]))
		return
	}
	for y := range w.net.Dims[leg] {
		x, level := w.weight(leg, y)
		w.Int(level)
		w.Float(x)
	}
}
