package einsum

// A program's way back: all marginals.

import (
	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Marginals returns Z as the method Z does and, in into, M_v(x) = w_v(x) ∂Z/∂w_v(x) of every variable and value: grouped by
// variable, the variables in their sequence; Σ_x M_v(x) = Z up to rounding. into has Σ_v Domain entries. It says no where Z
// does, and where Z is 0 or a product of derivatives would lose digits: the function Marginals serves then. Time:
// Plan(true). Memory as for Z.
func (p *Program) Marginals(net *btn.Network, into []scaled.Number) (scaled.Number, bool) {
	w := p.take()
	defer p.give(w)
	z, ok := p.forward(net, w)
	if !ok || z.IsZero() || !p.backward(w) {
		return scaled.Number{}, false
	}
	clear(into)
	for v := range p.places {
		p.read(w, &p.places[v], z, into)
	}
	return z, true
}

// backward computes the derivatives by the tables that lead to a marginal.
func (p *Program) backward(w *space) bool {
	for t := range w.none {
		w.none[t] = true
	}
	w.seed()
	for n := len(p.steps.Steps) - 1; n >= 0; n-- {
		s, out := &p.steps.Steps[n], len(p.leaves)+n
		if w.none[out] {
			continue
		}
		for i := range s.In {
			if s.In[i].Needed && w.backLow[out]+w.lowest(s, i) < deepest {
				return false
			}
		}
		p.steps.Backward(&w.Memory, n)
		for i := range s.In {
			if s.In[i].Needed && !w.settleBack(s.In[i].Table, w.backExp[out]-w.shift[out]) {
				return false
			}
		}
	}
	return true
}

// seed sets the derivative by every number that is a factor of Z: the product of the others.
func (w *space) seed() {
	w.seeds = w.seeds[:0]
	f := w.base
	for _, n := range w.numbers {
		w.seeds = append(w.seeds, f)
		f = f.Mul(n)
	}
	f = scaled.One
	for i := len(w.numbers) - 1; i >= 0; i-- {
		seed, t := w.seeds[i].Mul(f), w.tables[i]
		w.Back[t][0], w.backExp[t], w.backLow[t], w.none[t] = seed.Mant, seed.Exp, 0, seed.IsZero()
		f = f.Mul(w.numbers[i])
	}
}

// settleBack is settle for a derivative with an exponent, which a leaf's is multiplied with its entries.
func (w *space) settleBack(t int, exp int64) bool {
	top, low, _ := floats.Extent(w.Back[t])
	if top >= 1024 {
		return false
	}
	if top < -margin || top >= margin {
		n := floats.Rescale(w.Back[t], uint64(top+1023)<<52)
		exp, low = exp+n.Exp, low-int(n.Exp)
	}
	w.backExp[t], w.backLow[t], w.none[t] = exp, low, false
	return t >= len(w.own) || w.low[t]+low >= deepest
}

// read adds t[y]·∂Z/∂t[y] up by the value that y has at a variable's index.
func (p *Program) read(w *space, q *place, z scaled.Number, into []scaled.Number) {
	dim := p.dims[q.index]
	for k := range dim {
		x := k
		if q.values != nil {
			x = q.values[k]
		}
		m := &into[q.offset+x]
		switch {
		case q.leaf < 0:
			*m = z
		case !w.none[q.leaf]:
			t, by := w.Tables[q.leaf], w.Back[q.leaf]
			sum := 0.0
			for at := k * q.inner; at < len(t); at += q.inner * dim {
				for j := at; j < at+q.inner; j++ {
					sum += float64(t[j] * by[j])
				}
			}
			*m = scaled.Make(sum, w.backExp[q.leaf])
		}
	}
}
