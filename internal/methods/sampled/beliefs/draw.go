package beliefs

// Draws: from the messages as they were, or as they follow the values.

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
)

// Drawer draws from a sampler, one state after the other; it is for one goroutine.
type Drawer struct {
	s        *Sampler
	floor    float64
	p, allow []float64 // by value: probabilities, the product of the tables that are decided
	work     float64

	messages []float64
	known    []bool // by index
	queue    []incidence
	waiting  []bool // by where a message begins
	out      []float64
	open     []summed
	room     []float64
}

// summed is an index of a table that is summed out: its weights, and its place.
type summed struct {
	weights   []float64
	stride, a int
}

// NewDrawer returns a drawer that draws also values that the messages wrongly exclude: every value allowed by the decided tables
// has at least the largest probability times lost over the number of indices, apart from these tables' own factors.
func (s *Sampler) NewDrawer(lost float64) *Drawer {
	top := slices.Max(append(slices.Clone(s.e.Dims), 1))
	d := &Drawer{s: s, floor: lost / float64(max(1, len(s.draws))), p: make([]float64, top), allow: make([]float64, top)}
	if s.follow > 0 {
		d.messages, d.known = make([]float64, len(s.messages)), make([]bool, len(s.e.Dims))
		d.waiting, d.out = make([]bool, len(s.messages)), make([]float64, top)
		d.open, d.room = make([]summed, 0, s.longest), make([]float64, s.longest*top)
	}
	return d
}

// Draw draws a state x, a value per index, and returns ln of its density, nats. Cost: Flops.
func (d *Drawer) Draw(r *rand.Rand, x []int) float64 { return d.walk(r, x) }

// LnDensity returns ln of the density of a state, nats; −Inf where a table is 0 there. Cost: Flops.
func (d *Drawer) LnDensity(x []int) float64 { return d.walk(nil, x) }

// walk goes through the conditional distributions, drawing from them with r, else at x.
func (d *Drawer) walk(r *rand.Rand, x []int) (ln float64) {
	copy(d.messages, d.s.messages)
	clear(d.known)
	product := 1.0
	for k := range d.s.draws {
		c := &d.s.draws[k]
		p, total := d.conditional(c, x)
		if r != nil {
			u := r.Float64() * total
			for v, q := range p {
				if q > 0 {
					x[c.index] = v
					if u -= q; u < 0 {
						break
					}
				}
			}
		}
		// Logarithms of products: one of many factors.
		if product *= p[x[c.index]] / total; product < 1e-100 {
			ln += floats.Ln(product)
			product = 1
		}
		if d.s.follow > 0 {
			d.follow(c.index, x)
		}
	}
	return ln + floats.Ln(product)
}

// Measured work in flops: of an index, of a factor of a conditional distribution and of an index that says which, of a message and of an
// entry of its table times its order.
const (
	indexWork   = 90
	factorWork  = 8
	lookWork    = 8
	messageWork = 60
	entryWork   = 6
	logWork     = 30 // chosen: ten nanoseconds
)

// conditional is the distribution of an index at the values drawn so far, and its sum.
func (d *Drawer) conditional(c *conditional, x []int) (p []float64, total float64) {
	n := len(c.own)
	p = d.p[:n]
	copy(p, c.own)
	for k := range c.open {
		c.open[k].multiply(p, x)
		if k%8 == 7 {
			rescale(p)
		}
		d.work += lookWork * float64(len(c.open[k].scope))
	}
	for k, from := range c.to {
		multiply(p, d.messages[from:])
		if k%8 == 7 {
			rescale(p)
		}
	}
	rescale(p)
	for v := range p {
		p[v] = max(p[v], d.floor)
	}
	allow := d.allow[:n]
	if c.wide {
		d.allowed(allow, c, x)
	} else {
		for v := range allow {
			allow[v] = 1
		}
		for k := range c.decided {
			c.decided[k].multiply(allow, x)
			rescale(allow)
		}
	}
	for k := range c.decided {
		d.work += lookWork * float64(len(c.decided[k].scope))
	}
	multiply(p, allow)
	for _, q := range p {
		total += q
	}
	if !(total > 0) { // no value is possible: any will do, the weight is 0
		for v := range p {
			p[v] = 1
		}
		total = float64(n)
	}
	d.work += indexWork + factorWork*float64(n*(len(c.open)+len(c.decided)+len(c.to)+2))
	return p, total
}

// at is where the row of values of the index itself begins, at the values of the others.
func (l *lookup) at(x []int) (at int) {
	for k, j := range l.scope {
		at += l.stride[k] * x[j]
	}
	return at
}

// multiply multiplies by the row of values of the index itself, at the values of the others.
func (l *lookup) multiply(p []float64, x []int) {
	at := l.at(x)
	for v := range p {
		p[v] *= l.data[at]
		at += l.own
	}
}

// least is the minimum weight of a value that decided tables of a wide range allow, relative to the largest: float64 holds it times
// the floor and the product of densities before it.
const least = 1e-180

