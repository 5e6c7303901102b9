package einsum

// A program's way forth: Z under the weights of a conditioned network.

import (
	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/compiled"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// space is the memory that one run of a program writes.
type space struct {
	compiled.Memory
	own     [][]float64 // by leaf: where weights are multiplied in
	low     []int       // by table: every entry but 0 is 2^low or more in size
	shift   []int64     // by table: exponent of the power of two it was divided by
	backLow []int       // by table, of the derivative of Z
	backExp []int64     // by table
	none    []bool      // by table: its derivative is 0
	weights []float64
	numbers []scaled.Number // factors of Z that are tables of one entry
	tables  []int           // and whose they are
	seeds   []scaled.Number
	base    scaled.Number // the other factors
	exp     int64         // but for this power of two
}

func newSpace(p *Program) *space {
	tables, widest := len(p.leaves)+len(p.steps.Steps), 1
	for _, d := range p.dims {
		widest = max(widest, d)
	}
	w := &space{
		own:     make([][]float64, len(p.leaves)),
		low:     make([]int, tables),
		shift:   make([]int64, tables),
		backLow: make([]int, tables),
		backExp: make([]int64, tables),
		none:    make([]bool, tables),
		weights: make([]float64, widest),
	}
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
	w.base, w.exp, w.numbers, w.tables = net.Scale.Mul(p.scale), 0, w.numbers[:0], w.tables[:0]
	clear(w.shift)
	for t := range p.leaves {
		l := &p.leaves[t]
		switch {
		case len(l.hosted) == 0:
			w.low[t] = l.low
		case l.ready != nil && p.unchanged(net, l):
			w.Tables[t], w.low[t], w.shift[t] = l.ready.data, l.ready.low, l.ready.shift
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
		s, out := &p.steps.Steps[n], len(p.leaves)+n
		if low := w.lowest(s, -1); low < deepest {
			return scaled.Number{}, false
		}
		p.steps.Forward(&w.Memory, n)
		if s.Size == 1 {
			w.numbers, w.tables = append(w.numbers, scaled.FromFloat(w.Tables[out][0])), append(w.tables, out)
		} else if !w.settle(out) {
			return scaled.Number{}, false
		}
	}
	w.base = w.base.Mul(scaled.Make(1, w.exp))
	z := w.base
	for _, n := range w.numbers {
		z = z.Mul(n)
	}
	return z, z.IsFinite()
}

// lowest returns the exponent below which no product of entries of a step's inputs is, but 0; input but is left out.
func (w *space) lowest(s *compiled.Step, but int) int {
	low := 0
	for i := range s.In {
		if i != but {
			low += w.low[s.In[i].Table]
		}
	}
	return low
}

// unchanged reports whether a leaf's weights equal the network's without evidence.
func (p *Program) unchanged(net *btn.Network, l *leaf) bool {
	for _, v := range l.hosted {
		if of := &p.weights[v]; !lower.Same(lower.WeightsAt(net, of.link), of.own) {
			return false
		}
	}
	return true
}

// weigh multiplies the weights of variables into their leaf.
func (p *Program) weigh(net *btn.Network, w *space, t int) bool {
	l := &p.leaves[t]
	w.Tables[t], w.low[t] = w.own[t], l.low
	copy(w.own[t], l.data)
	for _, v := range l.hosted {
		if !w.multiply(t, &p.weights[v], lower.WeightsAt(net, p.weights[v].link)) {
			return false
		}
	}
	return w.settle(t)
}

// multiply multiplies the weights of one variable into leaf t.
func (w *space) multiply(t int, of *weights, all []float64) bool {
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
		return false
	}
	if top < -margin || top >= margin {
		n := floats.Normalise(own).Exp
		w.exp, low = w.exp+n, low-int(n)
	}
	if w.low[t] += low; w.low[t] < deepest {
		return false
	}
	data := w.Tables[t]
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
	return true
}

// settle looks at a table that was computed, and divides it by a power of two where products could leave the range of float64.
func (w *space) settle(t int) bool {
	top, low, _ := floats.Extent(w.Tables[t])
	if top >= 1024 {
		return false
	}
	if top < -margin || top >= margin {
		n := floats.Rescale(w.Tables[t], uint64(top+1023)<<52)
		w.exp, w.shift[t], low = w.exp+n.Exp, n.Exp, low-int(n.Exp)
	}
	w.low[t] = low
	return true
}
