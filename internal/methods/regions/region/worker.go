package region

// One goroutine's memory for regions, one after the other.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/engine/compiled"
)

// worker contracts regions, or prices them only if gauge is nil. One goroutine uses it at a time.
type worker struct {
	*subnetwork     // the current region
	compiled.Memory // of the contraction of the current region
	gauge           *gauge
	remaining       *moves // budget of planning; nil for contractions
	cut             *cutter
	legs            []int32             // scratch of windows.region
	prices          map[string]cost     // by key of the subnetwork
	programs        map[string]*program // by key of the subnetwork
	cached          int                 // number of offsets in all programs
	logs            [][]float64         // by index and value: Σ α_r ln (P_r / P_BP) over regions; nil for indices not in corrected (addLogs)
	corrected       []int32             // the indices that have logs
	contracted      [][]float64         // by local table: memory of contractedTable
}

// newWorker returns a worker for the regions of a graph. gauge is nil for planning, which only prices them. A gauge is the tables scaled by
// the messages of belief propagation.
func newWorker(g *graph, gauge *gauge) *worker {
	return &worker{
		subnetwork: newSubnetwork(g),
		gauge:      gauge,
		cut:        newCutter(g),
		prices:     map[string]cost{},
		programs:   map[string]*program{},
	}
}

// maxCached bounds the offsets of the programs kept, about 64 MiB.
const maxCached = 1 << 24

// program returns the compiled elimination of the current region. It keeps programs by shape, and forgets all of them when they have more
// than maxCached offsets. A shape is the network of a region with its indices and tables numbered from 0: regions that differ only in which
// indices and tables of the graph they have are of one shape. build has set w.key, the shape as bytes.
func (w *worker) program() *program {
	if p, ok := w.programs[string(w.key)]; ok {
		return p
	}
	p, err := newProgram(context.Background(), w.hypergraph())
	if err != nil {
		panic(err) // cannot be: the only error is that of a context, and this context does not end
	}
	size := p.Offsets + 16*len(p.Steps) // a step counts as 16 offsets
	if w.cached += size; w.cached > maxCached {
		clear(w.programs)
		w.cached = size
	}
	w.programs[string(w.key)] = p
	return p
}

// ratio contracts the region with the given legs, which are indices of tables. It returns Z_r / Z_BP, the value of the region over that of
// belief propagation, and the program that computed it. If marginals is true, the program can compute the marginals next.
func (w *worker) ratio(legs []int32, marginals bool) (float64, *program) {
	w.build(legs)
	p := w.program()
	w.Prepare(p.Program, marginals)

	// The tables of the program are the beliefs of the region's indices, then its tables.
	for n, i := range w.indexIDs {
		w.Tables[n] = w.gauge.belief[i]
	}
	for t := range w.tableIDs {
		w.Tables[len(w.indexIDs)+t] = w.contractedTable(t)
	}
	return p.value(&w.Memory), p
}

// contractedTable returns the table ρ_t of a local table, with its legs outside the region summed out. It is valid until the next region. A
// leg is one index of one table, and ρ_t is the table scaled by the messages of belief propagation (newGauge).
func (w *worker) contractedTable(t int) []float64 {
	g, rho, legs := w.graph, w.gauge.rho[w.tableIDs[t]], w.tableLegs(t)
	first, end := g.legRange(w.tableIDs[t])
	if int(end-first) == len(legs) { // all legs are in the region
		return rho
	}

	for len(w.contracted) <= t {
		w.contracted = append(w.contracted, nil)
	}
	size := 1
	for _, leg := range legs {
		size *= g.dims[g.indexOf[leg]]
	}

	sums := slices.Grow(w.contracted[t][:0], size)[:size]
	clear(sums)
	w.contracted[t] = sums
	w.addSummedTable(sums, rho, first, end, legs)
	return sums
}

// addSummedTable adds to sums the table ρ, in which the indices outside of the region are summed out. A leg is one index of one table:
// ρ has the axes first ≤ leg < end, and sums the axes legs. A value x of a summed leg ℓ has the weight q_ℓ(x).
func (w *worker) addSummedTable(sums, rho []float64, first, end int32, legs []int32) {
	g := w.graph
	// visit goes through the values of leg and of all legs after it. regionLegs are the region's legs from leg on. source and target are
	// the row-major indices into ρ and sums of the values chosen so far, and weight is the product of the weights of the summed ones.
	var visit func(leg int32, regionLegs []int32, source, target int, weight float64)
	visit = func(leg int32, regionLegs []int32, source, target int, weight float64) {
		if leg == end {
			sums[target] += weight * rho[source]
			return
		}
		d := g.dims[g.indexOf[leg]]
		isInRegion := len(regionLegs) > 0 && regionLegs[0] == leg
		if isInRegion {
			for x := range d {
				visit(leg+1, regionLegs[1:], source*d+x, target*d+x, weight)
			}
			return
		}
		for x, q := range w.gauge.legWeights[leg] {
			visit(leg+1, regionLegs, source*d+x, target, weight*q)
		}
	}

	visit(first, legs, 0, 0, 1)
}

// isPositiveFinite reports whether v is a positive finite number, so that v has a logarithm and one can divide by it.
func isPositiveFinite(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

// maxPrices bounds the shapes whose cost is remembered.
const maxPrices = 1 << 16

// Work to look a leg of a region up by shape, and to order it by min-fill, in moves. Measured: 200 and
// 1,600 ns on complete and 3-regular models where a move takes 4.
const (
	buildMoves = 50
	orderMoves = 400
)

// cost returns the cost of contracting the region with the given legs. A leg is one index of one table. The shape of a region is its
// network with indices and tables numbered from 0: regions that differ only in which indices and tables of the graph they have are of one
// shape, and have the same cost. So costs are kept by shape. If the context has ended, log2 is infinite, and the caller has to look at the
// context.
func (w *worker) cost(ctx context.Context, legs []int32) cost {
	w.build(legs) // makes it the current region, and sets w.key, its shape as bytes
	w.remaining.deduct(buildMoves * len(legs))
	if c, ok := w.prices[string(w.key)]; ok {
		return c
	}
	w.remaining.deduct(orderMoves * len(legs))
	c, err := price(ctx, w.hypergraph())
	if err != nil {
		return cost{log2: math.Inf(1)}
	}
	if len(w.prices) >= maxPrices {
		clear(w.prices)
	}
	w.prices[string(w.key)] = c
	return c
}

// isNarrow reports whether no table in the contraction of the region with the given legs has more than 2^maxWidth entries.
func (w *worker) isNarrow(ctx context.Context, legs []int32, maxWidth int) bool {
	return w.cost(ctx, legs).log2 <= float64(maxWidth)
}
