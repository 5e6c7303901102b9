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

// factor is a kind to its power, or all kinds whose exponents are multiples of one count vector: they
// are multiplied in one variable first.
type factor struct {
	base  countspace.Poly
	power int
	kind  int   // −1: a ray
	ray   []int // the count vector
	kinds []int // on the ray
	line  *line
	shape []int           // the box of base^power
	terms float64         // coefficients of base^power that are not 0
	full  countspace.Poly // base^power, once it was needed
	first bool            // of the product
}

// factors sorts kinds into rays and others. polys may be blanks.
func factors(
	ctx context.Context, polys []countspace.Poly, powers []int, ops *countspace.Ops,
) []*factor {
	var out []*factor
	rays := map[string]*factor{}
	for k, p := range polys {
		ray := rayOf(p)
		if ray == nil {
			out = append(out, plainFactor(p, powers[k], k))
			continue
		}
		key := ""
		for _, r := range ray {
			key += string(rune(r)) + ","
		}
		x := rays[key]
		if x == nil {
			x = &factor{kind: -1, ray: ray, power: 1}
			rays[key] = x
			out = append(out, x)
		}
		x.kinds = append(x.kinds, k)
	}
	for _, x := range out {
		if x.kind < 0 {
			x.onRay(ctx, polys, powers, ops)
		}
	}
	slices.SortStableFunc(out, func(a, b *factor) int { return cmp.Compare(b.terms, a.terms) })
	out[0].first = true
	return out
}

// plainFactor is a kind that is on no ray.
func plainFactor(p countspace.Poly, power, k int) *factor {
	x := &factor{base: p, power: power, kind: k, shape: make([]int, len(p.Shape)), terms: 1}
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

// rayOf returns the primitive vector that all exponents of p are multiples of, nil if there is none. Of
// constants it is the first unit vector.
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
func (x *factor) onRay(ctx context.Context, polys []countspace.Poly, powers []int, ops *countspace.Ops) {
	bases := make([]countspace.Poly, len(x.kinds))
	own := make([]int, len(x.kinds))
	for i, k := range x.kinds {
		bases[i] = x.along(polys[k])
		own[i] = powers[k]
	}
	x.line = newLine(ctx, bases, own, ops)
	x.shape = make([]int, len(x.ray))
	for a, r := range x.ray {
		x.shape[a] = x.line.root.degree*r + 1
	}
	x.terms = float64(x.line.root.degree + 1)
}

// along reads the coefficients of p at the multiples of the ray, as far as p's box goes.
func (x *factor) along(p countspace.Poly) countspace.Poly {
	n := math.MaxInt
	for a, r := range x.ray {
		if r > 0 {
			n = min(n, (p.Shape[a]-1)/r+1)
		}
	}
	out := countspace.New([]int{n})
	c := make([]int, len(x.ray))
	for j := range n {
		y := p.At(c)
		out.Coef.Mant[j], out.Coef.Exp[j] = y.Mant, y.Exp
		for a, r := range x.ray {
			c[a] += r
		}
	}
	return out
}

// whole is base^power, or the product on the ray, over its box.
func (x *factor) whole(ops *countspace.Ops) (countspace.Poly, error) {
	if x.full.Shape != nil {
		return x.full, nil
	}
	if x.kind >= 0 {
		x.full = countspace.Power(x.base, x.power, ops)
		return x.full, nil
	}
	if err := x.line.forth(x.line.root); err != nil {
		return countspace.Poly{}, err
	}
	out := countspace.New(x.shape)
	c := make([]int, len(x.ray))
	q := x.line.root.parts[0].p
	for j := range q.Coef.Mant {
		out.Set(c, q.Coef.At(j))
		for a, r := range x.ray {
			c[a] += r
		}
	}
	x.full = out
	return out, nil
}

// stepwise reports whether multiplying by the base again and again is less work than by the power.
func (x *factor) stepwise() bool {
	if x.kind < 0 || x.power == 1 || x.first {
		return false
	}
	return float64(x.power*x.base.Size()) < x.terms
}

// steps is the number of terms of a product with the factor per coefficient of the other operand.
func (x *factor) steps() float64 {
	if x.stepwise() {
		return float64(x.power * x.base.Size())
	}
	return x.terms
}

// chainCost is the multiply-adds of a product of factors and the bytes of its partial products.
func chainCost(factors []*factor, size float64) (muladds, bytes float64) {
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
			muladds += volume(box) * x.steps()
		}
		peak += volume(box)
	}
	// The sums of a product take as much again, S and its derivative too.
	return muladds + size, bytesPerCoefficient * (min(peak, 3*math.Sqrt(float64(len(factors)))*size) + 6*size)
}

// chain is a product of factors, and the way back over it.
type chain struct {
	ctx     context.Context
	ops     *countspace.Ops
	vars    int
	signed  bool
	polys   []countspace.Poly
	factors []*factor
	kept    []countspace.Poly // partial products, those in reach
	stride  int               // every stride'th stays
}

