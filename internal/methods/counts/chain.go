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

// chainFactor is a factor of a product of polynomials in several variables: the polynomial of one kind to its power, or a ray. A ray is the
// product of all kinds whose exponents are multiples of one count vector, the ray's. It is a polynomial in one variable.
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
	isFirst bool            // the first factor of the chain
}

// chainFactors returns the factors of the product Π_k polys[k]^powers[k] in several variables, those with the most terms first. Polynomials
// whose exponents are all multiples of one vector, the ray, make one factor together, because their product is a polynomial in one
// variable. Each other polynomial with its power is a factor. If only the cost is wanted, polynomials of ones may stand for those that are
// not computed yet.
func chainFactors(
	ctx context.Context, polys []countspace.Poly, powers []int, ops *countspace.Ops,
) []*chainFactor {
	var factors []*chainFactor
	rays := map[string]*chainFactor{}
	for k, p := range polys {
		ray := rayOf(p)
		if ray == nil {
			factors = append(factors, newFactor(p, powers[k], k))
			continue
		}
		key := ""
		for _, r := range ray {
			key += string(rune(r)) + "," // a text that tells rays apart
		}
		factor := rays[key]
		if factor == nil {
			factor = &chainFactor{kind: -1, ray: ray, power: 1}
			rays[key] = factor
			factors = append(factors, factor)
		}
		factor.kindsOnRay = append(factor.kindsOnRay, k)
	}
	for _, factor := range factors {
		if factor.kind < 0 {
			factor.planRay(ctx, polys, powers, ops)
		}
	}
	slices.SortStableFunc(factors, func(a, b *chainFactor) int { return cmp.Compare(b.terms, a.terms) })
	factors[0].isFirst = true // it is computed as a whole, and not multiplied step by step (isStepwise)
	return factors
}

// newFactor returns the factor of kind k, a class of equal pieces: their polynomial p to their number as the power. terms is a bound of its
// number of terms. It is on no ray: the exponents of p are not all multiples of one vector.
func newFactor(p countspace.Poly, power, k int) *chainFactor {
	factor := &chainFactor{base: p, power: power, kind: k, shape: make([]int, len(p.Shape)), terms: 1}
	nonzero := 0
	for _, m := range p.Coef.Mant {
		if m != 0 {
			nonzero++
		}
	}
	for a, side := range p.Shape {
		factor.shape[a] = power*(side-1) + 1
	}

	// p^power has at most one term for each way to divide power among the n nonzero terms of p, C(power + n − 1, n − 1), and at most as
	// many as its box.
	for i := 1; i < nonzero; i++ {
		factor.terms *= float64(power+i) / float64(i)
	}
	box := 1.0
	for _, side := range factor.shape {
		box *= float64(side)
	}
	factor.terms = min(factor.terms, box)
	return factor
}

// rayOf returns the smallest count vector that all exponents of p are multiples of, with entries that have no common divisor. It returns
// nil if there is no such vector, or no count variable. For a constant it returns the first unit vector.
func rayOf(p countspace.Poly) []int {
	if len(p.Shape) == 0 {
		return nil // nothing counts
	}
	ray := make([]int, len(p.Shape))
	hasRay := false
	exponents := make([]int, len(p.Shape))
	for i := range p.Coef.Mant {
		if p.Coef.Mant[i] == 0 {
			continue
		}
		exponentsOf(p, i, exponents)
		isConstant := !slices.ContainsFunc(exponents, func(x int) bool { return x > 0 })
		switch {
		case isConstant:
		case !hasRay:
			hasRay = true
			copy(ray, exponents)
			makePrimitive(ray)
		case !isMultiple(exponents, ray):
			return nil
		}
	}
	if !hasRay { // p is a constant
		ray[0] = 1
	}
	return ray
}

// exponentsOf sets exponents to those of coefficient i of p, the last variable fastest.
func exponentsOf(p countspace.Poly, i int, exponents []int) {
	for a := len(exponents) - 1; a >= 0; a-- {
		exponents[a] = i % p.Shape[a]
		i /= p.Shape[a]
	}
}

