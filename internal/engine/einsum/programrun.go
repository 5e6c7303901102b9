package einsum

// Runs of a program: Z under the weights of a conditioned network, and marginals.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// space is a run of a program with its memory.
type space struct {
	run
	own     [][]float64 // by leaf: where weights are multiplied in
	weights []float64
}

func newSpace(p *Program) *space {
	widest := 1
	for _, d := range p.dims {
		widest = max(widest, d)
	}
	w := &space{run: newRun(p.tape, p.steps), own: make([][]float64, len(p.leaves)), weights: make([]float64, widest)}
	w.ctx, w.threads = context.Background(), 1
	w.Prepare(p.steps, true)
	for t, l := range p.leaves {
		w.Tables[t] = l.data
		if len(l.hosted) > 0 {
			w.own[t] = make([]float64, len(l.data))
		}
	}
	return w
}

// keepFree bounds the runs whose memory is kept for the next ones.
const keepFree = 4

func (p *Program) take() *space {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		w := p.free[n-1]
		p.free = p.free[:n-1]
		return w
	}
	return newSpace(p)
}

func (p *Program) give(w *space) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < keepFree {
		p.free = append(p.free, w)
	}
}

// Z returns the value of a network that is the compiled one, conditioned. Every product of entries is a normal float64, so a
// total of 0 is one: all terms are 0, or they cancel. It says no where that cannot be had, or an entry is not finite: Contract
// is the fallback. The bits depend on the compiled network, the order and the weights only. Time: Plan(false). Memory: none,
// once as many runs as go on at a time have been there before.
func (p *Program) Z(net *btn.Network) (scaled.Number, bool) {
	w := p.take()
	defer p.give(w)
	return p.forward(net, w)
}

// Marginals returns Z as the method Z does and, in into, M_v(x) = w_v(x) ∂Z/∂w_v(x) of every variable and value: grouped by
// variable, the variables in their sequence; Σ_x M_v(x) = Z up to rounding. into has Σ_v Domain entries. It says no, and into is
// zeros, where Z does, and where Z is 0 or a product of derivatives would lose digits: the function Marginals serves then. Time:
// Plan(true). Memory as for Z.
func (p *Program) Marginals(net *btn.Network, into []scaled.Number) (scaled.Number, bool) {
	clear(into)
	w := p.take()
	defer p.give(w)
	z, ok := p.forward(net, w)
	if !ok || z.IsZero() || !p.backward(w) {
		return scaled.Number{}, false
	}
	for v := range p.places {
		q := &p.places[v]
		for k := range q.dim {
			x := k
			if q.values != nil {
				x = q.values[k]
			}
			switch {
			case q.leaf == noTable:
				into[q.offset+x] = z
			case w.by[q.leaf].there:
				into[q.offset+x] = w.read(q.leaf, k, q.dim, q.inner)
			}
		}
	}
	return z, true
}

// backward computes the derivatives by the tables that lead to a marginal.
func (p *Program) backward(w *space) bool {
	clear(w.by)
	for n, seed := range w.others() {
		if t := w.places[n]; w.Back[t] != nil && !seed.IsZero() {
			w.seed(t, seed)
		}
	}
	for n := len(p.steps.Steps) - 1; n >= 0; n-- {
		if w.by[len(p.leaves)+n].there && w.stepBack(n) != nil {
			return false
		}
	}
	for t := range p.leaves {
		if w.by[t].there {
			w.check(t)
		}
	}
	return !w.lost
}

// Above reports whether signs alone show that Z is above 0 for a network that is the compiled one, conditioned. Time O(variables).
func (p *Program) Above(net *btn.Network) bool {
	if !p.above || p.scale.Sign()*net.Scale.Sign() <= 0 {
		return false
	}
	for v := range p.weights {
		of := &p.weights[v]
		any := false
		all := lower.WeightsAt(net, of.link)
		for k := range of.dim {
			x := k
			if of.values != nil {
				x = of.values[k]
			}
			if all[x] < 0 {
				return false
			}
			any = any || all[x] > 0
		}
		if !any {
			return false
		}
	}
	return true
}

// forward computes all tables and Z.
func (p *Program) forward(net *btn.Network, w *space) (scaled.Number, bool) {
	w.begin(net.Scale.Mul(p.scale))
	for t := range p.leaves {
		l := &p.leaves[t]
		switch {
		case len(l.hosted) == 0:
			w.depth[t] = measured(l.low)
		case l.ready != nil && p.unchanged(net, l):
			w.Tables[t], w.depth[t], w.shift[t] = l.ready.data, measured(l.ready.low), l.ready.shift
			w.exp += l.ready.exp
		case !p.weigh(net, w, t):
			return scaled.Number{}, false
		}
	}
	for v := range p.weights {
		if of := &p.weights[v]; of.leaf < 0 {
			x := 0
			if of.values != nil {
				x = of.values[0]
			}
			w.base = w.base.Mul(scaled.FromFloat(lower.WeightsAt(net, of.link)[x]))
		}
	}
	for n := range p.steps.Steps {
		p.steps.Forward(&w.Memory, n)
		if w.settle(n, floats.LargestBits(w.Tables[len(p.leaves)+n])) != nil || w.lost {
			return scaled.Number{}, false
		}
	}
	z := w.total()
	return z, z.IsFinite()
}

// measured is the depth of a table whose entries but 0 are 2^low or more in size.
func measured(low int) sumproduct.Depth { return sumproduct.Depth{Low: min(low, 0), Measured: true} }

// unchanged reports whether a leaf's weights equal the network's without evidence.
func (p *Program) unchanged(net *btn.Network, l *leaf) bool {
	for _, v := range l.hosted {
		if of := &p.weights[v]; !lower.Same(lower.WeightsAt(net, of.link), of.own) {
			return false
		}
	}
	return true
}

// weigh multiplies the weights of variables into their leaf, and divides that by a power of two where products could leave the range
// of float64.
func (p *Program) weigh(net *btn.Network, w *space, t int) bool {
	l := &p.leaves[t]
	data, low := w.own[t], l.low
	copy(data, l.data)
	for _, v := range l.hosted {
		least, ok := w.multiply(data, &p.weights[v], lower.WeightsAt(net, p.weights[v].link))
		if low += least; !ok || low < deepest {
			return false
		}
	}
	top, low, _ := floats.Extent(data)
	if top >= 1024 {
		return false
	}
	if top < -margin || top >= margin {
		exp := floats.Normalise(data).Exp
		w.power(t, exp)
		low -= int(exp)
	}
	w.Tables[t], w.depth[t] = data, measured(low)
	return true
}

// multiply multiplies the weights of one variable into a leaf, and returns the exponent of the least of them; false where they are too
// far apart.
func (w *space) multiply(data []float64, of *weights, all []float64) (low int, ok bool) {
	own := w.weights[:of.dim]
	if of.values == nil {
		copy(own, all)
	} else {
		for k, x := range of.values {
			own[k] = all[x]
		}
	}
	top, low, negative := floats.Extent(own)
	if negative || top-low > spanLimit || top >= 1024 {
		return 0, false
	}
	if top < -margin || top >= margin {
		exp := floats.Normalise(own).Exp
		w.exp += exp
		low -= int(exp)
	}
	for at := 0; at < len(data); {
		for _, f := range own {
			if f == 1 {
				at += of.inner
				continue
			}
			for end := at + of.inner; at < end; at++ {
				data[at] *= f
			}
		}
	}
	return low, true
}
