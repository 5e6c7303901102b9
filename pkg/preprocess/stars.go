package preprocess

// Structure: which tables become stars and chains.

import (
	"cmp"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/elimination"
)

const (
	minArity  = 4       // tables over fewer indices stay whole
	maxRank   = 8       // of a star
	saving    = 2       // how many times smaller than the table its pieces have to be
	worthwork = 1e5     // flops of the contraction below which structure is not looked for
	structure = 1 << 22 // entries of all tables together that are looked at
)

// pieces is what a table may be replaced by. Indices from hidden on are new ones.
type pieces struct {
	table  int
	arity  int
	hidden []int   // dimensions of the new indices
	scopes [][]int // −1−h for new index h
	data   [][]float64
	chain  bool
}

// stars replaces tables by stars of low rank and by chains of counters, if that makes contraction cheaper along the
// min-fill order: all that can be, or only those over many indices.
// Source: P. Savický and J. Vomlel, Exploiting tensor rank-one decomposition in probabilistic inference (2007).
func (w *work) stars() {
	if w.zero != nil {
		return
	}
	best := w.cost(nil)
	if best < worthwork && !w.options.always {
		return
	}
	found := w.candidates()
	if w.options.always {
		best = math.Inf(1)
	}
	var chosen []pieces
	for k := range found {
		if k > 0 && found[k].arity == found[k-1].arity {
			continue
		}
		if flops := w.cost(found[k:]); flops < best {
			best, chosen = flops, found[k:]
		}
	}
	for _, p := range chosen {
		w.replace(p)
	}
	if len(chosen) > 0 {
		w.simplify()
	}
}

// candidates lists what tables may be replaced by, by arity, smaller ones first.
func (w *work) candidates() []pieces {
	var found []pieces
	looked := 0
	for n, t := range w.tables {
		if t.gone || len(t.scope) < minArity || len(t.data) > w.options.MaxEntries {
			continue
		}
		if looked += len(t.data); looked > structure {
			break
		}
		if p, ok := w.star(n); ok {
			found = append(found, p)
		} else if p, ok := w.chain(n); ok {
			found = append(found, p)
		}
	}
	slices.SortStableFunc(found, func(a, b pieces) int { return cmp.Compare(a.arity, b.arity) })
	return found
}

// cost returns the flops of the min-fill order with the given replacements.
func (w *work) cost(replaced []pieces) float64 {
	h := elimination.Hypergraph{Dims: slices.Clone(w.dims)}
	without := make([]bool, len(w.tables))
	for _, p := range replaced {
		without[p.table] = true
		for _, scope := range p.scopes {
			h.Edges = append(h.Edges, renamed(scope, len(h.Dims)))
		}
		h.Dims = append(h.Dims, p.hidden...)
	}
	for n, t := range w.tables {
		if !t.gone && !without[n] {
			h.Edges = append(h.Edges, t.scope)
		}
	}
	return elimination.Evaluate(h, elimination.MinFill(h)).Flops
}

// renamed returns a scope with its new indices numbered from first.
func renamed(scope []int, first int) []int {
	out := slices.Clone(scope)
	for k, i := range out {
		if i < 0 {
			out[k] = first - 1 - i
		}
	}
	return out
}

// replace puts pieces in the place of their table.
func (w *work) replace(p pieces) {
	from := w.tables[p.table].from
	w.drop(p.table)
	first := len(w.dims)
	for _, d := range p.hidden {
		w.grow(d)
	}
	for k, scope := range p.scopes {
		w.add(&table{scope: renamed(scope, first), data: p.data[k], owned: true, from: from, wider: true})
	}
	if p.chain {
		w.report.Chains++
	} else {
		w.report.Stars++
	}
}

// grow makes a new index.
func (w *work) grow(d int) {
	i := len(w.dims)
	w.dims, w.first = append(w.dims, d), append(w.first, d)
	w.values, w.keep = append(w.values, nil), append(w.keep, false)
	w.alias, w.at = append(w.alias, alias{into: itself}), append(w.at, nil)
	w.resize(i, count(d))
}