// makePrimitive divides a vector by the greatest common divisor of its entries.
func makePrimitive(v []int) {
	divisor := 0
	for _, x := range v {
		for x > 0 {
			divisor, x = x, divisor%x
		}
	}
	for a := range v {
		v[a] /= divisor
	}
}

// isMultiple reports whether c = j·v for an integer j ≥ 0. The entries of c and v are at least 0. If v is primitive (makePrimitive),
// every c on the ray from 0 through v is such a multiple.
func isMultiple(c, v []int) bool {
	multiple := -1 // j; −1: not known yet
	for a := range c {
		switch {
		case v[a] == 0 && c[a] == 0:
		case v[a] == 0 || c[a]%v[a] != 0 || multiple >= 0 && c[a]/v[a] != multiple:
			return false
		default:
			multiple = c[a] / v[a]
		}
	}
	return true
}

// planRay prepares a factor that is a ray: the product of the kinds whose polynomials have only exponents m · x.ray, multiples of one count
// vector. It is a product tree in one variable, with exponent m. planRay also sets the factor's box and number of terms. polys and powers
// are by kind.
func (x *chainFactor) planRay(ctx context.Context, polys []countspace.Poly, powers []int, ops *countspace.Ops) {
	bases := make([]countspace.Poly, len(x.kindsOnRay))
	rayPowers := make([]int, len(x.kindsOnRay))
	for i, k := range x.kindsOnRay {
		bases[i] = x.restrictToRay(polys[k])
		rayPowers[i] = powers[k]
	}
	x.line = newLine(ctx, bases, rayPowers, ops)
	x.shape = make([]int, len(x.ray))
	for a, r := range x.ray {
		x.shape[a] = x.line.root.degree*r + 1
	}
	x.terms = float64(x.line.root.degree + 1)
}

// restrictToRay returns the coefficients of p at the multiples of the count vector x.ray inside p's box, as a polynomial in one variable:
// its coefficient k is that of p at k · x.ray.
func (x *chainFactor) restrictToRay(p countspace.Poly) countspace.Poly {
	length := math.MaxInt
	for a, r := range x.ray {
		if r > 0 {
			length = min(length, (p.Shape[a]-1)/r+1)
		}
	}
	restricted := countspace.New([]int{length})
	exponents := make([]int, len(x.ray))
	for k := range length {
		coefficient := p.At(exponents)
		restricted.Coef.Mant[k], restricted.Coef.Exp[k] = coefficient.Mant, coefficient.Exp
		for a, r := range x.ray {
			exponents[a] += r
		}
	}
	return restricted
}

// wholeProduct returns all coefficients of the factor, base^power or the product on the ray, over its box in all variables. It is computed
// once.
func (x *chainFactor) wholeProduct(ops *countspace.Ops) (countspace.Poly, error) {
	if x.product.Shape != nil {
		return x.product, nil
	}
	if x.kind >= 0 {
		x.product = countspace.Power(x.base, x.power, ops)
		return x.product, nil
	}

	// A ray: coefficient j of its product in one variable is that of the exponents j · ray.
	if err := x.line.multiplyUp(x.line.root); err != nil {
		return countspace.Poly{}, err
	}
	whole := countspace.New(x.shape)
	exponents := make([]int, len(x.ray))
	product := x.line.root.windows[0].p
	for j := range product.Coef.Mant {
		whole.Set(exponents, product.Coef.At(j))
		for a, r := range x.ray {
			exponents[a] += r
		}
	}
	x.product = whole
	return whole, nil
}

// isStepwise reports whether multiplying by the base power times is less work than multiplying by base^power once.
func (x *chainFactor) isStepwise() bool {
	if x.kind < 0 || x.power == 1 || x.isFirst {
		return false
	}
	return float64(x.power*x.base.Size()) < x.terms
}

// termsPerCoefficient returns the multiply-adds of a product with the factor, for each coefficient of the product.
func (x *chainFactor) termsPerCoefficient() float64 {
	if x.isStepwise() {
		return float64(x.power * x.base.Size())
	}
	return x.terms
}

