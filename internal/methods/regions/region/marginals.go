package region

// Marginals from those inside the regions, and from there along the trees outside all regions.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// correctedMarginals returns P(x_i) ∝ P_BP(x_i) c_i(x_i) for all indices i, with c_i = Π_{r∋i} (P_r/P_BP)^{α_r} over the regions r that
// have the index. The corrections c_i also change beliefs outside all regions: along free legs, which are in no region, messages are passed
// again from corrected beliefs.
func (p *Prepared) correctedMarginals(parts []*Part) [][]float64 {
	// Add up ln c_i.
	c := &corrections{
		prepared: p,
		graph:    p.family.graph,
		ln:       make([][]float64, len(p.expression.Dims)),
		isFree:   make([]bool, len(p.family.graph.indexOf)),
		gain:     make([][]float64, len(p.family.graph.indexOf)),
	}
	for _, part := range parts {
		offset := 0
		for _, i := range part.Indices {
			d := p.expression.Dims[i]
			c.addLogs(i, part.Logs[offset:offset+d])
			offset += d
		}
	}

	c.markFreeLegs()
	c.passAlongFreeLegs()
	marginals := make([][]float64, len(p.expression.Dims))
	for i := range marginals {
		marginals[i] = c.marginal(int32(i))
	}
	return marginals
}

// corrections are the factors by which the regions change the beliefs of belief propagation, and by which these changes then change the
// messages along free legs.
type corrections struct {
	prepared *Prepared
	graph    *graph
	ln       [][]float64 // ln c_i by index and value; nil if no region has the index, so that c_i = 1
	isFree   []bool      // by leg: it is in no region
	gain     [][]float64 // by leg and value: corrected over original message to the index; nil if it is 1
}

// addLogs adds the logarithms of one part to ln c_i. c_i is the correction of the marginal of index i by regions.
func (c *corrections) addLogs(i int, logs []float64) {
	if c.ln[i] == nil {
		c.ln[i] = append([]float64(nil), logs...)
		return
	}
	for x, l := range logs {
		c.ln[i][x] += l
	}
}

// noLeg is the argument of correctedBelief that leaves out no leg.
const noLeg = -1

// correctedBelief returns b_i c_i times the gains of the legs of index i, normalised to sum 1. b_i is the belief of the index, c_i the
// correction by regions, and the gain of a leg the ratio by which the message along it has changed. The gain of the leg except is left out
// (noLeg: of none). If c_i is 0 for all values with a belief, c_i is ignored. If the sum is 0 or out of range, the result is not
// normalised.
func (c *corrections) correctedBelief(i int32, except int32) []float64 {
	belief := c.prepared.gauge.belief[i]
	corrected := make([]float64, len(belief))
	copy(corrected, belief)

	// Multiply by c_i, relative to its largest value.
	if ln := c.ln[i]; ln != nil {
		largest := math.Inf(-1) // subtracted before exp, so that nothing overflows
		for x, l := range ln {
			if belief[x] != 0 {
				largest = max(largest, l)
			}
		}
		for x, l := range ln {
			if belief[x] != 0 && !math.IsInf(largest, -1) {
				corrected[x] *= math.Exp(l - largest)
			}
		}
	}

	for _, leg := range c.graph.legsOf(i) {
		if gain := c.gain[leg]; gain != nil && leg != except {
			for x := range corrected {
				corrected[x] *= gain[x]
			}
		}
	}

	return normalise(corrected)
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
	if c.prepared.gauge.belief[i] == nil { // the index is in no table of two indices or more
		return c.prepared.state.Belief(int(i))
	}
	return c.correctedBelief(i, noLeg)
}

// markFreeLegs sets c.isFree for the legs, indices of tables, that are in no region. It leaves out regions that are inside others.
func (c *corrections) markFreeLegs() {
	for leg := range c.isFree {
		c.isFree[leg] = true
	}
	w := c.prepared.takeWorker()
	defer c.prepared.release(w)
	for r := range c.prepared.family.Len() {
		if !c.prepared.family.source.mayBeLargest(r) { // its legs are in a larger region, too
			continue
		}
		legs, _ := c.prepared.family.source.region(r, w) // the counting number does not matter
		for _, leg := range legs {
			c.isFree[leg] = false
		}
	}
}

// passAlongFreeLegs computes the gains of free legs. A leg is free if it is in no region; its gain is the ratio by which the message along
// it has changed. Messages go from the leaves of a breadth-first forest to its roots and back. On trees this is exact. If free legs close
// cycles longer than all regions, it is the first of many sweeps that would be needed.
func (c *corrections) passAlongFreeLegs() {
	tables := c.tablesWithFreeLegs()
	for k := len(tables) - 1; k >= 0; k-- {
		c.updateGains(tables[k])
	}
	for _, t := range tables {
		c.updateGains(t)
	}
}

// tablesWithFreeLegs returns tables that have a free leg, in the order of a breadth-first search. The search begins at all indices that are
// in a region and goes through tables with a free leg only. A leg is one index of one table; it is free if it is in no region.
func (c *corrections) tablesWithFreeLegs() (tables []int32) {
	g := c.graph
	isIndexVisited, isTableVisited := make([]bool, len(g.dims)), make([]bool, len(g.edges))
	var queue []int32
	for i, ln := range c.ln {
		if ln != nil {
			queue = append(queue, int32(i))
			isIndexVisited[i] = true
		}
	}

	for k := 0; k < len(queue); k++ {
		for _, leg := range g.legsOf(queue[k]) {
			t := g.tableOf[leg]
			if isTableVisited[t] || !c.hasFreeLeg(t) {
				continue
			}
			isTableVisited[t] = true
			tables = append(tables, t)
			for _, j := range g.indicesOf(t) {
				if !isIndexVisited[j] {
					isIndexVisited[j] = true
					queue = append(queue, j)
				}
			}
		}
	}

	return tables
}

// hasFreeLeg reports whether table t has a free leg, which is in no region. A leg is one index of one table.
func (c *corrections) hasFreeLeg(t int32) bool {
	first, end := c.graph.legRange(t)
	for leg := first; leg < end; leg++ {
		if c.isFree[leg] {
			return true
		}
	}
	return false
}

// updateGains computes the gains of the free legs of table t. For the leg ℓ on axis ℓ
//
//	gain_ℓ(x) ∝ Σ over the table's other indices of ρ_t Π_{k≠ℓ} u_k,   u_k = b_k c_k Π gains of k's other free legs
//
// which is 1 for u = b at a fixed point. u_k is the corrected belief of the index on axis k without its leg in t. A leg is one index of one
// table, free if it is in no region. Its gain is the ratio by which the message along it has changed.
func (c *corrections) updateGains(t int32) {
	g, rho := c.graph, c.prepared.gauge.rho[t]
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
		for k := range walk.Values {
			term := entry
			for l, x := range walk.Values {
				if l != k {
					term *= u[l][x]
				}
			}
			gain[k][walk.Values[k]] += term
		}
		walk.Next()
	}

	for k := range order {
		if leg := first + int32(k); c.isFree[leg] {
			c.gain[leg] = gain[k]
		}
	}
}
