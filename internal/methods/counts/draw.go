package counts

// Draws: the count of all legs, split on the way down to every piece, then values within the pieces.

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Finds reports whether Draw (AskSamples) or Best (AskMPE) serves the network: no number below 0 and every link a variable's; with
// one count, for maxima, pieces with one leg that counts and no index but the variables', with several counts pieces without tables
// whose sweep fits the memory.
func (f *Form) Finds(ask btn.Ask) bool {
	if f.signed || ask != btn.AskSamples && ask != btn.AskMPE {
		return false
	}
	variable := f.variable
	for k, v := range variable {
		if _, ok := f.net.Links[k].T.(*tensor.CP); v < 0 || !ok {
			return false
		}
	}
	if f.vars > 1 {
		bytes, _, ok := f.sweeps()
		return ok && bytes <= float64(f.memory)
	}
	if ask == btn.AskSamples {
		return true
	}
	for k := range f.kinds {
		if !f.single(&f.kinds[k]) {
			return false
		}
	}
	return true
}

// errFinds refuses a request that Finds denies.
func (f *Form) errFinds(ask btn.Ask) error {
	if f.Finds(ask) {
		return nil
	}
	return fault.New(fault.Unsupported, "counts: assignments (%s) are found for numbers of at least 0, with several counts for variables "+
		"without tables", ask)
}

// drawer draws assignments from a form.
type drawer struct {
	*evaluation
	look     *pace.Pace
	members  [][]int32                 // by kind: its pieces
	powers   []map[int]countspace.Poly // by kind: those that were needed
	variable []int                     // by link
	room     []scaled.Number
	places   []int
}

// Draw returns Z, without the network's scale, and draws n assignments with the probabilities of the network: the values
// of all variables one assignment after the other, nil where Z is 0. Draw k has the stream that it is given, so that draws do not
// depend on their number.
//
// A draw takes O(n_legs log n_legs) multiply-adds beside Z's, about 100 ns each. Errors: fault.Unsupported where Finds
// says no; Value's.
func (f *Form) Draw(ctx context.Context, n int, stream func(k int) *rand.Rand) (a Answer, values []int, err error) {
	if err := f.errFinds(btn.AskSamples); err != nil {
		return a, nil, err
	}
	if f.vars > 1 {
		return f.sweepDraw(ctx, n, stream)
	}
	if err := f.fits(false); err != nil {
		return a, nil, err
	}
	d := &drawer{
		evaluation: &evaluation{Form: f, ctx: ctx, ops: newOps(ctx)},
		look:       pace.New(ctx),
		members:    make([][]int32, len(f.kinds)),
		powers:     make([]map[int]countspace.Poly, len(f.kinds)),
		variable:   f.variable,
	}
	if err := f.fill(ctx, d.ops); err != nil {
		return a, nil, err
	}
	for t, k := range f.of {
		d.members[k] = append(d.members[k], int32(t))
	}

	l := newLine(ctx, f.polys, f.powers(), d.ops)
	z, s, err := d.total(l)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil || z.IsZero() || f.scale.IsZero() {
		return a, nil, err
	}
	rngs := make([]*rand.Rand, n)
	count := make([]int32, n*len(f.piece)) // by draw and piece
	for i := range rngs {
		rngs[i] = stream(i)
		own := count[i*len(f.piece):][:len(f.piece)]
		if err := d.split(l.root, d.root(l, s, rngs[i]), own, rngs[i]); err != nil {
			return a, nil, err
		}
	}

	if err := ctx.Err(); err != nil {
		return a, nil, err
	}
	values = make([]int, n*len(f.net.Variables))
	for k := range f.kinds {
		if err := d.within(k, count, rngs, values); err != nil {
			return a, nil, err
		}
	}
	return Answer{Z: z.Mul(f.scale), MulAdds: d.ops.MulAdds}, values, ctx.Err()
}

