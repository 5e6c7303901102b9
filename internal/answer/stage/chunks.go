package stage

// How the work of a job is cut into tasks.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
)

// Chunks groups the units of a job into chunks of about policy.ChunkFlops operations. A chunk of parts that are contracted for several
// queries together has batchGain times as many. The sequence of the chunks is:
//
//   - each part whose value is an answer by itself (About.IsInterim), a chunk for each
//   - the other units of queries that need all their values, query by query in the order of parts
//   - the units of queries that grow, estimate by estimate; estimate k of all queries begins a new chunk.
//
// There is at least one chunk, which may be empty, so that every job reaches the aggregator.
//
// ends are numbers of chunks after which the values may be enough for an answer, ascending. If queries grow, estimate k of all of them is
// complete after ends[k] chunks. If none grows and there are interim parts, ends are the numbers of chunks up to the first interim part, up
// to the last one, and of all. Otherwise ends is nil.
func Chunks(net *btn.Network, assignments []btn.Assignment) (chunks [][]btn.Unit, ends []int) {
	chunks, _, ends = ChunksAndCosts(net, assignments, 0)
	return chunks, ends
}

// batchGain is the ratio of the flops of a task whose queries are contracted together: they take a third of the time, and two batches
// of eight keep two cores busy.
// Measured: docs/benchmarks/questions.md.
const batchGain = 16

// ChunksAndCosts cuts the units of a job, each one part of the plan of one query, into chunks, and returns these and ends as Chunks does.
// But chunks are of about chunkFlops operations. If chunkFlops is 0, that is policy.ChunkFlops, and if it is 1, every unit is a chunk.
// flops is the expected work of each chunk, without that of marginals.
func ChunksAndCosts(
	net *btn.Network, assignments []btn.Assignment, chunkFlops float64,
) (chunks [][]btn.Unit, flops []float64, ends []int) {
	if chunkFlops == 0 {
		chunkFlops = policy.ChunkFlops
	}

	// Queries that need all their values.
	c := cutter{chunks: [][]btn.Unit{nil}, costs: []float64{0}} // one empty chunk
	addFixed := func(u btn.Unit) {
		a := &assignments[u.Query]
		e := &a.Plan.Estimates[0]
		c.limit = chunkFlops
		if _, ok := e.Parts[u.Part].(contraction.Batcher); ok { // contracted for several queries together, in less time
			c.limit *= batchGain
		}
		c.add(u, unitFlops(net, a, e, u.Part))
	}
	interim, remaining := fixedUnits(assignments)
	var interimEnds []int       // after each interim unit, the number of chunks
	for _, u := range interim { // a chunk for each: its value is an answer by itself
		addFixed(u)
		interimEnds = append(interimEnds, len(c.chunks))
		c.cut()
	}
	for _, u := range remaining {
		addFixed(u)
	}

	longest := longestGrowing(assignments)
	if n := len(interimEnds); n > 0 && longest == 0 {
		// Only interim parts may be enough before the end: the first one, all of them, or all chunks.
		return c.chunks, c.costs, slices.Compact([]int{interimEnds[0], interimEnds[n-1], len(c.chunks)})
	}
	c.limit = chunkFlops // addFixed has changed it
	ends = c.addGrowing(assignments, longest)
	return c.chunks, c.costs, ends
}

// longestGrowing returns the largest number of estimates of a query that grows, 0 if none grows.
func longestGrowing(assignments []btn.Assignment) (longest int) {
	for _, a := range assignments {
		if a.Error == nil && a.Plan.Grows() {
			longest = max(longest, len(a.Plan.Estimates))
		}
	}
	return longest
}

// addGrowing adds the units of queries whose plans grow, a unit for each part: those of estimate 0 of each query, then those of estimate 1,
// and so on. longest is the number of estimates of the longest plan. A new chunk begins with each estimate, so that estimate k of all
// queries is complete after the first ends[k] chunks.
func (c *cutter) addGrowing(assignments []btn.Assignment, longest int) (ends []int) {
	next := make([]int, len(assignments)) // the first part of the next estimate of each query
	for k := range longest {
		c.cut() // a new chunk
		for q, a := range assignments {
			hasEstimate := a.Error == nil && a.Plan.Grows() && k < len(a.Plan.Estimates)
			if !hasEstimate {
				continue
			}
			e := &a.Plan.Estimates[k]
			for range e.Parts {
				c.add(btn.Unit{Query: q, Part: next[q]}, e.Cost.Flops/float64(len(e.Parts))) // to the last chunk, or a new one
				next[q]++
			}
		}
		ends = append(ends, len(c.chunks))
	}
	return ends
}

// fixedUnits returns the units of work (one part of the plan of one query each) of the queries that need the values of all their parts. A
// query whose plan grows, a sequence of estimates, does not. interim has the units whose value is an answer by itself. Both lists are in
// the order of queries and parts.
func fixedUnits(assignments []btn.Assignment) (interim, remaining []btn.Unit) {
	for q, a := range assignments {
		if a.Error != nil || a.Plan.Grows() {
			continue
		}
		for i, part := range a.Plan.Estimates[0].Parts {
			u := btn.Unit{Query: q, Part: i}
			if part.About().IsInterim {
				interim = append(interim, u)
			} else {
				remaining = append(remaining, u)
			}
		}
	}
	return interim, remaining
}

// unitFlops returns the expected operations of part i of an estimate. If the cost under the query's evidence is known (a.Cost), it is an
// equal share of that. Otherwise, if the plan is for the relevant part of the network only, it is an equal share of the estimate's
// predicted cost. Otherwise it is the cost of the part on net, the whole network.
func unitFlops(net *btn.Network, a *btn.Assignment, e *btn.Estimate, i int) float64 {
	switch {
	case a.Cost != nil:
		return a.Cost.Flops / float64(len(e.Parts))
	case a.Relevant:
		return e.Cost.Flops / float64(len(e.Parts))
	}
	return contraction.Flops(net, e, i)
}

// cutter distributes units to chunks. It fills the last chunk up to about limit operations, and then begins a new one.
type cutter struct {
	limit  float64 // operations
	chunks [][]btn.Unit
	costs  []float64 // operations of each chunk
}

// cut begins a new chunk, unless the last one is empty.
func (c *cutter) cut() {
	if len(c.chunks[len(c.chunks)-1]) > 0 {
		c.chunks = append(c.chunks, nil)
		c.costs = append(c.costs, 0)
	}
}

// add appends a unit, one part of a plan that takes these flops, to the last chunk, or to a new chunk if the last one would exceed c.limit.
func (c *cutter) add(u btn.Unit, flops float64) {
	last := len(c.chunks) - 1
	if c.costs[last]+flops > c.limit {
		c.cut()
		last = len(c.chunks) - 1
	}

	c.chunks[last] = append(c.chunks[last], u)
	c.costs[last] += flops
}
