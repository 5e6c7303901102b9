package stage

// How the work of a job is cut into tasks.

import (
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contract"
	"github.com/basetensor/basetensor/internal/policy"
)

// Chunks groups the units of a job into tasks of about policy.ChunkFlops operations: those of the queries that need all their
// values first, query by query and in component order, then rung by rung those of the queries that grow. It always returns
// at least one chunk, which may be empty, so that every job ends at the aggregator. ends are the numbers of first chunks
// with which a rung of every query is complete, ascending: nil where no query grows.
func Chunks(net *btn.Network, job *btn.Job) (chunks [][]btn.Unit, ends []int) {
	chunks, _, ends = ChunksAndCosts(net, job, 0)
	return chunks, ends
}

// ChunksAndCosts is Chunks with tasks of about so many operations each (0: policy.ChunkFlops; 1: every unit is a task), and what they are
// expected to take, not counting marginals.
func ChunksAndCosts(net *btn.Network, job *btn.Job, each float64) (chunks [][]btn.Unit, flops []float64, ends []int) {
	if each == 0 {
		each = policy.ChunkFlops
	}
	c := cutter{each: each, chunks: [][]btn.Unit{nil}, costs: []float64{0}}
	rungs := 0
	for q, a := range job.Assignments {
		if a.Error != nil {
			continue
		}
		dec := job.Decompositions[a.Decomposition]
		if dec.Growth != nil {
			rungs = max(rungs, len(dec.Growth.Rungs))
			continue
		}
		for i := range dec.Components {
			flops := contract.Cost(net, dec, i)
			if a.Plan != nil {
				flops = a.Plan.Flops / float64(len(dec.Components)) // under this query's evidence
			}
			c.add(btn.Unit{Query: q, Component: i}, flops)
		}
	}
	for k := range rungs {
		if len(c.chunks[len(c.chunks)-1]) > 0 {
			c.chunks, c.costs = append(c.chunks, nil), append(c.costs, 0)
		}
		for q, a := range job.Assignments {
			if a.Error != nil || job.Decompositions[a.Decomposition].Growth == nil {
				continue
			}
			if g := job.Decompositions[a.Decomposition].Growth; k < len(g.Rungs) {
				r := &g.Rungs[k]
				for i := r.From; i < r.To; i++ {
					c.add(btn.Unit{Query: q, Component: i}, r.Flops/float64(r.To-r.From))
				}
			}
		}
		ends = append(ends, len(c.chunks))
	}
	return c.chunks, c.costs, ends
}

// cutter fills one chunk after the other.
type cutter struct {
	each   float64
	chunks [][]btn.Unit
	costs  []float64
}

func (c *cutter) add(u btn.Unit, flops float64) {
	last := len(c.chunks) - 1
	if len(c.chunks[last]) > 0 && c.costs[last]+flops > c.each {
		c.chunks, c.costs, last = append(c.chunks, nil), append(c.costs, 0), last+1
	}
	c.chunks[last] = append(c.chunks[last], u)
	c.costs[last] += flops
}