// total fills the products of a line, in windows where the whole takes long, and returns Z and S in the root's windows.
func (d *drawer) total(l *line) (scaled.Number, []window, error) {
	s := d.space()
	if !l.root.isLarge() || l.root.cost() <= policy.WindowFrom {
		if err := l.forth(l.root); err != nil {
			return scaled.Number{}, nil, err
		}
		all := []window{{p: s}}
		return l.dot(all, l.root.parts), all, nil
	}
	w, err := l.narrow(s)
	if err != nil {
		return scaled.Number{}, nil, err
	}
	z, _, err := w.forth(firstWindow)
	return z, cut(w.s, l.root.bounds.wanted), err
}

// begin empties the list of weights that pick chooses from.
func (d *drawer) begin() { d.room, d.places = d.room[:0], d.places[:0] }

// add puts a weight on a place.
func (d *drawer) add(place int, w scaled.Number) {
	if !w.IsZero() {
		d.room, d.places = append(d.room, w), append(d.places, place)
	}
}

// pick returns one of the places, each with the probability of its weight; 0 where there is none, as once the context has ended.
func (d *drawer) pick(rng *rand.Rand) int {
	switch len(d.places) {
	case 0:
		return 0
	case 1:
		return d.places[0]
	}
	top := int64(math.MinInt64)
	for _, w := range d.room {
		top = max(top, w.Exp)
	}
	share := func(w scaled.Number) float64 { return math.Ldexp(w.Mant, int(max(w.Exp-top, -2000))) }
	sum := 0.0
	for _, w := range d.room {
		sum += share(w)
	}
	u := rng.Float64() * sum
	for i, w := range d.room {
		if u -= share(w); u < 0 {
			return d.places[i]
		}
	}
	return d.places[len(d.places)-1]
}

// pairs adds the ways to split a count: k to the left and the rest to the right.
func (d *drawer) pairs(left, right []window, c int) {
	for _, x := range left {
		for _, y := range right {
			for k := max(x.at, c-y.end()+1); k < min(x.end(), c-y.at+1); k++ {
				d.add(k, x.p.Coef.At(k-x.at).Mul(y.p.Coef.At(c-k-y.at)))
			}
		}
	}
}

// root draws the count of all legs together.
func (d *drawer) root(l *line, s []window, rng *rand.Rand) int {
	d.begin()
	for _, x := range s {
		for _, y := range l.root.parts {
			for k := max(x.at, y.at); k < min(x.end(), y.end()); k++ {
				d.add(k, x.p.Coef.At(k-x.at).Mul(y.p.Coef.At(k-y.at)))
			}
		}
	}
	return d.pick(rng)
}

// split draws the counts of all pieces below a node that has c.
func (d *drawer) split(n *node, c int, count []int32, rng *rand.Rand) error {
	if n.left == nil {
		return d.among(n.leaf, d.members[n.leaf], c, count, rng)
	}
	if d.look.Over(int64(min(n.left.degree, n.right.degree)) + 1) {
		return d.look.Err()
	}
	d.begin()
	d.pairs(n.left.parts, n.right.parts, c)
	k := d.pick(rng)
	if err := d.split(n.left, k, count, rng); err != nil {
		return err
	}
	return d.split(n.right, c-k, count, rng)
}

// among draws the counts of equal pieces that have c together: which of them count, where each counts once at most, else by
// halves.
func (d *drawer) among(kind int, list []int32, c int, count []int32, rng *rand.Rand) error {
	if d.look.Over(int64(len(list))) {
		return d.look.Err()
	}
	p := d.polys[kind]
	switch {
	case len(list) == 1:
		count[list[0]] = int32(c)
		return nil
	case p.Size() <= 2:
		for i, t := range list {
			if c > 0 && rng.IntN(len(list)-i) < c {
				count[t] = 1
				c--
			}
		}
		return nil
	}
	half := len(list) / 2
	left, right := d.power(kind, half), d.power(kind, len(list)-half)
	d.begin()
	d.pairs([]window{{p: left}}, []window{{p: right}}, c)
	k := d.pick(rng)
	if err := d.among(kind, list[:half], k, count, rng); err != nil {
		return err
	}
	return d.among(kind, list[half:], c-k, count, rng)
}

