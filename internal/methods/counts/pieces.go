package counts

// Pieces: the connected parts of the network without the cores in count space, and their classes of equal
// ones.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/btn"
)

// piece is a connected part of the network without the cores in count space: links, and the tables that join them.
type piece struct {
	links, cores []int // ascending; cores are the tables
}

// kind is a class of equal pieces: they have the same numbers, and so the same polynomial.
type kind struct {
	piece           // the first of them
	count  int      // number of equal pieces
	tables *netPlan // their elimination; nil for a piece of one link without tables
}

// findPieces splits the links of a network into pieces: two links with legs in one table are in one piece. Cores in count space or of rank
// one do not join links. Pieces are in the sequence of their first links.
func (l *layout) findPieces() []piece {
	joined := newForest(len(l.net.Links))
	for c, core := range l.net.Cores {
		if l.isTable[c] {
			for _, leg := range core.Legs {
				joined.join(l.linkOf[leg], l.linkOf[core.Legs[0]])
			}
		}
	}

	return l.listPieces(joined.number())
}

// listPieces returns the pieces with their links and their tables, given the piece of each link and the number of pieces. All lists are cut
// from one array.
func (l *layout) listPieces(pieceOf []int, count int) []piece {
	pieceOfCore := func(core btn.Core) int { return pieceOf[l.linkOf[core.Legs[0]]] }
	linkCounts, coreCounts := make([]int, count), make([]int, count)
	for _, t := range pieceOf {
		linkCounts[t]++
	}
	for c, core := range l.net.Cores {
		if l.isTable[c] {
			coreCounts[pieceOfCore(core)]++
		}
	}

	// array[:0:n] is an empty list with room for n numbers.
	pieces := make([]piece, count)
	array := make([]int, len(pieceOf)+len(l.net.Cores))
	for t := range pieces {
		pieces[t].links, array = array[:0:linkCounts[t]], array[linkCounts[t]:]
		pieces[t].cores, array = array[:0:coreCounts[t]], array[coreCounts[t]:]
	}
	for k, t := range pieceOf {
		pieces[t].links = append(pieces[t].links, k)
	}
	for c, core := range l.net.Cores {
		if l.isTable[c] {
			t := pieceOfCore(core)
			pieces[t].cores = append(pieces[t].cores, c)
		}
	}
	return pieces
}

// forest is a union-find forest of links: a link is in the set of its parent, and the root of a set is its own parent.
type forest []int32

// newForest returns a forest in which each of n links is a set of its own.
func newForest(n int) forest {
	f := make(forest, n)
	for k := range f {
		f[k] = int32(k)
	}
	return f
}

// root returns the root of a link's set, and shortens the path to it.
func (f forest) root(k int) int32 {
	for f[k] != int32(k) {
		f[k] = f[f[k]]
		k = int(f[k])
	}
	return int32(k)
}

// number numbers the sets of links in the sequence of their first links. It returns the number of each link's set, and how many sets there
// are. Two links are in one set if they have the same root.
func (f forest) number() (setOf []int, count int) {
	setOf = make([]int, len(f))
	setOfRoot := slices.Repeat([]int{-1}, len(f)) // −1: the set has no number yet
	for k := range f {
		root := f.root(k)
		if setOfRoot[root] < 0 {
			setOfRoot[root] = count
			count++
		}
		setOf[k] = setOfRoot[root]
	}
	return setOf, count
}

// join makes one set of the sets of two links.
func (f forest) join(a, b int) { f[f.root(a)] = f.root(b) }

// findKinds finds the classes of equal pieces, the kinds. Pieces are equal if their digests are equal. A digest is made of a piece's
// numbers in the sequence of its links and cores. kinds are in the sequence of their first pieces, and kindOf is by piece. Its work is
// linear in the size of the network.
func (l *layout) findKinds(ctx context.Context, pieces []piece) (kinds []kind, kindOf []int32, err error) {
	look := pace.New(ctx) // counts operations, and is over once the context has ended
	kindByKey := map[[digest.Size]byte]int32{}
	writer := keyWriter{layout: l, Builder: digest.New(), numberInPiece: make([]int32, len(l.net.Cores))}
	kindOf = make([]int32, len(pieces))
	for t := range pieces {
		if look.Over(int64(64 * (len(pieces[t].links) + len(pieces[t].cores)))) { // about 64 operations for each link and core
			return nil, nil, look.Err()
		}
		key := writer.digestPiece(pieces[t])
		k, ok := kindByKey[key]
		if !ok {
			k = int32(len(kinds))
			kindByKey[key] = k
			kinds = append(kinds, kind{piece: pieces[t]})
		}
		kinds[k].count++
		kindOf[t] = k
	}
	return kinds, kindOf, nil
}

// keyWriter makes a digest of all that a piece's polynomial and marginals depend on.
type keyWriter struct {
	*layout
	*digest.Builder
	numberInPiece []int32 // by core: its position among the cores of the piece
}

// digestPiece returns the digest of a piece: of the tensors of its tables and links, and of what each leg leads to. Tables are numbered
// within the piece, so that equal pieces have equal digests wherever they are in the network.
func (w *keyWriter) digestPiece(p piece) [digest.Size]byte {
	w.Reset()
	w.Int(len(p.links))
	w.Int(len(p.cores))
	for i, c := range p.cores {
		w.numberInPiece[c] = int32(i) // addLeg writes this number for a leg of core c
		btn.DigestTensor(w.Builder, w.net.Cores[c].T)
	}
	for _, k := range p.links {
		link := &w.net.Links[k]
		btn.DigestTensor(w.Builder, link.T)
		for _, leg := range link.Legs {
			w.addLeg(leg)
		}
	}
	return w.Sum()
}

// addLeg adds to the digest what a leg leads to. For a leg of a table this is the number of the table in the piece and its mode. For a leg
// of another core it is what each value contributes: a weight, and the level at which it counts.
func (w *keyWriter) addLeg(leg int) {
	if w.onTable(leg) {
		w.Int(-1) // no level
		w.Int(int(w.numberInPiece[w.coreOf[leg]]))
		w.Int(int(w.modeOf[leg]))
		return
	}
	for y := range w.net.Dims[leg] {
		weight, level := w.contribution(leg, y)
		w.Int(level)
		w.Float(weight)
	}
}
