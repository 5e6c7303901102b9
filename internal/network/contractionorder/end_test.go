package contractionorder

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// lattice is a square grid with a tensor for every pair of neighbours.
func lattice(n int) Hypergraph {
	h := Hypergraph{Dims: make([]int, n*n)}
	for v := range h.Dims {
		h.Dims[v] = 2
		if v%n+1 < n {
			h.Edges = append(h.Edges, []int{v, v + 1})
		}
		if v+n < n*n {
			h.Edges = append(h.Edges, []int{v, v + n})
		}
	}
	return h
}

// TestEndedSearchesDoNothingMore: every part of a search that is asked to end
// leaves a whole tree behind, for a fraction of the moves.
func TestEndedSearchesDoNothingMore(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	n := newSlicedNetwork(lattice(40), nil)
	d := dissection{imbalance: 48, openCost: oneBit / 4, pieceSize: pieceTables}
	whole, most := dissect(n, d, rand.NewPCG(1, 1), nil)
	cut, moves := dissect(n, d, rand.NewPCG(1, 1), pace.New(over))
	if len(cut) != len(whole) || moves*20 > most {
		t.Errorf("bisection: %d merges for %d moves, else %d for %d",
			len(cut), moves, len(whole), most)
	}
	checkWorking(t, newWorkingTree(n, cut))
	rule := greedyRule{alpha: oneBit}
	free := greedyTree(n, rule, rand.NewPCG(1, 1))
	w := newWorkingTree(n, free.mergeRemaining())
	o := objective{log2Write: log2Float(15), limit: 1 << 40, steepness: oneBit / 2}
	moved := w.clone()
	newReconfigurer(moved, o, pieceTables).run(1 << 40)
	ended := *n
	ended.ctx = over
	if p := greedyTree(&ended, rule, rand.NewPCG(1, 1)); p.movesSpent*4 > free.movesSpent {
		t.Errorf("greedy: %d moves, else %d", p.movesSpent, free.movesSpent)
	}
	w.network = &ended
	before := w.movesSpent
	newReconfigurer(w, o, pieceTables).run(1 << 40)
	if (w.movesSpent-before)*100 > moved.movesSpent-before {
		t.Errorf("reconfiguration: %d moves, else %d", w.movesSpent-before, moved.movesSpent-before)
	}
}

// looks ends at its n-th look.
type looks struct {
	context.Context
	left int
}

func (l *looks) Err() error {
	if l.left--; l.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestNoPlanIsCutShort: wherever a search is asked to end it has the context's error and no plan.
func TestNoPlanIsCutShort(t *testing.T) {
	h := lattice(12)
	o := Options{Moves: 1 << 22}
	all := &looks{context.Background(), 1 << 40}
	if _, err := Search(all, h, o); err != nil {
		t.Fatal(err)
	}
	used := 1<<40 - all.left
	for left := 0; left < used; left += 1 + used/50 {
		p, err := Search(&looks{context.Background(), left}, h, o)
		if !errors.Is(err, context.Canceled) || len(p.Tree.Merges) != 0 {
			t.Errorf("ended at look %d of %d: %v", left, used, err)
		}
	}
}
