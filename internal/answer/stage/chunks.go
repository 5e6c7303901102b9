package stage

// How the work of a job is cut into tasks.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
)

// Chunks groups the units of a job into tasks of about policy.ChunkFlops operations, batchGain times as many of parts that queries
// have in common: first the units of the queries that need all their
// values, query by query in the order of parts; then the units of the queries that grow, estimate by estimate. A part whose value is an
// answer of its own is a chunk before all others. It returns at least one chunk, which may be empty, so that every job reaches the
// aggregator. ends are the numbers of first chunks that may suffice, ascending: an estimate of every query is complete, or the first or all
// answers of their own are there; nil where there is neither.
func Chunks(net *btn.Network, assignments []btn.Assignment) (chunks [][]btn.Unit, ends []int) {
	chunks, _, ends = ChunksAndCosts(net, assignments, 0)
	return chunks, ends
}

// batchGain is the ratio of the flops of a task whose queries are contracted together: they take a third of the time, and two batches
// of eight keep two cores busy.
// Measured: docs/benchmarks/questions.md.
const batchGain = 16

// ChunksAndCosts is Chunks with tasks of about each operations (0: policy.ChunkFlops; 1: every unit
// is a task). flops is their expected work, not counting marginals.
func ChunksAndCosts(
	net *btn.Network, assignments []btn.Assignment, each float64,
) (chunks [][]btn.Unit, flops []float64, ends []int) {
	if each == 0 {
		each = policy.ChunkFlops
	}

	c := cutter{chunks: [][]btn.Unit{nil}, costs: []float64{0}}
	unit := func(q, i int) {
		e := &assignments[q].Plan.Estimates[0]
		c.each = each
		if _, ok := e.Parts[i].(contraction.Batcher); ok {
			c.each *= batchGain
		}
		c.add(btn.Unit{Query: q, Part: i}, unitFlops(net, &assignments[q], e, i))
	}
	longest := 0
	// Answers of their own, a chunk each; then the other parts of queries that need all their values.
	var rest []btn.Unit
	for q, a := range assignments {
		switch {
		case a.Error != nil:
		case a.Plan.Grows():
			longest = max(longest, len(a.Plan.Estimates))
		default:
			for i, part := range a.Plan.Estimates[0].Parts {
				if !part.About().IsInterim {
					rest = append(rest, btn.Unit{Query: q, Part: i})
					continue
				}
				unit(q, i)
				ends = append(ends, len(c.chunks))
				c.cut()
			}
		}
	}
	for _, u := range rest {
		unit(u.Query, u.Part)
	}
	if n := len(ends); n > 0 && longest == 0 {
		return c.chunks, c.costs, slices.Compact([]int{ends[0], ends[n-1], len(c.chunks)})
	}
	ends = nil

	// Queries that grow: estimate k of all of them begins a new chunk.
	c.each = each
	first := make([]int, len(assignments)) // part of the next estimate
	for k := range longest {
		c.cut()
		for q, a := range assignments {
			if a.Error != nil || !a.Plan.Grows() || k >= len(a.Plan.Estimates) {
				continue
			}
			e := &a.Plan.Estimates[k]
			for range e.Parts {
				c.add(btn.Unit{Query: q, Part: first[q]}, e.Cost.Flops/float64(len(e.Parts)))
				first[q]++
			}
		}
		ends = append(ends, len(c.chunks))
	}
	return c.chunks, c.costs, ends
}

// unitFlops returns the expected operations of part i: from the cost under the query's evidence
// where that is known.
func unitFlops(net *btn.Network, a *btn.Assignment, e *btn.Estimate, i int) float64 {
	switch {
	case a.Cost != nil:
		return a.Cost.Flops / float64(len(e.Parts))
	case a.Relevant: // the parts are of a part of the network
		return e.Cost.Flops / float64(len(e.Parts))
	}
	return contraction.Flops(net, e, i)
}

// cutter fills one chunk after the other, up to about each operations.
type cutter struct {
	each   float64
	chunks [][]btn.Unit
	costs  []float64 // operations per chunk
}

// cut ends the last chunk.
func (c *cutter) cut() {
	if len(c.chunks[len(c.chunks)-1]) > 0 {
		c.chunks = append(c.chunks, nil)
		c.costs = append(c.costs, 0)
	}
}

// add puts a unit into the last chunk, or into a new one if the last would exceed each.
func (c *cutter) add(u btn.Unit, flops float64) {
	last := len(c.chunks) - 1
	if c.costs[last]+flops > c.each {
		c.cut()
		last = len(c.chunks) - 1
	}

	c.chunks[last] = append(c.chunks[last], u)
	c.costs[last] += flops
}