// chainCost returns the multiply-adds of a product of factors, one after the other, and the bytes of its partial products. size is the
// number of coefficients of the whole count space. A ray is a factor made of kinds whose polynomials are in powers of one and the same
// monomial; their product, in that one variable, comes first and costs x.line.root.cost(). The first factor is computed by a closed form,
// closedSteps multiply-adds for each of its coefficients.
func chainCost(factors []*chainFactor, size float64) (muladds, bytes float64) {
	box := []float64{} // of the product so far: its side in each variable
	partialSizes := 0.0
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
		partialSizes += boxVolume(box)
	}

	// newChain keeps about 3√k of k partial products if they are too many. The sums of a product, S and its derivative take 6 more. size in
	// the multiply-adds is the contraction with S.
	return muladds + size, bytesPerCoefficient * (min(partialSizes, 3*math.Sqrt(float64(len(factors)))*size) + 6*size)
}

// chain is a product of factors in several variables, one after the other, and the way back over it.
type chain struct {
	ctx            context.Context
	ops            *countspace.Ops
	countVariables int
	isSigned       bool
	polys          []countspace.Poly // by kind
	factors        []*chainFactor
	partials       []countspace.Poly // by factor: the product of the factors up to and with it; without a shape if it is not kept
	stride         int               // every stride'th partial product is kept
}

// newChain multiplies the factors of Π_k polys[k]^powers[k] one after the other and keeps the partial products. If all n of them together
// take more than half the memory, it keeps only every ⌈√n⌉th and the last one. partialProduct computes the others again on the way back.
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

// multiply returns p · base^power for the base of a factor x. If x is stepwise, it multiplies by the base power times, because that is less
// work than one product with base^power. Otherwise power has to be x.power. If x is a ray, a product in one variable of several kinds'
// polynomials, it returns p times that product.
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

// partialProduct returns the product of the first i factors. If it is not kept, it is computed from the last partial product that is, and
// all products between the two are kept.
func (c *chain) partialProduct(i int) (countspace.Poly, error) {
	if i == 0 {
		return countspace.Constant(c.countVariables, scaled.One), nil
	}
	lastKept := i - 1
	for c.partials[lastKept].Shape == nil { // it ends: the product of the first factor alone is kept
		lastKept--
	}
	for k := lastKept + 1; k < i; k++ {
		var err error
		if c.partials[k], err = c.multiply(c.partials[k-1], c.factors[k], c.factors[k].power); err != nil {
			return countspace.Poly{}, err
		}
	}
	return c.partials[i-1], nil
}