// newChain multiplies the factors of all kinds. Where the partial products are too many for the memory every
// ⌈√k⌉th is kept, and the others are computed again.
func (f *Form) newChain(
	ctx context.Context, polys []countspace.Poly, powers []int, ops *countspace.Ops,
) (*chain, error) {
	c := &chain{ctx: ctx, ops: ops, vars: f.vars, signed: f.signed, polys: polys, stride: 1}
	c.factors = factors(ctx, polys, powers, ops)
	c.kept = make([]countspace.Poly, len(c.factors))
	if float64(len(c.factors))*f.size()*bytesPerCoefficient > float64(f.memory)/2 {
		c.stride = int(math.Ceil(math.Sqrt(float64(len(c.factors)))))
	}
	first, err := c.factors[0].whole(ops)
	if err != nil {
		return nil, err
	}
	c.kept[0] = first
	for i := 1; i < len(c.factors); i++ {
		if c.kept[i], err = c.multiply(c.kept[i-1], c.factors[i], c.factors[i].power); err != nil {
			return nil, err
		}
		if (i-1)%c.stride != 0 {
			c.kept[i-1] = countspace.Poly{}
		}
	}
	return c, nil
}

// multiply returns p · base^power, or p times the product on the ray.
func (c *chain) multiply(p countspace.Poly, x *factor, power int) (countspace.Poly, error) {
	if !x.stepwise() {
		q, err := x.whole(c.ops)
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

// upTo returns the product of the first i factors.
func (c *chain) upTo(i int) (countspace.Poly, error) {
	if i == 0 {
		return countspace.Constant(c.vars, scaled.One), nil
	}
	from := i - 1
	for c.kept[from].Shape == nil {
		from--
	}
	for k := from + 1; k < i; k++ {
		var err error
		if c.kept[k], err = c.multiply(c.kept[k-1], c.factors[k], c.factors[k].power); err != nil {
			return countspace.Poly{}, err
		}
	}
	return c.kept[i-1], nil
}

// back visits every kind that is wanted with the derivative of ⟨s, Π⟩ by one of its polynomials.
func (c *chain) back(s countspace.Poly, wanted func(int) bool, visit func(int, countspace.Poly) error) error {
	h := countspace.Crop(s, c.kept[len(c.kept)-1].Shape)
	for i := len(c.factors) - 1; i >= 0; i-- {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		before, err := c.upTo(i)
		if err != nil {
			return err
		}
		if err := c.visit(c.factors[i], h, before, wanted, visit); err != nil {
			return err
		}
		c.kept[i] = countspace.Poly{}
		if i > 0 {
			if h, err = c.without(h, c.factors[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// without returns the derivative by the operand that the factor was multiplied to.
func (c *chain) without(h countspace.Poly, x *factor) (countspace.Poly, error) {
	if !x.stepwise() {
		q, err := x.whole(c.ops)
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

// visit hands on the derivatives by a factor's kinds.
func (c *chain) visit(
	x *factor, h, before countspace.Poly, wanted func(int) bool, visit func(int, countspace.Poly) error,
) error {
	if x.kind >= 0 {
		if !wanted(x.kind) {
			return nil
		}
		p, err := c.one(x, h, before)
		if err != nil {
			return err
		}
		return visit(x.kind, p)
	}
	if !slices.ContainsFunc(x.kinds, wanted) {
		return nil
	}
	on := x.along(countspace.CorrelateOn(h, before, x.places(), c.ops))
	if err := x.line.forth(x.line.root); err != nil {
		return err
	}
	return x.line.back(x.line.root, []window{{p: on}},
		func(leaf int) bool { return wanted(x.kinds[leaf]) },
		func(leaf int, q countspace.Poly) error { return visit(x.kinds[leaf], x.off(q, c.polys[x.kinds[leaf]])) })
}

// one is the derivative by one of a kind's polynomials, all else being before and the other factors.
func (c *chain) one(x *factor, h, before countspace.Poly) (countspace.Poly, error) {
	if x.stepwise() {
		others, err := c.multiply(before, x, x.power-1)
		return countspace.CorrelateOn(h, others, c.places(x.base), c.ops), err
	}
	if x.power == 1 {
		return countspace.CorrelateOn(h, before, c.places(x.base), c.ops), nil
	}
	p := countspace.CorrelateOn(h, before, c.places(x.full), c.ops)
	below := countspace.Power(x.base, x.power-1, c.ops)
	return countspace.CorrelateOn(p, below, c.places(x.base), c.ops), nil
}

// places are the coefficients of p by which derivatives are wanted: those that are not 0, and where terms of
// both signs may have cancelled all of them.
func (c *chain) places(p countspace.Poly) countspace.Poly {
	if !c.signed {
		return p
	}
	all := countspace.New(p.Shape)
	for i := range all.Coef.Mant {
		all.Coef.Mant[i] = 1
	}
	return all
}

// places are the multiples of the ray as far as the product goes.
func (x *factor) places() countspace.Poly {
	out := countspace.New(x.shape)
	k := make([]int, len(x.ray))
	for range x.line.root.degree + 1 {
		out.Set(k, scaled.One)
		for a, r := range x.ray {
			k[a] += r
		}
	}
	return out
}

// off writes a polynomial on the ray over the box of a kind's.
func (x *factor) off(q, like countspace.Poly) countspace.Poly {
	out := countspace.New(like.Shape)
	c := make([]int, len(x.ray))
	for j := range q.Coef.Mant {
		if y := q.Coef.At(j); !y.IsZero() {
			out.Set(c, y)
		}
		for a, r := range x.ray {
			c[a] += r
		}
	}
	return out
}
