package beliefs

// Draws: from the messages as they were before the first value, or recomputed after each value.

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
)

// Drawer draws from a sampler, one state after the other. It is for one goroutine.
type Drawer struct {
	sampler       *Sampler
	floor         float64   // least probability of a value, relative to the largest, before the decided tables multiply it
	probabilities []float64 // scratch by value
	allowed       []float64 // scratch by value: the product of the decided tables
	work          float64   // flops of all draws so far

	// Used if messages are recomputed after each value that is drawn (followValue).
	messages     []float64     // as Sampler.messages, for the values of the present state
	isDrawn      []bool        // by index: it has a value in the present state
	pending      []incidence   // messages to be recomputed, each from a table to an index of it
	isPending    []bool        // by start of a message in messages: it is in pending
	sums         []float64     // scratch by value: a new message
	summed       []summedIndex // scratch
	weightBuffer []float64     // scratch for the weights of summed
}

// summedIndex is an index of a table that is summed out.
type summedIndex struct {
	weights []float64 // by value
	stride  int       // in the table
	value   int       // the present one in the sum
}

// NewDrawer returns a drawer. By the messages alone, it gives every value of an index at least lostMass/n of the probability of the
// likeliest value, for n indices: messages may wrongly exclude a value. Tables whose indices all have values then multiply the
// probabilities. A value that they exclude is drawn only if they exclude all values.
func (s *Sampler) NewDrawer(lostMass float64) *Drawer {
	values := slices.Max(append(slices.Clone(s.expression.Dims), 1))
	d := &Drawer{
		sampler: s, floor: lostMass / float64(max(1, len(s.conditionals))), probabilities: make([]float64, values),
		allowed: make([]float64, values),
	}
	if s.tolerance > 0 { // messages are recomputed after each value that is drawn: memory for that
		d.messages, d.isDrawn = make([]float64, len(s.messages)), make([]bool, len(s.expression.Dims))
		d.isPending, d.sums = make([]bool, len(s.messages)), make([]float64, values)
		d.summed, d.weightBuffer = make([]summedIndex, 0, s.maxArity), make([]float64, s.maxArity*values)
	}
	return d
}

// Draw draws a state x, a value per index, and returns ln of its density, nats. Cost: Flops.
func (d *Drawer) Draw(r *rand.Rand, x []int) float64 { return d.drawOrWeigh(r, x) }

// LnDensity returns ln of the density of a state, nats, −Inf if a table is 0 there. Cost: Flops.
func (d *Drawer) LnDensity(x []int) float64 { return d.drawOrWeigh(nil, x) }

// drawOrWeigh returns ln of the density of state x: the product of the conditional probabilities of its values. If r is not nil, it draws
// each value of x first.
func (d *Drawer) drawOrWeigh(r *rand.Rand, x []int) (ln float64) {
	copy(d.messages, d.sampler.messages)
	clear(d.isDrawn)
	product := 1.0 // of the probabilities that are not in ln yet
	for k := range d.sampler.conditionals {
		c := &d.sampler.conditionals[k]
		p, total := d.conditional(c, x)
		if r != nil {
			x[c.index] = drawValue(r, p, total, x[c.index]) // the old value stays if all probabilities are 0
		}

		// Take the logarithm of many factors at once, before their product leaves the range of float64.
		if product *= p[x[c.index]] / total; product < 1e-100 {
			ln += floats.Ln(product)
			product = 1
		}
		if d.sampler.tolerance > 0 { // 0: messages never change
			d.followValue(c.index, x)
		}
	}
	return ln + floats.Ln(product)
}

// drawValue draws a value by probabilities p with the given sum. It returns defaultValue if all are 0.
func drawValue(r *rand.Rand, p []float64, total float64, defaultValue int) (value int) {
	value = defaultValue
	remaining := r.Float64() * total
	for v, q := range p {
		if q > 0 {
			value = v
			if remaining -= q; remaining < 0 {
				break
			}
		}
	}
	return value
}

// Measured work in flops.
const (
	indexFlops   = 90 // of an index
	factorFlops  = 8  // of a factor of a conditional distribution, per value
	lookupFlops  = 8  // of an index that selects a row of a factor
	messageFlops = 60 // of a message
	entryFlops   = 6  // of an entry of its table, times the number of summed indices and 1
	logFlops     = 30 // chosen: ten nanoseconds
)

// conditional returns the probabilities p of the values of an index given the values x drawn so far, not normalised, and their sum. A table
// of the index is open if it also has an index that is drawn later, and decided otherwise. Messages have summed out the later indices of
// open tables. If no value is possible, all values have the same probability: the weight of the state is 0 then. p is valid until the next
// call.
func (d *Drawer) conditional(c *conditional, x []int) (p []float64, total float64) {
	n := len(c.fixedProduct)
	p = d.probabilities[:n]
	d.writeOpen(p, c, x)
	for v := range p { // messages may wrongly exclude a value
		p[v] = max(p[v], d.floor)
	}
	allowed := d.allowed[:n]
	d.writeDecided(allowed, c, x)
	multiply(p, allowed)

	for _, q := range p {
		total += q
	}
	if !(total > 0) { // no value is possible
		for v := range p {
			p[v] = 1
		}
		total = float64(n)
	}
	d.work += indexFlops + factorFlops*float64(n*(len(c.open)+len(c.decided)+len(c.following)+2))
	return p, total
}