// power returns a power of a kind's polynomial.
func (d *drawer) power(kind, m int) countspace.Poly {
	if d.powers[kind] == nil {
		d.powers[kind] = map[int]countspace.Poly{}
	}
	p, ok := d.powers[kind][m]
	if !ok {
		p = countspace.Power(d.polys[kind], m, d.ops)
		d.powers[kind][m] = p
	}
	return p
}

// within draws the values of the variables of all pieces of a kind, given their counts, for every draw.
func (d *drawer) within(k int, count []int32, rngs []*rand.Rand, values []int) error {
	in, err := d.newInside(k)
	if err != nil {
		return err
	}
	width := len(d.net.Variables)
	for i, rng := range rngs {
		for _, t := range d.members[k] {
			if d.look.Over(in.work) {
				return d.look.Err()
			}
			in.draw(int(count[i*len(d.piece)+int(t)]), rng)
			for at, link := range d.piece[t].links {
				values[i*width+d.variable[link]] = in.terms[at]
			}
		}
	}
	return nil
}

// inside draws the terms of the links of a piece from its count.
type inside struct {
	*drawer
	terms []int // by link, of the last draw
	work  int64 // of a draw, about

	plain [][]scaled.Number // of a piece without tables, by count: the weights of its terms
	run   *run              // of a piece with tables: filled
	value []int             // by index
}

// newInside prepares the draws of a kind.
func (d *drawer) newInside(k int) (*inside, error) {
	kind := &d.kinds[k]
	in := &inside{drawer: d, terms: make([]int, len(kind.links)), work: 1}
	if kind.wired == nil {
		link := kind.links[0]
		weights := d.net.Links[link].T.(*tensor.CP).Weights
		in.plain = make([][]scaled.Number, d.polys[k].Size())
		for c := range in.plain {
			in.plain[c] = make([]scaled.Number, len(weights))
		}
		for x, w := range weights {
			p := d.term(link, x, d.ops)
			for c := range min(p.Size(), len(in.plain)) {
				in.plain[c][x] = scaled.FromFloat(w).Mul(p.Coef.At(c))
			}
		}
		return in, nil
	}
	in.run = &run{layout: d.layout, net: kind.wired, ctx: d.ctx, ops: d.ops}
	in.value = make([]int, len(in.run.e.Dims))
	in.work = int64(16 * len(in.run.steps))
	_, err := in.run.up()
	return in, err
}

// draw fills terms.
func (in *inside) draw(c int, rng *rand.Rand) {
	if in.run == nil {
		in.begin()
		for x, w := range in.plain[c] {
			in.add(x, w)
		}
		in.terms[0] = in.pick(rng)
		return
	}
	in.down(len(in.run.steps)-1, c, rng)
	for i, index := range in.run.index {
		in.terms[i] = in.run.termOf(i, in.value[index])
	}
}

// entry returns the entry of a step's table at the present values of its indices.
func (in *inside) entry(step int) countspace.Poly {
	at := 0
	for _, i := range in.run.steps[step].scope {
		at = at*in.run.e.Dims[i] + in.value[i]
	}
	return in.run.tables[step][at]
}

// down draws the values of the indices that were summed out on the way to an entry of a step that has count c.
func (in *inside) down(step, c int, rng *rand.Rand) {
	switch s := &in.run.steps[step]; s.op {
	case opSum:
		in.begin()
		for x := range in.run.e.Dims[s.index] {
			in.value[s.index] = x
			if p := in.entry(s.a); c < p.Size() {
				in.add(x, p.Coef.At(c))
			}
		}
		in.value[s.index] = in.pick(rng)
		in.down(s.a, c, rng)
	case opProduct:
		in.begin()
		in.pairs([]window{{p: in.entry(s.a)}}, []window{{p: in.entry(s.b)}}, c)
		k := in.pick(rng)
		in.down(s.a, k, rng)
		in.down(s.b, c-k, rng)
	}
}
