package counts

// Products in several variables: one factor after the other, the largest first.

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// chainFactor is a factor of a product in several variables: a kind to its power, or a ray. A ray is all kinds whose exponents are
// multiples of one count vector; they are multiplied in one variable first.
type chainFactor struct {
	base  countspace.Poly // of a kind
	power int             // 1 for a ray
	kind  int             // −1: a ray

	ray        []int // the count vector
	kindsOnRay []int
	line       *line // the product in one variable

	shape   []int           // the box of base^power, or of the ray's product
	terms   float64         // its coefficients that are not 0
	product countspace.Poly // base^power, or the ray's product, once it was needed
	isFirst bool            // of the chain
}

// chainFactors makes the factors of all kinds, those with the most terms first. Kinds on one ray are one factor. polys may be those of
// boxes.
func chainFactors(
	ctx context.Context, polys []countspace.Poly, powers []int, ops *countspace.Ops,
) []*chainFactor {
	var out []*chainFactor
	rays := map[string]*chainFactor{}
	for k, p := range polys {
		ray := rayOf(p)
		if ray == nil {
			out = append(out, newFactor(p, powers[k], k))
			continue
		}
		key := ""
		for _, r := range ray {
			key += string(rune(r)) + ","
		}
		x := rays[key]
		if x == nil {
			x = &chainFactor{kind: -1, ray: ray, power: 1}
			rays[key] = x
			out = append(out, x)
		}
		x.kindsOnRay = append(x.kindsOnRay, k)
	}
	for _, x := range out {
		if x.kind < 0 {
			x.planRay(ctx, polys, powers, ops)
		}
	}
	slices.SortStableFunc(out, func(a, b *chainFactor) int { return cmp.Compare(b.terms, a.terms) })
	out[0].isFirst = true
	return out
}

// newFactor returns the factor of a kind that is on no ray: polynomial p to a power.
func newFactor(p countspace.Poly, power, k int) *chainFactor {
	x := &chainFactor{base: p, power: power, kind: k, shape: make([]int, len(p.Shape)), terms: 1}
	n := 0
	for _, m := range p.Coef.Mant {
		if m != 0 {
			n++
		}
	}
	for a, side := range p.Shape {
		x.shape[a] = power*(side-1) + 1
	}

	// C(power + n − 1, n − 1) compositions, no more than the box has.
	for i := 1; i < n; i++ {
		x.terms *= float64(power+i) / float64(i)
	}
	box := 1.0
	for _, side := range x.shape {
		box *= float64(side)
	}
	x.terms = min(x.terms, box)
	return x
}

// rayOf returns the primitive vector that all exponents of p are multiples of. It returns nil if there is none, or no variable. For
// constants it returns the first unit vector.
func rayOf(p countspace.Poly) []int {
	ray := make([]int, len(p.Shape))
	c := make([]int, len(p.Shape))
	found := false
	if len(ray) == 0 {
		return nil // nothing counts
	}
	for i := range p.Coef.Mant {
		if p.Coef.Mant[i] != 0 {
			rest := i
			for a := len(c) - 1; a >= 0; a-- {
				c[a] = rest % p.Shape[a]
				rest /= p.Shape[a]
			}
			switch {
			case !slices.ContainsFunc(c, func(x int) bool { return x > 0 }):
			case !found:
				found = true
				copy(ray, c)
				primitive(ray)
			case !multiple(c, ray):
				return nil
			}
		}
	}
	if !found {
		ray[0] = 1
	}
	return ray
}

// primitive divides a vector by the greatest common divisor of its entries.
func primitive(v []int) {
	d := 0
	for _, x := range v {
		for x > 0 {
			d, x = x, d%x
		}
	}
	for a := range v {
		v[a] /= d
	}
}

// multiple reports whether c = j·v for some j, v primitive.
func multiple(c, v []int) bool {
	j := -1
	for a := range c {
		switch {
		case v[a] == 0 && c[a] == 0:
		case v[a] == 0 || c[a]%v[a] != 0 || j >= 0 && c[a]/v[a] != j:
			return false
		default:
			j = c[a] / v[a]
		}
	}
	return true
}

// onRay makes the product of the kinds on a ray, in one variable.
func (x *chainFactor) planRay(ctx context.Context, polys []countspace.Poly, powers []int, ops *countspace.Ops) {
	bases := make([]countspace.Poly, len(x.kindsOnRay))
	own := make([]int, len(x.kindsOnRay))
	for i, k := range x.kindsOnRay {
		bases[i] = x.restrictToRay(polys[k])
		own[i] = powers[k]
	}
	x.line = newLine(ctx, bases, own, ops)
	x.shape = make([]int, len(x.ray))
	for a, r := range x.ray {
		x.shape[a] = x.line.root.degree*r + 1
	}
	x.terms = float64(x.line.root.degree + 1)
}