// writeOpen writes to p, by value of c's index, the product of the index's open tables, divided by the largest. A table is open if some of
// its other indices are not drawn yet; they are summed out. What is left is a factor for each value of c's index, the message of the table
// to it.
//
// If messages do not change while values are drawn (tolerance 0), fixedProduct is the product of the open tables that depend on no value
// drawn, and c.open are all others, which depend on values of x. If they do change, every open table stands in the product with its message
// in d.messages, which followValue keeps up to date: c.following[k] is where the message of the k-th table begins. Then fixedProduct is 1
// for all values, and c.open is empty.
func (d *Drawer) writeOpen(p []float64, c *conditional, x []int) {
	copy(p, c.fixedProduct)
	for k := range c.open {
		c.open[k].multiply(p, x)
		if k%8 == 7 { // before the product leaves the range of float64
			rescale(p)
		}
		d.work += lookupFlops * float64(len(c.open[k].scope))
	}
	for k, start := range c.following {
		multiply(p, d.messages[start:])
		if k%8 == 7 { // as above
			rescale(p)
		}
	}
	rescale(p)
}

// writeDecided writes to p, by value of c's index, the product of the index's decided tables, divided by the largest product. A table is
// decided if all its other indices are drawn; x has their values.
func (d *Drawer) writeDecided(p []float64, c *conditional, x []int) {
	for k := range c.decided {
		d.work += lookupFlops * float64(len(c.decided[k].scope))
	}
	if c.mayUnderflow {
		d.writeAllowed(p, c, x)
		return
	}
	for v := range p {
		p[v] = 1
	}
	for k := range c.decided {
		c.decided[k].multiply(p, x)
		rescale(p)
	}
}

// rowStart returns the number of the entry for value 0 of the table's own index and the values x of the others. Entries for its further
// values follow, ownStride apart.
func (t *slicedTable) rowStart(x []int) (start int) {
	for k, j := range t.scope {
		start += t.strides[k] * x[j]
	}
	return start
}

// multiply multiplies p[v] by the entry for value v of the table's own index and the values x of the others.
func (t *slicedTable) multiply(p []float64, x []int) {
	entry := t.rowStart(x)
	for v := range p {
		p[v] *= t.data[entry]
		entry += t.ownStride
	}
}

// leastAllowed is the minimum weight of a value that decided tables of a large range allow, relative to the largest: float64 holds it times
// the floor and the product of densities before it.
const leastAllowed = 1e-180

// writeAllowed writes to p, by value of c's index, the product of the tables all of whose other indices are drawn (c.decided) over the
// largest product. x has the values drawn so far. It adds logarithms, since a product may leave the range of float64 on the way. A value
// that no table excludes has at least leastAllowed.
func (d *Drawer) writeAllowed(p []float64, c *conditional, x []int) {
	clear(p)
	for k := range c.decided {
		t := &c.decided[k]
		entry := t.rowStart(x)
		for v := range p {
			p[v] += floats.Ln(t.data[entry])
			entry += t.ownStride
		}
	}
	top := slices.Max(p)
	for v, ln := range p {
		if p[v] = 0; !math.IsInf(ln, -1) {
			p[v] = max(math.Exp(ln-top), leastAllowed)
		}
	}
	d.work += logFlops * float64(len(p)*(1+len(c.decided)))
}

// multiply multiplies p[v] by q[v] for every entry of p.
func multiply(p, q []float64) {
	q = q[:len(p)]
	for v := range p {
		p[v] *= q[v]
	}
}

// rescale divides p by its largest entry unless that is 0.
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

// maxFollowing limits the messages that are recomputed after one value. Measured on 24 families, colourings most: see the decision on
// families.
const maxFollowing = 200

// followValue updates the messages after index i has been drawn: first the messages from its tables, then, breadth first, all messages that
// depend on one that has changed by more than the tolerance. It recomputes at most maxFollowing, but always those of its tables. A pending
// message is from a table to the k-th index of its scope, and begins at messageStarts[table][k].
func (d *Drawer) followValue(i int, x []int) {
	s := d.sampler
	d.isDrawn[i] = true
	d.pending = d.pending[:0]
	const noTable = -1
	d.enqueueMessages(i, noTable)
	limit := max(len(d.pending), maxFollowing)
	updated := 0                                                   // number of messages
	for ; updated < len(d.pending) && updated < limit; updated++ { // pending grows
		inc := d.pending[updated]
		d.isPending[s.messageStarts[inc.table][inc.k]] = false
		if d.updateMessage(inc, x) > s.tolerance {
			d.enqueueMessages(s.expression.Tables[inc.table].Scope[inc.k], inc.table)
		}
	}
	for _, inc := range d.pending[updated:] {
		d.isPending[s.messageStarts[inc.table][inc.k]] = false
	}
}

