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

// CanFind reports whether Draw (AskSamples) or MostProbable (AskMPE) can answer ask for the network. No number may be below 0, and every
// link has to be that of a variable. With several count variables (several symmetric cores, or several levels that count) the pieces must
// have no tables, and a sweep over the network's variables has to fit the memory. With one, MostProbable also needs pieces with at most one
// leg that counts and no index but the variables'.
func (f *Form) CanFind(ask btn.Ask) bool {
	isKnown := ask == btn.AskSamples || ask == btn.AskMPE
	if f.isSigned || !isKnown {
		return false
	}
	for k, v := range f.variableOf {
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

// checkFinds returns an error if CanFind returns false.
func (f *Form) checkFinds(ask btn.Ask) error {
	if f.CanFind(ask) {
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
	powers   []map[int]countspace.Poly // by kind and power: those powers of its polynomial that were needed
	variable []int                     // by link: its variable

	// drawOutcome chooses one of the outcomes, numbers with weights.
	weights  []scaled.Number
	outcomes []int
}

// Draw returns Z, without the network's scale, and draws n assignments with the probabilities of the network: the values of all variables,
// one assignment after the other. values is nil if Z is 0. Draw k takes its random numbers from stream(k), so that it does not depend on n.
//
// A draw takes O(n_legs log n_legs) multiply-adds beside those of Z, about 100 ns each. Errors: fault.Unsupported if CanFind returns false;
// those of Value.
func (f *Form) Draw(ctx context.Context, n int, stream func(k int) *rand.Rand) (a Answer, values []int, err error) {
	if err := f.checkFinds(btn.AskSamples); err != nil {
		return a, nil, err
	}
	if f.countVariables > 1 {
		return f.sweepDraw(ctx, n, stream)
	}
	const hasMarginals = false
	if err := f.checkMemory(hasMarginals); err != nil {
		return a, nil, err
	}
	d, err := f.newDrawState(ctx)
	if err != nil {
		return a, nil, err
	}

	// Z, from a tree of products.
	tree := newLine(ctx, f.polys, f.powers(), d.ops)
	z, spaceWindows, err := d.fillProducts(tree)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil || z.IsZero() || f.scale.IsZero() {
		return a, nil, err
	}

	// For each draw the counts of the pieces, and then the values within the pieces, given their counts.
	rngs := make([]*rand.Rand, n)
	for i := range rngs {
		rngs[i] = stream(i)
	}
	counts, err := d.drawCounts(tree, spaceWindows, rngs)
	if err != nil {
		return a, nil, err
	}
	values = make([]int, n*len(f.net.Variables))
	for k := range f.kinds {
		if err := d.drawWithinPieces(k, counts, rngs, values); err != nil {
			return a, nil, err
		}
	}
	return Answer{Z: z.Mul(f.scale), MulAdds: d.ops.MulAdds}, values, ctx.Err()
}

// newDrawState prepares draws from a form: it computes the polynomials of the pieces and lists the pieces of each kind, a class of equal
// pieces with one polynomial.
func (f *Form) newDrawState(ctx context.Context) (*drawState, error) {
	d := &drawState{
		evaluation: &evaluation{Form: f, ctx: ctx, ops: newOps(ctx)},
		pace:       pace.New(ctx),
		members:    make([][]int32, len(f.kinds)),
		powers:     make([]map[int]countspace.Poly, len(f.kinds)),
		variable:   f.variableOf,
	}
	if err := f.computePolys(ctx, d.ops); err != nil {
		return nil, err
	}
	for t, k := range f.kindOf { // piece t is of kind k
		d.members[k] = append(d.members[k], int32(t))
	}
	return d, nil
}

// drawCounts returns the counts of the pieces, by draw and piece. The count of a piece is the number of its legs into the symmetric core
// whose values count (level 1). For each draw, which has the stream rngs[draw], it draws the count of all legs together and splits it down
// the tree to the pieces. spaceWindows is S, the polynomial whose coefficient c is the core's entry at count c. It has only the ranges of
// counts (windows) that matter at the root of the tree, the product of all pieces' polynomials.
func (d *drawState) drawCounts(tree *line, spaceWindows []window, rngs []*rand.Rand) ([]int32, error) {
	counts := make([]int32, len(rngs)*len(d.pieces))
	for i, rng := range rngs {
		countsOfDraw := counts[i*len(d.pieces):][:len(d.pieces)]
		totalCount := d.drawTotalCount(tree, spaceWindows, rng)
		if err := d.splitCount(tree.root, totalCount, countsOfDraw, rng); err != nil {
			return nil, err
		}
	}
	return counts, d.ctx.Err()
}

// fillProducts computes the products of a line, which is a product of polynomials in one variable as a tree. If all coefficients of a large
// product take long, it computes only windows, ranges of coefficients that matter for Z. It returns Z, and S, the polynomial whose
// coefficient c is the entry of the symmetric core at count c, in the windows of the root.
func (d *drawState) fillProducts(l *line) (scaled.Number, []window, error) {
	s := d.spacePoly()
	if !l.root.isLarge() || l.root.cost() <= policy.WindowFrom {
		if err := l.multiplyUp(l.root); err != nil {
			return scaled.Number{}, nil, err
		}
		whole := []window{{p: s}}
		return l.dot(whole, l.root.windows), whole, nil
	}
	w, err := l.newWindowedLine(s)
	if err != nil {
		return scaled.Number{}, nil, err
	}
	z, _, err := w.sumWithin(firstWindow) // the bound of the dropped terms is not needed: no draw sees them
	return z, cutWindows(w.s, l.root.bounds.wanted), err
}

// clearWeights empties the list of outcomes that drawOutcome chooses from.
func (d *drawState) clearWeights() { d.weights, d.outcomes = d.weights[:0], d.outcomes[:0] }

// addWeight adds an outcome with its weight to the list of drawOutcome, unless the weight is 0.
func (d *drawState) addWeight(outcome int, w scaled.Number) {
	if !w.IsZero() {
		d.weights, d.outcomes = append(d.weights, w), append(d.outcomes, outcome)
	}
}

// drawOutcome draws one of d.outcomes with a probability proportional to its number in d.weights. It returns 0 if there are no outcomes,
// which happens after the context ended.
func (d *drawState) drawOutcome(rng *rand.Rand) int {
	switch len(d.outcomes) {
	case 0:
		return 0
	case 1:
		return d.outcomes[0]
	}
	largestExp := int64(math.MinInt64)
	for _, w := range d.weights {
		largestExp = max(largestExp, w.Exp)
	}
	relative := func(w scaled.Number) float64 { // to 2^largestExp; 2^−2000 is 0 as a float64, and −2000 an int on any machine
		return math.Ldexp(w.Mant, int(max(w.Exp-largestExp, -2000)))
	}
	sum := 0.0
	for _, w := range d.weights {
		sum += relative(w)
	}
	u := rng.Float64() * sum
	for i, w := range d.weights {
		if u -= relative(w); u < 0 {
			return d.outcomes[i]
		}
	}
	return d.outcomes[len(d.outcomes)-1]
}

// addSplits adds an outcome k for each way to split count c between two factors: k for the left one and c−k for the right one. Its weight
// is the product of the factors' coefficients at these counts. Factors are polynomials as windows, each of which has the coefficients at a
// range of counts.
func (d *drawState) addSplits(left, right []window, c int) {
	for _, x := range left {
		for _, y := range right {
			firstSplit, endOfSplits := max(x.first, c-y.end()+1), min(x.end(), c-y.first+1) // both counts inside their windows
			for k := firstSplit; k < endOfSplits; k++ {
				d.addWeight(k, x.p.Coef.At(k-x.first).Mul(y.p.Coef.At(c-k-y.first)))
			}
		}
	}
}

// drawTotalCount draws the count c of all legs together. Its probability is proportional to S_c, the entry of the symmetric core at count
// c, times coefficient c of the root, the product of all pieces' polynomials. The root has windows, ranges of coefficients outside of which
// the products are negligible. spaceWindows is S in these windows.
func (d *drawState) drawTotalCount(l *line, spaceWindows []window, rng *rand.Rand) int {
	d.clearWeights()
	for _, x := range spaceWindows {
		for _, y := range l.root.windows {
			for k := max(x.first, y.first); k < min(x.end(), y.end()); k++ {
				d.addWeight(k, x.p.Coef.At(k-x.first).Mul(y.p.Coef.At(k-y.first)))
			}
		}
	}
	return d.drawOutcome(rng)
}

// splitCount draws the counts of all pieces below a node of the product tree, which add up to c, into count, which is by piece. A leaf of
// the tree is a kind of equal pieces: its polynomial, to the number of these pieces as the power. d.members has the pieces of each kind.
func (d *drawState) splitCount(n *node, c int, count []int32, rng *rand.Rand) error {
	if n.left == nil {
		return d.splitAmongEqual(n.leaf, d.members[n.leaf], c, count, rng)
	}
	if d.pace.Over(int64(min(n.left.degree, n.right.degree)) + 1) {
		return d.pace.Err()
	}

	// Draw how c is split between both children.
	d.clearWeights()
	d.addSplits(n.left.windows, n.right.windows, c)
	leftCount := d.drawOutcome(rng)
	if err := d.splitCount(n.left, leftCount, count, rng); err != nil {
		return err
	}
	return d.splitCount(n.right, c-leftCount, count, rng)
}

// splitAmongEqual draws the counts of equal pieces, which add up to c, into count. list has the pieces, all of one kind. If each counts at
// most once, it draws which of them count; otherwise it splits c between the halves of the list.
func (d *drawState) splitAmongEqual(kind int, list []int32, c int, count []int32, rng *rand.Rand) error {
	if d.pace.Over(int64(len(list))) {
		return d.pace.Err()
	}
	p := d.polys[kind]
	switch {
	case len(list) == 1:
		count[list[0]] = int32(c)
		return nil
	case p.Size() <= 2: // counts of 0 and 1
		for i, t := range list {
			if c > 0 && rng.IntN(len(list)-i) < c { // c of the len(list)−i pieces from here on count
				count[t] = 1
				c--
			}
		}
		return nil
	}

	// Draw the count of the first half: the polynomials of the halves are powers of the kind's.
	half := len(list) / 2
	left, right := d.power(kind, half), d.power(kind, len(list)-half)
	d.clearWeights()
	d.addSplits([]window{{p: left}}, []window{{p: right}}, c)
	leftCount := d.drawOutcome(rng)
	if err := d.splitAmongEqual(kind, list[:half], leftCount, count, rng); err != nil {
		return err
	}
	return d.splitAmongEqual(kind, list[half:], c-leftCount, count, rng)
}

// power returns the product of m equal pieces: the polynomial of their kind to the power m. Powers are remembered.
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

// drawWithinPieces draws the values of the variables of all pieces of kind k, given the pieces' counts, for every draw. A kind is a class
// of equal pieces. rngs has a stream for each draw. count is by draw and piece, and values, which it sets, by draw and variable.
func (d *drawState) drawWithinPieces(k int, count []int32, rngs []*rand.Rand, values []int) error {
	drawing, err := d.newPieceDraw(k)
	if err != nil {
		return err
	}
	variables := len(d.net.Variables)
	for i, rng := range rngs {
		for _, t := range d.members[k] {
			if d.pace.Over(drawing.work) {
				return d.pace.Err()
			}
			drawing.drawTerms(int(count[i*len(d.pieces)+int(t)]), rng)
			for position, link := range d.pieces[t].links {
				values[i*variables+d.variable[link]] = drawing.terms[position]
			}
		}
	}
	return nil
}

// pieceDraw draws the terms of the links of a piece, given its count.
type pieceDraw struct {
	*drawState
	terms []int // by link of the piece: the term of the last draw
	work  int64 // of a draw, roughly

	termWeights [][]scaled.Number // of a piece without tables: by count and term
	run         *tableRun         // of a piece with tables: its tables, filled; nil otherwise
	value       []int             // of a piece with tables, by index: its present value
}

// newPieceDraw prepares the draws of the pieces of kind k, which are equal. A piece without tables is one link: for it, it lists the
// weights of the link's terms by count. For others it fills the tables of the elimination.
func (d *drawState) newPieceDraw(k int) (*pieceDraw, error) {
	kind := &d.kinds[k]
	draw := &pieceDraw{drawState: d, terms: make([]int, len(kind.links)), work: 1}
	if kind.tables == nil {
		link := kind.links[0]
		weights := d.net.Links[link].T.(*tensor.CP).Weights
		draw.termWeights = make([][]scaled.Number, d.polys[k].Size())
		for c := range draw.termWeights {
			draw.termWeights[c] = make([]scaled.Number, len(weights))
		}
		for x, w := range weights {
			p := d.termPoly(link, x, d.ops)
			for c := range min(p.Size(), len(draw.termWeights)) {
				draw.termWeights[c][x] = scaled.FromFloat(w).Mul(p.Coef.At(c))
			}
		}
		return draw, nil
	}

	draw.run = &tableRun{layout: d.layout, netPlan: kind.tables, ctx: d.ctx, ops: d.ops}
	draw.value = make([]int, len(draw.run.expression.Dims))
	draw.work = int64(16 * len(draw.run.steps)) // about 16 operations for each step of the elimination
	_, err := draw.run.fillTables()             // the draws read the tables of all steps, not the polynomial
	return draw, err
}

// drawTerms draws the terms of the piece's links, given that the piece has count c, and sets them in in.terms. A piece without tables has
// one link, whose terms have weights for each count. For other pieces it goes back over the elimination of the tables, from its last step,
// and draws the values of the indices; these give the links' terms.
func (in *pieceDraw) drawTerms(c int, rng *rand.Rand) {
	if in.run == nil {
		in.clearWeights()
		for x, w := range in.termWeights[c] {
			in.addWeight(x, w)
		}
		in.terms[0] = in.drawOutcome(rng)
		return
	}
	in.drawIndices(len(in.run.steps)-1, c, rng)
	for position, index := range in.run.index {
		in.terms[position] = in.run.termOf(position, in.value[index])
	}
}

// entry returns the polynomial in a step's table at the present values of the step's indices, the last of which changes fastest.
func (in *pieceDraw) entry(step int) countspace.Poly {
	entry := 0
	for _, i := range in.run.steps[step].scope {
		entry = entry*in.run.expression.Dims[i] + in.value[i]
	}
	return in.run.tables[step][entry]
}

// drawIndices draws the values of the indices that were summed out below a step of the elimination, and sets them in in.value. It is given
// that the step's part of the piece has count c. A step that is a sum draws the value of its index, with coefficient c of the summand as
// weights. A step that is a product draws how c is split between its factors. Other steps are leaves, below which nothing was summed out.
// The step's own indices have values already.
func (in *pieceDraw) drawIndices(step, c int, rng *rand.Rand) {
	switch s := &in.run.steps[step]; s.op {
	case opSum:
		in.clearWeights()
		for x := range in.run.expression.Dims[s.index] {
			in.value[s.index] = x
			if p := in.entry(s.first); c < p.Size() { // the summand at the present values
				in.addWeight(x, p.Coef.At(c))
			}
		}
		in.value[s.index] = in.drawOutcome(rng)
		in.drawIndices(s.first, c, rng)
	case opProduct:
		in.clearWeights()
		in.addSplits([]window{{p: in.entry(s.first)}}, []window{{p: in.entry(s.second)}}, c)
		k := in.drawOutcome(rng)
		in.drawIndices(s.first, k, rng)
		in.drawIndices(s.second, c-k, rng)
	}
}
