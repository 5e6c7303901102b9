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

// Finds reports whether Draw (AskSamples) or Best (AskMPE) serves the network: no number is below 0, and every link is that of a variable.
// With several count variables the pieces need to be without tables, and their sweep has to fit the memory. With one, Best needs pieces
// with at most one leg that counts and no index but the variables'.
func (f *Form) Finds(ask btn.Ask) bool {
	if f.isSigned || ask != btn.AskSamples && ask != btn.AskMPE {
		return false
	}
	variable := f.variableOf
	for k, v := range variable {
		if _, ok := f.net.Links[k].T.(*tensor.CP); v < 0 || !ok {
			return false
		}
	}
	if f.countVariables > 1 {
		bytes, _, ok := f.sweepCost()
		return ok && bytes <= float64(f.memory)
	}
	if ask == btn.AskSamples {
		return true
	}
	for k := range f.kinds {
		if !f.countsOnce(&f.kinds[k]) {
			return false
		}
	}
	return true
}

// checkFinds returns an error if Finds returns false.
func (f *Form) checkFinds(ask btn.Ask) error {
	if f.Finds(ask) {
		return nil
	}
	return fault.New(fault.Unsupported, "counts: assignments (%s) are found for numbers of at least 0, with several counts for variables "+
		"without tables", ask)
}

// drawState draws assignments from a form.
type drawState struct {
	*evaluation
	pace     *pace.Pace
	members  [][]int32                 // by kind: its pieces
	powers   []map[int]countspace.Poly // by kind: those that were needed
	variable []int                     // by link

	weights []scaled.Number // of the places that drawPlace chooses from
	places  []int
}

// Draw returns Z, without the network's scale, and draws n assignments with the probabilities of the network: the values
// of all variables one assignment after the other, nil where Z is 0. Draw k has the stream that it is given, so that draws do not
// depend on their number.
//
// A draw takes O(n_legs log n_legs) multiply-adds beside Z's, about 100 ns each. Errors: fault.Unsupported where Finds
// says no; Value's.
func (f *Form) Draw(ctx context.Context, n int, stream func(k int) *rand.Rand) (a Answer, values []int, err error) {
	if err := f.checkFinds(btn.AskSamples); err != nil {
		return a, nil, err
	}
	if f.countVariables > 1 {
		return f.sweepDraw(ctx, n, stream)
	}
	if err := f.checkMemory(false); err != nil {
		return a, nil, err
	}
	d := &drawState{
		evaluation: &evaluation{Form: f, ctx: ctx, ops: newOps(ctx)},
		pace:       pace.New(ctx),
		members:    make([][]int32, len(f.kinds)),
		powers:     make([]map[int]countspace.Poly, len(f.kinds)),
		variable:   f.variableOf,
	}
	if err := f.computePolys(ctx, d.ops); err != nil {
		return a, nil, err
	}
	for t, k := range f.kindOf {
		d.members[k] = append(d.members[k], int32(t))
	}

	tree := newLine(ctx, f.polys, f.powers(), d.ops)
	z, spaceWindows, err := d.fillProducts(tree)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil || z.IsZero() || f.scale.IsZero() {
		return a, nil, err
	}
	rngs := make([]*rand.Rand, n)
	count := make([]int32, n*len(f.pieces)) // by draw and piece
	for i := range rngs {
		rngs[i] = stream(i)
		own := count[i*len(f.pieces):][:len(f.pieces)]
		if err := d.splitCount(tree.root, d.drawTotalCount(tree, spaceWindows, rngs[i]), own, rngs[i]); err != nil {
			return a, nil, err
		}
	}

	if err := ctx.Err(); err != nil {
		return a, nil, err
	}
	values = make([]int, n*len(f.net.Variables))
	for k := range f.kinds {
		if err := d.drawWithinPieces(k, count, rngs, values); err != nil {
			return a, nil, err
		}
	}
	return Answer{Z: z.Mul(f.scale), MulAdds: d.ops.MulAdds}, values, ctx.Err()
}