// enqueueMessages adds to d.pending the messages that depend on index i: from each of its tables to each of the table's other indices that
// is not drawn, unless the message is pending already. It leaves out the table source, whose message to i has caused this. An incidence is
// a table and the position k of an index in its scope; as a message it is that of the table to the index.
func (d *Drawer) enqueueMessages(i, source int) {
	for _, inc := range d.sampler.incidences[i] {
		if inc.table == source {
			continue
		}
		for k, j := range d.sampler.expression.Tables[inc.table].Scope {
			if start := d.sampler.messageStarts[inc.table][k]; k != inc.k && !d.isDrawn[j] && !d.isPending[start] {
				d.isPending[start] = true
				d.pending = append(d.pending, incidence{inc.table, k})
			}
		}
	}
}

// updateMessage recomputes the message of table inc.table to index inc.k of its scope, and returns the largest change of an entry. The
// table's other indices have their values in x if they are drawn. All others are summed out, weighted with their messages to the table.
func (d *Drawer) updateMessage(inc incidence, x []int) (change float64) {
	// Add up the entries of the table by value of the index.
	t := &d.sampler.expression.Tables[inc.table]
	offset, combinations := d.collectSummed(inc, x)
	n, ownStride := d.sampler.expression.Dims[t.Scope[inc.k]], d.sampler.strides[inc.table][inc.k]
	sums := d.sums[:n]
	clear(sums)
	if len(d.summed) == 1 { // most tables have two indices
		summed := d.summed[0]
		for b, w := range summed.weights {
			for a, entry := 0, offset+b*summed.stride; a < n; a, entry = a+1, entry+ownStride {
				sums[a] += w * t.Data[entry]
			}
		}
	} else {
		d.sumOut(sums, t.Data, offset, ownStride)
	}
	total := 0.0
	for _, v := range sums {
		total += v
	}
	d.work += messageFlops + entryFlops*float64(combinations*n*(1+len(d.summed)))

	// Replace the message by the normalised sums.
	message := d.messages[d.sampler.messageStarts[inc.table][inc.k]:][:n]
	for a := range message {
		v := 1 / float64(n) // if the messages leave no value possible
		if total > 0 {
			v = sums[a] / total
		}
		change = max(change, math.Abs(v-message[a]))
		message[a] = v
	}
	return change
}

// collectSummed prepares the message of a table to index inc.k of its scope. It sets d.summed to the indices that the message sums out,
// with their weights: all other indices of the table that are not drawn. offset is the table's entry at the drawn values, which x has, and
// 0 for all other indices. combinations is the number of combinations of values of the summed indices.
func (d *Drawer) collectSummed(inc incidence, x []int) (offset, combinations int) {
	strides := d.sampler.strides[inc.table]
	combinations = 1
	d.summed = d.summed[:0]
	buffer := d.weightBuffer
	for k, j := range d.sampler.expression.Tables[inc.table].Scope {
		switch {
		case k == inc.k: // the index that the message is to
		case d.isDrawn[j]:
			offset += strides[k] * x[j]
		default:
			n := d.sampler.expression.Dims[j]
			d.writeProductTo(j, inc.table, buffer[:n])
			d.summed = append(d.summed, summedIndex{weights: buffer[:n], stride: strides[k]})
			buffer = buffer[n:]
			combinations *= n
		}
	}
	return offset, combinations
}

// sumOut adds to sums[a] the entries of a table for value a of the index that remains, over all values of the indices in d.summed, with
// their weights. The entries of the remaining index are ownStride apart; the first, with all summed indices at 0, is data[offset].
func (d *Drawer) sumOut(sums, data []float64, offset, ownStride int) {
	for {
		w, entry := 1.0, offset
		for k := range d.summed {
			w *= d.summed[k].weights[d.summed[k].value]
			entry += d.summed[k].stride * d.summed[k].value
		}
		for a := range sums {
			sums[a] += w * data[entry]
			entry += ownStride
		}
		// Go on to the next combination of values, the last index fastest.
		k := len(d.summed) - 1
		for ; k >= 0; k-- {
			index := &d.summed[k]
			if index.value++; index.value < len(index.weights) {
				break
			}
			index.value = 0
		}
		if k < 0 {
			return
		}
	}
}

// writeProductTo writes to product[v], for each value v of index i, the product of the messages to i from all tables other than except. It
// divides by the largest, so that the largest entry is 1.
func (d *Drawer) writeProductTo(i, except int, product []float64) {
	for v := range product {
		product[v] = 1
	}
	for n, inc := range d.sampler.incidences[i] {
		if inc.table != except {
			multiply(product, d.messages[d.sampler.messageStarts[inc.table][inc.k]:])
			d.work += factorFlops * float64(len(product))
		}
		if n%8 == 7 { // before the product leaves the range of float64
			rescale(product)
		}
	}
	rescale(product)
}
