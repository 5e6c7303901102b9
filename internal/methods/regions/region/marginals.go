package region

// Marginals from those inside the regions, and from there along the trees outside all regions.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// marginals returns P(x_i) ∝ P_BP(x_i) c_i(x_i), c_i = Π_{r∋i} (P_r/P_BP)^{α_r}, for all indices,
// after the corrections c_i have been sent out along the legs that no region has: there, messages
// are passed again from corrected beliefs.
func (p *Prepared) marginals(parts []*Part) [][]float64 {
	c := &corrections{
		p:    p,
		g:    p.f.g,
		ln:   make([][]float64, len(p.e.Dims)),
		free: make([]bool, len(p.f.g.index)),
	}
	for _, part := range parts {
		at := 0
		for _, i := range part.Indices {
			d := p.e.Dims[i]
			c.take(i, part.Logs[at:at+d])
			at += d
		}
	}
	c.spread()
	out := make([][]float64, len(p.e.Dims))
	for i, d := range p.e.Dims {
		out[i] = c.marginal(int32(i), d)
	}
	return out
}

// corrections holds ln c_i of all indices, and how the messages of free legs, those in no region,
// have changed.
type corrections struct {
	p    *Prepared
	g    *graph
	ln   [][]float64 // by index; nil: 0
	free []bool
	gain [][]float64 // by leg: corrected over original message to the index; nil: 1
}

// take adds logarithms to an index's.
func (c *corrections) take(i int, logs []float64) {
	if c.ln[i] == nil {
		c.ln[i] = append([]float64(nil), logs...)
		return
	}
	for x, l := range logs {
		c.ln[i][x] += l
	}
}

// weights returns b_i c_i times the gains of all free legs of the index but one, normalised to sum
// 1; all beliefs where nothing is left.
func (c *corrections) weights(i int32, but int32) []float64 {
	b := c.p.y.belief[i]
	out := make([]float64, len(b))
	copy(out, b)
	if ln := c.ln[i]; ln != nil {
		top := math.Inf(-1)
		for x, l := range ln {
			if b[x] != 0 {
				top = max(top, l)
			}
		}
		for x, l := range ln {
			if b[x] != 0 && !math.IsInf(top, -1) {
				out[x] *= math.Exp(l - top)
			}
		}
	}

	for _, leg := range c.g.legsOf(i) {
		if gain := c.gain[leg]; gain != nil && leg != but {
			for x := range out {
				out[x] *= gain[x]
			}
		}
	}

	return normalise(out)
}

// normalise divides by the sum, unless that is no number to divide by.
func normalise(out []float64) []float64 {
	total := 0.0
	for _, v := range out {
		total += v
	}
	if !usable(total) {
		return out
	}
	for x := range out {
		out[x] /= total
	}
	return out
}

func (c *corrections) marginal(i int32, d int) []float64 {
	if c.p.y.belief[i] == nil { // in tables of order one only, or in none
		return c.p.s.Belief(int(i))
	}
	return c.weights(i, -1)
}

// spread passes messages over the tables with free legs: from the leaves of a breadth-first forest
// to its roots and back, which is all there is to do on trees. Where free legs close cycles longer
// than all regions, it is one sweep of many.
func (c *corrections) spread() {
	c.gain = make([][]float64, len(c.g.index))
	for leg := range c.free {
		c.free[leg] = true
	}
	w := c.p.worker()
	defer c.p.release(w)
	for r := range c.p.f.Len() {
		if !c.p.f.source.largest(r) {
			continue
		}
		legs, _ := c.p.f.source.region(r, w)
		for _, leg := range legs {
			c.free[leg] = false
		}
	}

	order := c.order()
	for k := len(order) - 1; k >= 0; k-- {
		c.pass(order[k])
	}
	for _, t := range order {
		c.pass(t)
	}
}

// order lists the tables with a free leg, breadth first from the indices that have been corrected.
func (c *corrections) order() (tables []int32) {
	g := c.g
	seenI, seenT := make([]bool, len(g.dims)), make([]bool, len(g.edges))
	var queue []int32
	for i, ln := range c.ln {
		if ln != nil {
			queue = append(queue, int32(i))
			seenI[i] = true
		}
	}

	for k := 0; k < len(queue); k++ {
		for _, leg := range g.legsOf(queue[k]) {
			t := g.table[leg]
			if seenT[t] || !c.anyFree(t) {
				continue
			}
			seenT[t] = true
			tables = append(tables, t)
			for _, j := range g.index[g.first[t]:g.first[t+1]] {
				if !seenI[j] {
					seenI[j] = true
					queue = append(queue, j)
				}
			}
		}
	}

	return tables
}

// anyFree reports whether a table has a free leg.
func (c *corrections) anyFree(t int32) bool {
	for leg := c.g.first[t]; leg < c.g.first[t+1]; leg++ {
		if c.free[leg] {
			return true
		}
	}
	return false
}

// pass computes the gains of a table's free legs:
//
//	gain_ℓ(x) ∝ Σ over the table's other indices of ρ_t Π_{k≠ℓ} u_k,   u_k = b_k c_k Π gains of k's other free legs
//
// which is 1 for u = b at a fixed point.
func (c *corrections) pass(t int32) {
	g, rho := c.g, c.p.y.rho[t]
	first, order := g.first[t], int(g.first[t+1]-g.first[t])
	u, gain := make([][]float64, order), make([][]float64, order)
	for k := range order {
		leg := first + int32(k)
		u[k] = c.weights(g.index[leg], leg)
		gain[k] = make([]float64, len(u[k]))
	}

	at := sumproduct.NewWalk(g.dims, g.edges[t])
	for _, entry := range rho {
		for k := range at.X {
			term := entry
			for l, a := range at.X {
				if l != k {
					term *= u[l][a]
				}
			}
			gain[k][at.X[k]] += term
		}
		at.Next()
	}

	for k := range order {
		if leg := first + int32(k); c.free[leg] {
			c.gain[leg] = gain[k]
		}
	}
}
