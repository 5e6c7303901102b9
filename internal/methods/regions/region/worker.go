package region

// One goroutine's memory for regions, one after the other.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/engine/compiled"
)

// worker contracts regions. With y nil it prices them only.
type worker struct {
	*local
	compiled.Memory
	y        *gauge
	left     *moves // of planning; nil for contractions
	cut      *cutter
	legs     []int32 // of the current region, where it is made up on the spot
	prices   map[string]cost
	programs map[string]*program
	cached   int         // entries of offsets of all programs
	logs     [][]float64 // by index: sums of the marginals' logarithms; see note
	noted    []int32
	parts    [][]float64 // contracted tables, by position among the region's tables
}

// newWorker has the memory of one goroutine to contract regions; y is nil for planning.
func newWorker(g *graph, y *gauge) *worker {
	return &worker{
		local:    newLocal(g),
		y:        y,
		cut:      newCutter(g),
		prices:   map[string]cost{},
		programs: map[string]*program{},
	}
}

// maxCached bounds the offsets of the programs kept, about 64 MiB.
const maxCached = 1 << 24

// program returns the elimination of the current network.
func (w *worker) program() *program {
	if p, ok := w.programs[string(w.key)]; ok {
		return p
	}
	p, err := newProgram(context.Background(), w.shape())
	if err != nil {
		panic(err) // a context without an end
	}
	size := p.Offsets + 16*len(p.Steps)
	if w.cached += size; w.cached > maxCached {
		clear(w.programs)
		w.cached = size
	}
	w.programs[string(w.key)] = p
	return p
}

// ratio returns Z_r / Z_BP for the region with these legs, and the program that computed it, which can
// continue with the marginals.
func (w *worker) ratio(legs []int32, marginals bool) (float64, *program) {
	w.build(legs)
	p := w.program()
	w.Prepare(p.Program, marginals)
	for n, i := range w.index {
		w.Tables[n] = w.y.belief[i]
	}
	for t := range w.table {
		w.Tables[len(w.index)+t] = w.tableOf(t)
	}
	return p.value(&w.Memory), p
}

// tableOf returns ρ of a table of the region, its legs outside the region summed out.
func (w *worker) tableOf(t int) []float64 {
	g, rho, legs := w.g, w.y.rho[w.table[t]], w.local.legs(t)
	first, last := g.first[w.table[t]], g.first[w.table[t]+1]
	if int(last-first) == len(legs) {
		return rho
	}

	for len(w.parts) <= t {
		w.parts = append(w.parts, nil)
	}
	size := 1
	for _, leg := range legs {
		size *= g.dims[g.index[leg]]
	}

	out := slices.Grow(w.parts[t][:0], size)[:size]
	clear(out)
	w.parts[t] = out
	w.sumOut(out, rho, first, last, legs)
	return out
}

// sumOut adds ρ Π q over the legs from first to last that are not among legs.
func (w *worker) sumOut(out, rho []float64, first, last int32, legs []int32) {
	g := w.g
	var visit func(leg int32, kept []int32, at, to int, weight float64)
	visit = func(leg int32, kept []int32, at, to int, weight float64) {
		if leg == last {
			out[to] += weight * rho[at]
			return
		}
		d := g.dims[g.index[leg]]
		if len(kept) > 0 && kept[0] == leg {
			for x := range d {
				visit(leg+1, kept[1:], at*d+x, to*d+x, weight)
			}
			return
		}
		for x, q := range w.y.q[leg] {
			visit(leg+1, kept, at*d+x, to, weight*q)
		}
	}

	visit(first, legs, 0, 0, 1)
}

// usable reports whether ln of a ratio can be taken.
func usable(ratio float64) bool { return ratio > 0 && !math.IsInf(ratio, 1) }

// maxPrices bounds the shapes whose cost is remembered.
const maxPrices = 1 << 16

// Work to look a leg of a region up by shape, and to order it by min-fill, in moves. Measured: 200 and
// 1,600 ns on complete and 3-regular models where a move takes 4.
const (
	buildMoves = 50
	orderMoves = 400
)

// cost returns the cost of contracting a region with these legs.
func (w *worker) cost(ctx context.Context, legs []int32) cost {
	w.build(legs)
	w.left.take(buildMoves * len(legs))
	if c, ok := w.prices[string(w.key)]; ok {
		return c
	}
	w.left.take(orderMoves * len(legs))
	c, err := price(ctx, w.shape())
	if err != nil {
		return cost{log2: math.Inf(1)} // the caller looks at the context
	}
	if len(w.prices) >= maxPrices {
		clear(w.prices)
	}
	w.prices[string(w.key)] = c
	return c
}

func (w *worker) narrow(ctx context.Context, legs []int32, width int) bool {
	return w.cost(ctx, legs).log2 <= float64(width)
}
