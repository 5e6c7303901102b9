package stage

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Which observations of impossible evidence contradict each other.

// Bounds of a search for a conflict: so many values of Z, of so many operations together.
const (
	conflictTests = 512
	conflictFlops = 2e9
)

// conflicts finds a subset of impossible evidence that is impossible by itself, exactly, by values of Z under subsets.
type conflicts struct {
	ctx      context.Context
	net      *btn.Network
	o        ContractOptions
	known    plan.Known
	switches []query.Switch
	fixed    factorgraph.Evidence // of switches: a query that sets variables does so in every test
	items    []observation
	left     int      // tests
	nonzero  [][]bool // sets that are possible, and with them all their subsets
}

// observation is a part of evidence that may take part in a conflict: an observed value, or a likelihood with a weight of 0.
type observation struct {
	hard *factorgraph.Observation
	soft *factorgraph.Likelihood
}

// conflict returns a minimal conflicting subset of evidence under which Z is 0, with what the query sets: it is found by deletion of one
// observation after another from the last to the first, and so none of its own subsets conflicts. Then all smaller subsets of the evidence
// are tested, small ones first, as far as the number of tests goes: the first that conflicts is the answer then, and if all are possible it
// is a smallest. It returns nil where a value of Z under a subset takes too much or is not exact.
func (c *conflicts) conflict(a *btn.Assignment, e factorgraph.Evidence) *query.Conflict {
	c.left = conflictTests
	if a.Cost != nil && a.Cost.Flops*conflictTests > conflictFlops {
		c.left = int(conflictFlops / a.Cost.Flops)
	}
	for i, o := range e.Hard {
		if c.isSwitch(o.Var) {
			c.fixed.Hard = append(c.fixed.Hard, o)
			continue
		}
		c.items = append(c.items, observation{hard: &e.Hard[i]})
	}
	for i, l := range e.Soft {
		if c.isSwitch(l.Var) {
			c.fixed.Soft = append(c.fixed.Soft, l)
		} else if slices.Contains(l.Weights, 0) {
			c.items = append(c.items, observation{soft: &e.Soft[i]})
		}
	}
	in := make([]bool, len(c.items))
	if len(c.items) >= c.left {
		return nil
	}
	switch zero, ok := c.zero(in); {
	case !ok:
		return nil
	case zero:
		return c.named(in, true) // the model, with what the query sets, is impossible without any evidence
	}
	for i := range in {
		in[i] = true
	}
	size := len(in)
	for i := len(in) - 1; i >= 0; i-- {
		in[i] = false
		zero, ok := c.zero(in)
		if !ok {
			return nil
		}
		if zero {
			size--
		} else {
			in[i] = true
		}
	}
	for fewer := 1; fewer < size; fewer++ {
		smaller, complete := c.search(make([]bool, len(in)), 0, fewer)
		if smaller != nil {
			return c.named(smaller, true)
		}
		if !complete {
			return c.named(in, false)
		}
	}
	return c.named(in, true)
}

// isSwitch reports whether a variable is a switch, by which the query sets another one.
func (c *conflicts) isSwitch(variable int) bool {
	return slices.ContainsFunc(c.switches, func(s query.Switch) bool { return s.Var == variable })
}

// search tests the sets with so many more of the items from one on, in lexicographic order. It returns the first that conflicts, and
// whether it has seen all.
func (c *conflicts) search(in []bool, from, more int) (found []bool, complete bool) {
	if more == 0 {
		if zero, ok := c.zero(in); !ok || zero {
			if zero {
				found = slices.Clone(in)
			}
			return found, ok
		}
		return nil, true
	}
	for i := from; i+more <= len(in); i++ {
		in[i] = true
		found, complete := c.search(in, i+1, more-1)
		in[i] = false
		if found != nil || !complete {
			return found, complete
		}
	}
	return nil, true
}

// zero reports whether Z is exactly 0 under some of the items. It says no where that is not found out.
func (c *conflicts) zero(in []bool) (zero, ok bool) {
	for _, set := range c.nonzero {
		if subset(in, set) {
			return false, true
		}
	}
	if c.left == 0 || c.ctx.Err() != nil {
		return false, false
	}
	c.left--
	var e factorgraph.Evidence
	for i, o := range c.items {
		switch {
		case !in[i]:
		case o.hard != nil:
			e.Hard = append(e.Hard, *o.hard)
		default:
			e.Soft = append(e.Soft, *o.soft)
		}
	}
	e.Hard, e.Soft = append(e.Hard, c.fixed.Hard...), append(e.Soft, c.fixed.Soft...) // switches are the last variables
	queries := []query.Query{{Evidence: e}}
	s := query.Settings{Method: query.MethodExact, Memory: c.o.Memory}
	assignments, err := Learn(c.ctx, c.net, queries, s, nil, &c.known)
	if err != nil || assignments[0].Error != nil || assignments[0].Plan.Len() > conflictTests {
		return false, false
	}
	demands := Demands(c.net, queries)
	chunks, _ := Chunks(c.net, assignments)
	values, err := Contract(c.ctx, c.net, assignments, demands, slices.Concat(chunks...),
		ContractOptions{Memory: c.o.Memory, Threads: c.o.Threads})
	if err != nil {
		return false, false
	}
	r := Aggregate("", assignments, values)[0]
	if r.Status != query.StatusOK || !r.Exact {
		return false, false
	}
	if !r.Zero {
		c.nonzero = append(c.nonzero, slices.Clone(in))
	}
	return r.Zero, true
}

// subset reports whether all of a are of b.
func subset(a, b []bool) bool {
	for i := range a {
		if a[i] && !b[i] {
			return false
		}
	}
	return true
}

// named returns the chosen observations.
func (c *conflicts) named(in []bool, smallest bool) *query.Conflict {
	conflict := &query.Conflict{Observations: []query.Observed{}, Smallest: smallest}
	for i, o := range c.items {
		switch {
		case !in[i]:
		case o.hard != nil:
			conflict.Observations = append(conflict.Observations, query.Observed{Variable: o.hard.Var, Value: &o.hard.Value})
		default:
			conflict.Observations = append(conflict.Observations, query.Observed{Variable: o.soft.Var})
		}
	}
	return conflict
}