// allowed is the product of the decided tables, the largest 1, in logarithms: it leaves the range of float64 on the way.
func (d *Drawer) allowed(p []float64, c *conditional, x []int) {
	clear(p)
	for k := range c.decided {
		l := &c.decided[k]
		at := l.at(x)
		for v := range p {
			p[v] += floats.Ln(l.data[at])
			at += l.own
		}
	}
	top := slices.Max(p)
	for v, ln := range p {
		if p[v] = 0; !math.IsInf(ln, -1) {
			p[v] = max(math.Exp(ln-top), least)
		}
	}
	d.work += logWork * float64(len(p)*(1+len(c.decided)))
}

// multiply multiplies p by the first of q.
func multiply(p, q []float64) {
	q = q[:len(p)]
	for v := range p {
		p[v] *= q[v]
	}
}

// rescale divides by the largest unless that is 0.
func rescale(p []float64) {
	top := 0.0
	for _, x := range p {
		top = max(top, x)
	}
	if top > 0 {
		for v := range p {
			p[v] /= top
		}
	}
}

// mostFollowing bounds the messages that follow one value. Measured on 24 families, colourings most: see the decision on families.
const mostFollowing = 200

// follow recomputes the messages that depend on the value of an index which has just been drawn, and their dependants where they
// change enough, breadth first.
func (d *Drawer) follow(i int, x []int) {
	d.known[i] = true
	d.queue = d.queue[:0]
	d.enqueue(i, -1)
	first := len(d.queue)
	done := 0
	for ; done < len(d.queue) && done < max(first, mostFollowing); done++ {
		at := d.queue[done]
		d.waiting[d.s.first[at.table][at.k]] = false
		if d.update(at, x) > d.s.follow {
			d.enqueue(d.s.e.Tables[at.table].Scope[at.k], at.table)
		}
	}
	for _, at := range d.queue[done:] {
		d.waiting[d.s.first[at.table][at.k]] = false
	}
}

// enqueue notes the messages that depend on those to an index from the tables but one, to indices that have no value.
func (d *Drawer) enqueue(i, but int) {
	for _, own := range d.s.over[i] {
		if own.table == but {
			continue
		}
		for k, j := range d.s.e.Tables[own.table].Scope {
			if at := d.s.first[own.table][k]; k != own.k && !d.known[j] && !d.waiting[at] {
				d.waiting[at] = true
				d.queue = append(d.queue, incidence{own.table, k})
			}
		}
	}
}

// update recomputes a message and returns its change.
func (d *Drawer) update(at incidence, x []int) (change float64) {
	t := &d.s.e.Tables[at.table]
	stride := d.s.stride[at.table]
	offset, entries := 0, 1
	d.open = d.open[:0]
	room := d.room
	for k, j := range t.Scope {
		switch {
		case k == at.k:
		case d.known[j]:
			offset += stride[k] * x[j]
		default:
			n := d.s.e.Dims[j]
			d.towards(j, at.table, room[:n])
			d.open = append(d.open, summed{room[:n], stride[k], 0})
			room = room[n:]
			entries *= n
		}
	}
	n, by := d.s.e.Dims[t.Scope[at.k]], stride[at.k]
	out := d.out[:n]
	clear(out)
	if len(d.open) == 1 { // most tables have two indices
		one := d.open[0]
		for b, w := range one.weights {
			for a, from := 0, offset+b*one.stride; a < n; a, from = a+1, from+by {
				out[a] += w * t.Data[from]
			}
		}
	} else {
		d.sum(out, t.Data, offset, by)
	}
	total := 0.0
	for _, v := range out {
		total += v
	}
	d.work += messageWork + entryWork*float64(entries*n*(1+len(d.open)))
	into := d.messages[d.s.first[at.table][at.k]:][:n]
	for a := range into {
		v := 1 / float64(n) // no value is possible, as far as messages say
		if total > 0 {
			v = out[a] / total
		}
		change = max(change, math.Abs(v-into[a]))
		into[a] = v
	}
	return change
}

// sum adds up the entries of a table over the indices in d.open, by value of the one that is left.
func (d *Drawer) sum(out, data []float64, offset, by int) {
	for {
		w, from := 1.0, offset
		for k := range d.open {
			w *= d.open[k].weights[d.open[k].a]
			from += d.open[k].stride * d.open[k].a
		}
		for a := range out {
			out[a] += w * data[from]
			from += by
		}
		k := len(d.open) - 1
		for ; k >= 0; k-- {
			o := &d.open[k]
			if o.a++; o.a < len(o.weights) {
				break
			}
			o.a = 0
		}
		if k < 0 {
			return
		}
	}
}

// towards is the product of the messages to an index from all tables but one, scaled.
func (d *Drawer) towards(i, but int, into []float64) {
	for v := range into {
		into[v] = 1
	}
	for n, own := range d.s.over[i] {
		if own.table != but {
			multiply(into, d.messages[d.s.first[own.table][own.k]:])
			d.work += factorWork * float64(len(into))
		}
		if n%8 == 7 {
			rescale(into)
		}
	}
	rescale(into)
}
