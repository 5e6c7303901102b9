package einsum

// A program's way forth: Z under the weights of a conditioned network.

import (
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// space is what one run of a program writes.
type space struct {
	leaves  int
	data    [][]float64 // by table: leaves, then outputs
	own     [][]float64 // by leaf: where weights are multiplied in
	low     []int       // by table: every entry but 0 is 2^low or more in size
	shift   []int64     // by table: exponent of the power of two it was divided by
	back    [][]float64 // by table: derivative of Z
	backLow []int
	backExp []int64 // by table
	none    []bool  // by table: its derivative is 0
	weights []float64
	numbers []scaled.Number // factors of Z that are tables of one entry
	tables  []int           // and whose they are
	seeds   []scaled.Number
	base    scaled.Number // the other factors
	exp     int64         // but for this power of two
}

func newSpace(p *Program) *space {
	tables := len(p.leaves) + len(p.steps)
	w := &space{
		leaves:  len(p.leaves),
		own:     make([][]float64, len(p.leaves)),
		data:    make([][]float64, tables),
		low:     make([]int, tables),
		shift:   make([]int64, tables),
		back:    make([][]float64, tables),
		backLow: make([]int, tables),
		backExp: make([]int64, tables),
		none:    make([]bool, tables),
	}

	total, widest := 0, 1
	for _, l := range p.leaves {
		total += len(l.data)
	}
	for _, s := range p.steps {
		total += s.size
	}
	for _, d := range p.dims {
		widest = max(widest, d)
	}
	w.weights = make([]float64, widest)
	floats := make([]float64, 2*total)
	take := func(n int) (out []float64) {
		out, floats = floats[:n:n], floats[n:]
		return out
	}
	for t, l := range p.leaves {
		w.data[t], w.back[t] = l.data, nil
		if len(l.hosted) > 0 {
			w.own[t] = take(len(l.data))
		}
		if l.read {
			w.back[t] = take(len(l.data))
		}
	}
	for n, s := range p.steps {
		w.data[len(p.leaves)+n], w.back[len(p.leaves)+n] = take(s.size), take(s.size)
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
// does what can be done then. The bits depend on the compiled network, the order and the weights only.
// Time: Plan(false). Memory: none, once as many runs as go on at a time have been there before.
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
			w.data[t], w.low[t], w.shift[t] = l.ready.data, l.ready.low, l.ready.shift
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
	for n := range p.steps {
		s, out := &p.steps[n], len(p.leaves)+n
		if low := w.lowest(s, -1); low < deepest {
			return scaled.Number{}, false
		}
		s.run(w.data, w.data[out])
		if s.size == 1 {
			w.numbers, w.tables = append(w.numbers, scaled.FromFloat(w.data[out][0])), append(w.tables, out)
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
func (w *space) lowest(s *step, but int) int {
	low := 0
	for i, k := range s.in {
		if i != but {
			low += w.low[k]
		}
	}
	return low
}

// unchanged reports whether a leaf's weights are those of the network without evidence.
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
	w.data[t], w.low[t] = w.own[t], l.low
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
	top, low, negative := scaled.Extent(own)
	if negative || top-low > spanLimit || top >= 1024 {
		return false
	}
	if top < -margin || top >= margin {
		n := scaled.Normalise(own).Exp
		w.exp, low = w.exp+n, low-int(n)
	}
	if w.low[t] += low; w.low[t] < deepest {
		return false
	}
	data := w.data[t]
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
	top, low, _ := scaled.Extent(w.data[t])
	if top >= 1024 {
		return false
	}
	if top < -margin || top >= margin {
		n := scaled.Rescale(w.data[t], uint64(top+1023)<<52)
		w.exp, w.shift[t], low = w.exp+n.Exp, n.Exp, low-int(n.Exp)
	}
	w.low[t] = low
	return true
}

// run computes the output of a step.
func (s *step) run(tables [][]float64, out []float64) {
	switch len(s.in) {
	case 1:
		a, ia := tables[s.in[0]], s.at[0]
		for o := range out {
			sum := 0.0
			for _, i := range ia[:s.sums] {
				sum += a[i]
			}
			out[o], ia = sum, ia[s.sums:]
		}
	case 2:
		a, b := tables[s.in[0]], tables[s.in[1]]
		ia, ib := s.at[0], s.at[1]
		for o := range out {
			sum := 0.0
			row := ib[:s.sums]
			for k, i := range ia[:s.sums] {
				sum += float64(a[i] * b[row[k]])
			}
			out[o], ia, ib = sum, ia[s.sums:], ib[s.sums:]
		}
	case 3:
		a, b, c := tables[s.in[0]], tables[s.in[1]], tables[s.in[2]]
		ia, ib, ic := s.at[0], s.at[1], s.at[2]
		for o := range out {
			sum := 0.0
			second, third := ib[:s.sums], ic[:s.sums]
			for k, i := range ia[:s.sums] {
				sum += float64(a[i] * b[second[k]] * c[third[k]])
			}
			out[o], ia, ib, ic = sum, ia[s.sums:], ib[s.sums:], ic[s.sums:]
		}
	default:
		at := 0
		for o := range out {
			sum := 0.0
			for range s.sums {
				f := 1.0
				for k, t := range s.in {
					f *= tables[t][s.at[k][at]]
				}
				sum += f
				at++
			}
			out[o] = sum
		}
	}
}