// restrictToRay returns the coefficients of p at the multiples of the ray, as far as p's box goes.
func (x *chainFactor) restrictToRay(p countspace.Poly) countspace.Poly {
	length := math.MaxInt
	for a, r := range x.ray {
		if r > 0 {
			length = min(length, (p.Shape[a]-1)/r+1)
		}
	}
	out := countspace.New([]int{length})
	place := make([]int, len(x.ray))
	for k := range length {
		coefficient := p.At(place)
		out.Coef.Mant[k], out.Coef.Exp[k] = coefficient.Mant, coefficient.Exp
		for a, r := range x.ray {
			place[a] += r
		}
	}
	return out
}

// wholeProduct returns base^power, or the product on the ray, over its box.
func (x *chainFactor) wholeProduct(ops *countspace.Ops) (countspace.Poly, error) {
	if x.product.Shape != nil {
		return x.product, nil
	}
	if x.kind >= 0 {
		x.product = countspace.Power(x.base, x.power, ops)
		return x.product, nil
	}
	if err := x.line.multiplyUp(x.line.root); err != nil {
		return countspace.Poly{}, err
	}
	out := countspace.New(x.shape)
	place := make([]int, len(x.ray))
	product := x.line.root.windows[0].p
	for j := range product.Coef.Mant {
		out.Set(place, product.Coef.At(j))
		for a, r := range x.ray {
			place[a] += r
		}
	}
	x.product = out
	return out, nil
}

// isStepwise reports whether multiplying by the base again and again is less work than multiplying by its power.
func (x *chainFactor) isStepwise() bool {
	if x.kind < 0 || x.power == 1 || x.isFirst {
		return false
	}
	return float64(x.power*x.base.Size()) < x.terms
}

// termsPerCoefficient returns the multiply-adds of a product with the factor, by coefficient of the other operand.
func (x *chainFactor) termsPerCoefficient() float64 {
	if x.isStepwise() {
		return float64(x.power * x.base.Size())
	}
	return x.terms
}

// chainCost returns the multiply-adds of a product of factors and the bytes of its partial products. size is that of the whole count space.
func chainCost(factors []*chainFactor, size float64) (muladds, bytes float64) {
	box := []float64{}
	peak := 0.0
	for i, x := range factors {
		if x.line != nil {
			muladds += x.line.root.cost()
		}
		if i == 0 {
			muladds += closedSteps * x.terms
			for _, side := range x.shape {
				box = append(box, float64(side))
			}
		} else {
			for a, side := range x.shape {
				box[a] += float64(side) - 1
			}
			muladds += boxVolume(box) * x.termsPerCoefficient()
		}
		peak += boxVolume(box)
	}
	// The sums of a product take as much again, S and its derivative too.
	return muladds + size, bytesPerCoefficient * (min(peak, 3*math.Sqrt(float64(len(factors)))*size) + 6*size)
}

// chain is a product of factors in several variables, one after the other, and the way back over it.
type chain struct {
	ctx            context.Context
	ops            *countspace.Ops
	countVariables int
	isSigned       bool
	polys          []countspace.Poly // by kind
	factors        []*chainFactor
	partials       []countspace.Poly // by factor: the product up to it, or empty if it is not kept
	stride         int               // every stride'th partial product is kept
}

// newChain multiplies the factors of all kinds. If the partial products are too many for the memory every ⌈√k⌉th is kept, and the others
// are computed again on the way back.
func (f *Form) newChain(
	ctx context.Context, polys []countspace.Poly, powers []int, ops *countspace.Ops,
) (*chain, error) {
	c := &chain{ctx: ctx, ops: ops, countVariables: f.countVariables, isSigned: f.isSigned, polys: polys, stride: 1}
	c.factors = chainFactors(ctx, polys, powers, ops)
	c.partials = make([]countspace.Poly, len(c.factors))
	if float64(len(c.factors))*f.spaceSize()*bytesPerCoefficient > float64(f.memory)/2 {
		c.stride = int(math.Ceil(math.Sqrt(float64(len(c.factors)))))
	}
	first, err := c.factors[0].wholeProduct(ops)
	if err != nil {
		return nil, err
	}
	c.partials[0] = first
	for i := 1; i < len(c.factors); i++ {
		if c.partials[i], err = c.multiply(c.partials[i-1], c.factors[i], c.factors[i].power); err != nil {
			return nil, err
		}
		if (i-1)%c.stride != 0 {
			c.partials[i-1] = countspace.Poly{}
		}
	}
	return c, nil
}

// multiply returns p · base^power, or p times the product on the ray of the factor.
func (c *chain) multiply(p countspace.Poly, x *chainFactor, power int) (countspace.Poly, error) {
	if !x.isStepwise() {
		q, err := x.wholeProduct(c.ops)
		if err != nil {
			return q, err
		}
		return p.Mul(q, c.ops), c.ctx.Err()
	}
	for range power {
		if err := c.ctx.Err(); err != nil {
			return p, err
		}
		p = p.Mul(x.base, c.ops)
	}
	return p, nil
}