// visitDerivatives calls visit once for every wanted kind. A kind stands for equal pieces of a network: they have one polynomial,
// c.polys[kind], and the product Π of the chain's factors has it to a power, once for each piece. visit gets the derivative of the sum
// Σ_c s_c [z^c] Π with respect to one of these equal polynomials, with the others fixed.
//
// It goes back from the last factor: h is the derivative of the sum with respect to the product of the factors from the first to the
// present one. Partial products that are no longer needed are dropped on the way.
func (c *chain) visitDerivatives(
	s countspace.Poly, wanted func(kind int) bool, visit func(kind int, derivative countspace.Poly) error,
) error {
	// The derivative with respect to Π itself is s. Only the coefficients in the box of Π count, since Π is 0 outside.
	h := countspace.Crop(s, c.partials[len(c.partials)-1].Shape)
	for i := len(c.factors) - 1; i >= 0; i-- {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		earlierProduct, err := c.partialProduct(i) // of the factors before factor i
		if err != nil {
			return err
		}
		if err := c.visitFactor(c.factors[i], h, earlierProduct, wanted, visit); err != nil {
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

// derivativeOfOperand returns the derivative of the chain's sum with respect to a polynomial p. h is the derivative with respect to the
// product p·x with the factor x. A stepwise factor, base^power, is contracted in power steps with its base, because that is less work than
// contracting it as a whole.
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

// visitFactor calls visit for the wanted kinds of factor x, with the derivative of the chain's sum with respect to the polynomial of the
// kind. The sum is Σ_c s_c [z^c] Π for the product Π of all factors (visitDerivatives). h is its derivative with respect to the product of
// the factors from the first one to x. earlierProduct is the product of the factors before x. Factor x is a power of one kind's polynomial,
// or a ray: the product of all kinds whose exponents are multiples of one count vector.
func (c *chain) visitFactor(
	x *chainFactor, h, earlierProduct countspace.Poly, wanted func(int) bool, visit func(int, countspace.Poly) error,
) error {
	if x.kind >= 0 { // the factor is a power of one kind's polynomial
		if !wanted(x.kind) {
			return nil
		}
		p, err := c.derivativeOfOne(x, h, earlierProduct)
		if err != nil {
			return err
		}
		return visit(x.kind, p)
	}
	if !slices.ContainsFunc(x.kindsOnRay, wanted) {
		return nil
	}

	// A ray is a polynomial in one variable. The derivative with respect to that polynomial goes down its product tree to the kinds.
	onRay := x.restrictToRay(countspace.CorrelateOn(h, earlierProduct, x.rayCoefficients(), c.ops))
	if err := x.line.multiplyUp(x.line.root); err != nil {
		return err
	}
	return x.line.propagateDown(x.line.root, []window{{p: onRay}},
		func(leaf int) bool { return wanted(x.kindsOnRay[leaf]) },
		func(leaf int, q countspace.Poly) error {
			return visit(x.kindsOnRay[leaf], x.spreadFromRay(q, c.polys[x.kindsOnRay[leaf]]))
		})
}

// derivativeOfOne returns the derivative of the chain's sum with respect to one of the polynomials base of a kind's factor x = base^power,
// with the power−1 others fixed. h is the derivative with respect to the product of the factors from the first one to x. earlierProduct is
// the product of the factors before x.
func (c *chain) derivativeOfOne(x *chainFactor, h, earlierProduct countspace.Poly) (countspace.Poly, error) {
	if x.isStepwise() {
		otherFactors, err := c.multiply(earlierProduct, x, x.power-1)
		return countspace.CorrelateOn(h, otherFactors, c.wantedCoefficients(x.base), c.ops), err
	}
	if x.power == 1 {
		return countspace.CorrelateOn(h, earlierProduct, c.wantedCoefficients(x.base), c.ops), nil
	}

	// First the derivative with respect to base^power, then to one of its bases. x.product is base^power, which the way forth has computed.
	byPower := countspace.CorrelateOn(h, earlierProduct, c.wantedCoefficients(x.product), c.ops)
	lowerPower := countspace.Power(x.base, x.power-1, c.ops)
	return countspace.CorrelateOn(byPower, lowerPower, c.wantedCoefficients(x.base), c.ops), nil
}

// wantedCoefficients returns a polynomial over the box of p that is not 0 at the coefficients whose derivatives are wanted. Those are the
// coefficients of p that are not 0. If terms of both signs may have cancelled, a coefficient of 0 may be needed as well, and all are
// wanted.
func (c *chain) wantedCoefficients(p countspace.Poly) countspace.Poly {
	if !c.isSigned {
		return p
	}
	ones := countspace.New(p.Shape)
	for i := range ones.Coef.Mant {
		ones.Coef.Mant[i] = 1
	}
	return ones
}

// rayCoefficients returns a polynomial over the box x.shape that is 1 at the multiples j · ray and 0 elsewhere. j goes from 0 to the
// degree of the ray's product in one variable. All of these multiples are in the box, whose sides are degree · ray[a] + 1 (planRay).
func (x *chainFactor) rayCoefficients() countspace.Poly {
	ones := countspace.New(x.shape)
	exponents := make([]int, len(x.ray))
	for range x.line.root.degree + 1 {
		ones.Set(exponents, scaled.One)
		for a, r := range x.ray {
			exponents[a] += r
		}
	}
	return ones
}

// spreadFromRay returns a polynomial in all variables, over the box of kindPoly, that has coefficient j of onRay at j times the ray, a
// count vector.
func (x *chainFactor) spreadFromRay(onRay, kindPoly countspace.Poly) countspace.Poly {
	poly := countspace.New(kindPoly.Shape)
	exponents := make([]int, len(x.ray))
	for j := range onRay.Coef.Mant {
		if y := onRay.Coef.At(j); !y.IsZero() {
			poly.Set(exponents, y)
		}
		for a, r := range x.ray {
			exponents[a] += r
		}
	}
	return poly
}