// fillProducts computes the products of a line, in windows if the whole takes long. It returns Z, and S in the windows of the root.
func (d *drawState) fillProducts(l *line) (scaled.Number, []window, error) {
	s := d.spacePoly()
	if !l.root.isLarge() || l.root.cost() <= policy.WindowFrom {
		if err := l.multiplyUp(l.root); err != nil {
			return scaled.Number{}, nil, err
		}
		all := []window{{p: s}}
		return l.dot(all, l.root.windows), all, nil
	}
	w, err := l.newWindowedLine(s)
	if err != nil {
		return scaled.Number{}, nil, err
	}
	z, _, err := w.sumWithin(firstWindow)
	return z, cutWindows(w.s, l.root.bounds.wanted), err
}

// clearWeights empties the list that drawPlace chooses from.
func (d *drawState) clearWeights() { d.weights, d.places = d.weights[:0], d.places[:0] }

// addWeight adds a place with its weight to that list, unless the weight is 0.
func (d *drawState) addWeight(place int, w scaled.Number) {
	if !w.IsZero() {
		d.weights, d.places = append(d.weights, w), append(d.places, place)
	}
}

// drawPlace draws one of the places with a probability proportional to its weight. It returns 0 if there is none, as after the context
// ended.
func (d *drawState) drawPlace(rng *rand.Rand) int {
	switch len(d.places) {
	case 0:
		return 0
	case 1:
		return d.places[0]
	}
	top := int64(math.MinInt64)
	for _, w := range d.weights {
		top = max(top, w.Exp)
	}
	share := func(w scaled.Number) float64 { return math.Ldexp(w.Mant, int(max(w.Exp-top, -2000))) }
	sum := 0.0
	for _, w := range d.weights {
		sum += share(w)
	}
	u := rng.Float64() * sum
	for i, w := range d.weights {
		if u -= share(w); u < 0 {
			return d.places[i]
		}
	}
	return d.places[len(d.places)-1]
}

// addSplits adds a place for each way to split count c between two factors: k to the left one and c−k to the right one.
func (d *drawState) addSplits(left, right []window, c int) {
	for _, x := range left {
		for _, y := range right {
			for k := max(x.first, c-y.end()+1); k < min(x.end(), c-y.first+1); k++ {
				d.addWeight(k, x.p.Coef.At(k-x.first).Mul(y.p.Coef.At(c-k-y.first)))
			}
		}
	}
}

// drawTotalCount draws the count of all legs together. s is S in the windows of the root.
func (d *drawState) drawTotalCount(l *line, s []window, rng *rand.Rand) int {
	d.clearWeights()
	for _, x := range s {
		for _, y := range l.root.windows {
			for k := max(x.first, y.first); k < min(x.end(), y.end()); k++ {
				d.addWeight(k, x.p.Coef.At(k-x.first).Mul(y.p.Coef.At(k-y.first)))
			}
		}
	}
	return d.drawPlace(rng)
}

// splitCount draws the counts of all pieces below a node whose count is c.
func (d *drawState) splitCount(n *node, c int, count []int32, rng *rand.Rand) error {
	if n.left == nil {
		return d.splitAmongEqual(n.leaf, d.members[n.leaf], c, count, rng)
	}
	if d.pace.Over(int64(min(n.left.degree, n.right.degree)) + 1) {
		return d.pace.Err()
	}
	d.clearWeights()
	d.addSplits(n.left.windows, n.right.windows, c)
	k := d.drawPlace(rng)
	if err := d.splitCount(n.left, k, count, rng); err != nil {
		return err
	}
	return d.splitCount(n.right, c-k, count, rng)
}

