package region

// Marginals from those inside the regions, and from there along the trees outside all regions.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// marginals returns P(x_i) ∝ P_BP(x_i) c_i(x_i), c_i = Π_{r∋i} (P_r/P_BP)^{α_r}, for all indices. Before, it sends the corrections c_i out
// along the free legs, which are in no region: there, messages are passed again from corrected beliefs.
func (p *Prepared) marginals(parts []*Part) [][]float64 {
	c := &corrections{
		p:    p,
		g:    p.f.g,
		ln:   make([][]float64, len(p.e.Dims)),
		free: make([]bool, len(p.f.g.indexOf)),
		gain: make([][]float64, len(p.f.g.indexOf)),
	}
	for _, part := range parts {
		offset := 0
		for _, i := range part.Indices {
			d := p.e.Dims[i]
			c.add(i, part.Logs[offset:offset+d])
			offset += d
		}
	}
	c.markFreeLegs()
	c.passAlongFreeLegs()
	out := make([][]float64, len(p.e.Dims))
	for i := range out {
		out[i] = c.marginal(int32(i))
	}
	return out
}

// corrections are the factors by which the regions change the beliefs of belief propagation, and by which these changes then change the
// messages along free legs.
type corrections struct {
	p    *Prepared
	g    *graph
	ln   [][]float64 // ln c_i by index; nil if no region has the index, so c_i = 1
	free []bool      // by leg: it is in no region
	gain [][]float64 // by leg: corrected over original message to the index; nil if it is 1
}

// add adds logarithms to ln c_i.
func (c *corrections) add(i int, logs []float64) {
	if c.ln[i] == nil {
		c.ln[i] = append([]float64(nil), logs...)
		return
	}
	for x, l := range logs {
		c.ln[i][x] += l
	}
}

// correctedBelief returns b_i c_i times the gains of all legs of index i except one (−1: of all legs), normalised to sum 1. If c_i is 0
// for all values with a belief, it is ignored. If the sum is 0 or out of range, the result is not normalised.
func (c *corrections) correctedBelief(i int32, except int32) []float64 {
	belief := c.p.gauge.belief[i]
	out := make([]float64, len(belief))
	copy(out, belief)
	if ln := c.ln[i]; ln != nil {
		largest := math.Inf(-1) // subtracted before exp, so that nothing overflows
		for x, l := range ln {
			if belief[x] != 0 {
				largest = max(largest, l)
			}
		}
		for x, l := range ln {
			if belief[x] != 0 && !math.IsInf(largest, -1) {
				out[x] *= math.Exp(l - largest)
			}
		}
	}

	for _, leg := range c.g.legsOf(i) {
		if gain := c.gain[leg]; gain != nil && leg != except {
			for x := range out {
				out[x] *= gain[x]
			}
		}
	}

	return normalise(out)
}

// normalise divides values by their sum, in place. If the sum is not a positive finite number, it changes nothing.
func normalise(values []float64) []float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	if !isPositiveFinite(total) {
		return values
	}
	for x := range values {
		values[x] /= total
	}
	return values
}

// marginal returns the corrected marginal of index i.
func (c *corrections) marginal(i int32) []float64 {
	if c.p.gauge.belief[i] == nil { // in tables of order one only, or in none
		return c.p.s.Belief(int(i))
	}
	return c.correctedBelief(i, -1)
}

// markFreeLegs finds the legs that are in no region.
func (c *corrections) markFreeLegs() {
	for leg := range c.free {
		c.free[leg] = true
	}
	w := c.p.worker()
	defer c.p.release(w)
	for r := range c.p.f.Len() {
		if !c.p.f.source.mayBeLargest(r) {
			continue
		}
		legs, _ := c.p.f.source.region(r, w)
		for _, leg := range legs {
			c.free[leg] = false
		}
	}
}

// passAlongFreeLegs computes the gains of free legs: messages go from the leaves of a breadth-first forest to its roots and back. On
// trees this is exact. If free legs close cycles longer than all regions, it is the first of many sweeps that would be needed.
func (c *corrections) passAlongFreeLegs() {
	tables := c.tablesWithFreeLegs()
	for k := len(tables) - 1; k >= 0; k-- {
		c.pass(tables[k])
	}
	for _, t := range tables {
		c.pass(t)
	}
}

// tablesWithFreeLegs returns the tables that have a free leg and can be reached through such tables from an index in a region, in the
// order of a breadth-first search from all these indices.
func (c *corrections) tablesWithFreeLegs() (tables []int32) {
	g := c.g
	seenIndex, seenTable := make([]bool, len(g.dims)), make([]bool, len(g.edges))
	var queue []int32
	for i, ln := range c.ln {
		if ln != nil {
			queue = append(queue, int32(i))
			seenIndex[i] = true
		}
	}

	for k := 0; k < len(queue); k++ {
		for _, leg := range g.legsOf(queue[k]) {
			t := g.tableOf[leg]
			if seenTable[t] || !c.hasFreeLeg(t) {
				continue
			}
			seenTable[t] = true
			tables = append(tables, t)
			for _, j := range g.indicesOf(t) {
				if !seenIndex[j] {
					seenIndex[j] = true
					queue = append(queue, j)
				}
			}
		}
	}

	return tables
}

// hasFreeLeg reports whether table t has a free leg.
func (c *corrections) hasFreeLeg(t int32) bool {
	first, end := c.g.legRange(t)
	for leg := first; leg < end; leg++ {
		if c.free[leg] {
			return true
		}
	}
	return false
}

// pass computes the gains of the free legs of table t. For the leg ℓ on axis ℓ
//
//	gain_ℓ(x) ∝ Σ over the table's other indices of ρ_t Π_{k≠ℓ} u_k,   u_k = b_k c_k Π gains of k's other free legs
//
// which is 1 for u = b at a fixed point.
func (c *corrections) pass(t int32) {
	g, rho := c.g, c.p.gauge.rho[t]
	first, end := g.legRange(t)
	order := int(end - first)
	u, gain := make([][]float64, order), make([][]float64, order) // by axis
	for k := range order {
		leg := first + int32(k)
		u[k] = c.correctedBelief(g.indexOf[leg], leg)
		gain[k] = make([]float64, len(u[k]))
	}

	walk := sumproduct.NewWalk(g.dims, g.edges[t])
	for _, entry := range rho {
		for k := range walk.X {
			term := entry
			for l, x := range walk.X {
				if l != k {
					term *= u[l][x]
				}
			}
			gain[k][walk.X[k]] += term
		}
		walk.Next()
	}

	for k := range order {
		if leg := first + int32(k); c.free[leg] {
			c.gain[leg] = gain[k]
		}
	}
}
