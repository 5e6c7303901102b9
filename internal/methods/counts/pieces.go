package counts

// Pieces: the connected parts of the network without the cores in count space, and their classes of equal
// ones.

import (
	"context"

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

// findPieces splits the links of a network into pieces: two links that a table joins are in one piece. Pieces are in the sequence of their
// first links.
func (l *layout) findPieces() []piece {
	// Join the links of each table in a union-find forest: parent[k] is k for the root of a piece.
	parent := make([]int32, len(l.net.Links))
	for k := range parent {
		parent[k] = int32(k)
	}
	find := func(k int) int32 { // the root of link k
		for parent[k] != int32(k) {
			parent[k] = parent[parent[k]]
			k = int(parent[k])
		}
		return int32(k)
	}
	for c, core := range l.net.Cores {
		if !l.isTable[c] {
			continue
		}
		for _, leg := range core.Legs {
			parent[find(l.linkOf[leg])] = find(l.linkOf[core.Legs[0]])
		}
	}

	// Number the pieces in the sequence of their first links, and count their links and cores.
	pieceNumber := make([]int32, len(parent)) // by root: 1 + the piece, or 0
	pieceOf := func(link int) int { return int(pieceNumber[find(link)]) - 1 }
	linkCounts, coreCounts := []int{}, []int{} // by piece
	for k := range parent {
		if pieceOf(k) < 0 {
			linkCounts, coreCounts = append(linkCounts, 0), append(coreCounts, 0)
			pieceNumber[find(k)] = int32(len(linkCounts))
		}
		linkCounts[pieceOf(k)]++
	}
	for c, core := range l.net.Cores {
		if l.isTable[c] {
			coreCounts[pieceOf(l.linkOf[core.Legs[0]])]++
		}
	}

	// List them. All lists share one array.
	out := make([]piece, len(linkCounts))
	room := make([]int, len(parent)+len(l.net.Cores))
	for t := range out {
		out[t].links, room = room[:0:linkCounts[t]], room[linkCounts[t]:]
		out[t].cores, room = room[:0:coreCounts[t]], room[coreCounts[t]:]
	}
	for k := range parent {
		out[pieceOf(k)].links = append(out[pieceOf(k)].links, k)
	}
	for c, core := range l.net.Cores {
		if l.isTable[c] {
			t := pieceOf(l.linkOf[core.Legs[0]])
			out[t].cores = append(out[t].cores, c)
		}
	}
	return out
}

// findKinds finds the classes of equal pieces, the kinds. Pieces are equal if their digests are equal. A digest is made of a piece's
// numbers in the sequence of its links and cores. kinds are in the sequence of their first pieces, and kindOf is by piece. Its work is
// linear in the size of the network.
func (l *layout) findKinds(ctx context.Context, pieces []piece) (kinds []kind, kindOf []int32, err error) {
	p := pace.New(ctx)
	kindByKey := map[[digest.Size]byte]int32{}
	writer := keyWriter{layout: l, Builder: digest.New(), numberInPiece: make([]int32, len(l.net.Cores))}
	kindOf = make([]int32, len(pieces))
	for t := range pieces {
		if p.Over(int64(64 * (len(pieces[t].links) + len(pieces[t].cores)))) { // about 64 operations for each link and core
			return nil, nil, p.Err()
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
		w.numberInPiece[c] = int32(i)
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