// partialProduct returns the product of the first i factors.
func (c *chain) partialProduct(i int) (countspace.Poly, error) {
	if i == 0 {
		return countspace.Constant(c.countVariables, scaled.One), nil
	}
	from := i - 1
	for c.partials[from].Shape == nil {
		from--
	}
	for k := from + 1; k < i; k++ {
		var err error
		if c.partials[k], err = c.multiply(c.partials[k-1], c.factors[k], c.factors[k].power); err != nil {
			return countspace.Poly{}, err
		}
	}
	return c.partials[i-1], nil
}

// visitDerivatives calls visit for every kind that is wanted, with the derivative of ⟨s, Π⟩ by one of its polynomials.
func (c *chain) visitDerivatives(s countspace.Poly, wanted func(int) bool, visit func(int, countspace.Poly) error) error {
	h := countspace.Crop(s, c.partials[len(c.partials)-1].Shape)
	for i := len(c.factors) - 1; i >= 0; i-- {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		before, err := c.partialProduct(i)
		if err != nil {
			return err
		}
		if err := c.visitFactor(c.factors[i], h, before, wanted, visit); err != nil {
			return err
		}
		c.partials[i] = countspace.Poly{}
		if i > 0 {
			if h, err = c.derivativeOfOperand(h, c.factors[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// derivativeOfOperand returns, for the derivative h of a product with a factor, the derivative by the other operand.
func (c *chain) derivativeOfOperand(h countspace.Poly, x *chainFactor) (countspace.Poly, error) {
	if !x.isStepwise() {
		q, err := x.wholeProduct(c.ops)
		if err != nil {
			return q, err
		}
		return countspace.Correlate(h, q, c.ops), nil
	}
	for range x.power {
		if err := c.ctx.Err(); err != nil {
			return h, err
		}
		h = countspace.Correlate(h, x.base, c.ops)
	}
	return h, nil
}

// visitFactor calls visit for the wanted kinds of a factor. h is the derivative by the product up to the factor, and before the product of
// the factors before it.
func (c *chain) visitFactor(
	x *chainFactor, h, before countspace.Poly, wanted func(int) bool, visit func(int, countspace.Poly) error,
) error {
	if x.kind >= 0 {
		if !wanted(x.kind) {
			return nil
		}
		p, err := c.derivativeOfOne(x, h, before)
		if err != nil {
			return err
		}
		return visit(x.kind, p)
	}
	if !slices.ContainsFunc(x.kindsOnRay, wanted) {
		return nil
	}
	on := x.restrictToRay(countspace.CorrelateOn(h, before, x.rayPlaces(), c.ops))
	if err := x.line.multiplyUp(x.line.root); err != nil {
		return err
	}
	return x.line.propagateDown(x.line.root, []window{{p: on}},
		func(leaf int) bool { return wanted(x.kindsOnRay[leaf]) },
		func(leaf int, q countspace.Poly) error {
			return visit(x.kindsOnRay[leaf], x.spreadFromRay(q, c.polys[x.kindsOnRay[leaf]]))
		})
}

// derivativeOfOne returns the derivative by one of the polynomials of a kind's factor. h and before are those of visitFactor.
func (c *chain) derivativeOfOne(x *chainFactor, h, before countspace.Poly) (countspace.Poly, error) {
	if x.isStepwise() {
		others, err := c.multiply(before, x, x.power-1)
		return countspace.CorrelateOn(h, others, c.wantedPlaces(x.base), c.ops), err
	}
	if x.power == 1 {
		return countspace.CorrelateOn(h, before, c.wantedPlaces(x.base), c.ops), nil
	}
	p := countspace.CorrelateOn(h, before, c.wantedPlaces(x.product), c.ops)
	below := countspace.Power(x.base, x.power-1, c.ops)
	return countspace.CorrelateOn(p, below, c.wantedPlaces(x.base), c.ops), nil
}

// wantedPlaces returns a polynomial whose coefficients are not 0 at the places at which derivatives by p are wanted: those at which p's are
// not 0, and all places if terms of both signs may have cancelled there.
func (c *chain) wantedPlaces(p countspace.Poly) countspace.Poly {
	if !c.isSigned {
		return p
	}
	all := countspace.New(p.Shape)
	for i := range all.Coef.Mant {
		all.Coef.Mant[i] = 1
	}
	return all
}

// rayPlaces returns a polynomial with ones at the multiples of the ray, as far as the product goes.
func (x *chainFactor) rayPlaces() countspace.Poly {
	out := countspace.New(x.shape)
	place := make([]int, len(x.ray))
	for range x.line.root.degree + 1 {
		out.Set(place, scaled.One)
		for a, r := range x.ray {
			place[a] += r
		}
	}
	return out
}

// spreadFromRay writes a polynomial on the ray as one over the box of a kind's polynomial.
func (x *chainFactor) spreadFromRay(onRay, kindPoly countspace.Poly) countspace.Poly {
	out := countspace.New(kindPoly.Shape)
	place := make([]int, len(x.ray))
	for j := range onRay.Coef.Mant {
		if y := onRay.Coef.At(j); !y.IsZero() {
			out.Set(place, y)
		}
		for a, r := range x.ray {
			place[a] += r
		}
	}
	return out
}