// splitAmongEqual draws the counts of equal pieces whose counts add up to c. If each counts at most once it draws which of them count,
// otherwise it splits c between halves of the list.
func (d *drawState) splitAmongEqual(kind int, list []int32, c int, count []int32, rng *rand.Rand) error {
	if d.pace.Over(int64(len(list))) {
		return d.pace.Err()
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
	d.clearWeights()
	d.addSplits([]window{{p: left}}, []window{{p: right}}, c)
	k := d.drawPlace(rng)
	if err := d.splitAmongEqual(kind, list[:half], k, count, rng); err != nil {
		return err
	}
	return d.splitAmongEqual(kind, list[half:], c-k, count, rng)
}

// power returns the polynomial of a kind to the power m.
func (d *drawState) power(kind, m int) countspace.Poly {
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

// drawWithinPieces draws, for every draw, the values of the variables of all pieces of kind k, given the pieces' counts.
func (d *drawState) drawWithinPieces(k int, count []int32, rngs []*rand.Rand, values []int) error {
	in, err := d.newInside(k)
	if err != nil {
		return err
	}
	width := len(d.net.Variables)
	for i, rng := range rngs {
		for _, t := range d.members[k] {
			if d.pace.Over(in.work) {
				return d.pace.Err()
			}
			in.drawTerms(int(count[i*len(d.pieces)+int(t)]), rng)
			for at, link := range d.pieces[t].links {
				values[i*width+d.variable[link]] = in.terms[at]
			}
		}
	}
	return nil
}

// pieceDraw draws the terms of the links of a piece, given its count.
type pieceDraw struct {
	*drawState
	terms []int // by link, of the last draw
	work  int64 // of a draw, roughly

	termWeights [][]scaled.Number // of a piece without tables: by count and term
	run         *tableRun         // of a piece with tables: filled
	value       []int             // by index
}

// newInside prepares the draws of a kind.
func (d *drawState) newInside(k int) (*pieceDraw, error) {
	kind := &d.kinds[k]
	in := &pieceDraw{drawState: d, terms: make([]int, len(kind.links)), work: 1}
	if kind.tables == nil {
		link := kind.links[0]
		weights := d.net.Links[link].T.(*tensor.CP).Weights
		in.termWeights = make([][]scaled.Number, d.polys[k].Size())
		for c := range in.termWeights {
			in.termWeights[c] = make([]scaled.Number, len(weights))
		}
		for x, w := range weights {
			p := d.termPoly(link, x, d.ops)
			for c := range min(p.Size(), len(in.termWeights)) {
				in.termWeights[c][x] = scaled.FromFloat(w).Mul(p.Coef.At(c))
			}
		}
		return in, nil
	}
	in.run = &tableRun{layout: d.layout, netPlan: kind.tables, ctx: d.ctx, ops: d.ops}
	in.value = make([]int, len(in.run.expression.Dims))
	in.work = int64(16 * len(in.run.steps))
	_, err := in.run.fillTables()
	return in, err
}

// drawTerms draws terms for count c.
func (in *pieceDraw) drawTerms(c int, rng *rand.Rand) {
	if in.run == nil {
		in.clearWeights()
		for x, w := range in.termWeights[c] {
			in.addWeight(x, w)
		}
		in.terms[0] = in.drawPlace(rng)
		return
	}
	in.drawIndices(len(in.run.steps)-1, c, rng)
	for i, index := range in.run.index {
		in.terms[i] = in.run.termOf(i, in.value[index])
	}
}

// entry returns the entry of a step's table at the present values of its indices.
func (in *pieceDraw) entry(step int) countspace.Poly {
	place := 0
	for _, i := range in.run.steps[step].scope {
		place = place*in.run.expression.Dims[i] + in.value[i]
	}
	return in.run.tables[step][place]
}

// drawIndices draws the values of the indices that were summed out below a step, for an entry of the step with count c.
func (in *pieceDraw) drawIndices(step, c int, rng *rand.Rand) {
	switch s := &in.run.steps[step]; s.op {
	case opSum:
		in.clearWeights()
		for x := range in.run.expression.Dims[s.index] {
			in.value[s.index] = x
			if p := in.entry(s.first); c < p.Size() {
				in.addWeight(x, p.Coef.At(c))
			}
		}
		in.value[s.index] = in.drawPlace(rng)
		in.drawIndices(s.first, c, rng)
	case opProduct:
		in.clearWeights()
		in.addSplits([]window{{p: in.entry(s.first)}}, []window{{p: in.entry(s.second)}}, c)
		k := in.drawPlace(rng)
		in.drawIndices(s.first, k, rng)
		in.drawIndices(s.second, c-k, rng)
	}
}
