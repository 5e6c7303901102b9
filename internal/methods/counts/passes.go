package counts

// The passes over a piece with tables: up for its polynomial, down for the derivatives.

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// tableRun is one evaluation of a piece with tables.
type tableRun struct {
	*layout
	*netPlan
	ctx       context.Context
	ops       *countspace.Ops
	tables    [][]countspace.Poly // by step: entries over its scope, the last index fastest
	fixedTerm []int               // by link: 1 + the one term that is not 0, or 0 for all terms; nil: all terms of all links
}

// fillTables runs the elimination of a piece with tables, step by step, and returns the polynomial of the piece, the one entry of the last
// step. Entries of a step's table are polynomials in the counts. A step is a table of numbers, the terms of a link, a product of two steps,
// or a sum of one over an index.
func (r *tableRun) fillTables() (countspace.Poly, error) {
	if r.expression.Scale.IsZero() {
		return countspace.Constant(r.countVariables, scaled.Number{}), nil
	}
	r.tables = make([][]countspace.Poly, len(r.steps))
	for i := range r.steps {
		s := &r.steps[i]
		var err error
		switch s.op {
		case opTable:
			r.tables[i] = r.tableEntries(s)
		case opUnary:
			r.tables[i] = r.linkTerms(s.first)
		case opProduct:
			r.tables[i], err = r.multiplyTables(s)
		case opSum:
			r.tables[i], err = r.sumOut(s)
		}
		if err != nil {
			return countspace.Poly{}, err
		}
	}
	return r.tables[len(r.steps)-1][0].Scale(r.expression.Scale), nil
}

// tableEntries returns the entries of a table of the expression as constant polynomials, over the step's scope. The table may have the same
// indices in another sequence, and numbers with exponents.
func (r *tableRun) tableEntries(s *step) []countspace.Poly {
	t := &r.expression.Tables[s.first]
	entries := make([]countspace.Poly, len(t.Data))
	walk := r.walk(s.scope, t.Scope) // walk.Position[0] is the entry of t at the values of the current entry
	for entry := range entries {
		source := walk.Position[0]
		x := scaled.FromFloat(t.Data[source])
		if t.Exp != nil {
			x = scaled.Make(t.Data[source], t.Exp[source])
		}
		entries[entry] = countspace.Constant(r.countVariables, x)
		walk.Next()
	}
	return entries
}

// linkTerms returns the polynomials of a link's terms, by value of the link's index. If a term is fixed, all others are 0.
func (r *tableRun) linkTerms(link int) []countspace.Poly {
	polys := make([]countspace.Poly, r.expression.Dims[r.netPlan.index[link]])
	for value := range polys {
		x := r.termOf(link, value)
		isOtherFixed := r.fixedTerm != nil && r.fixedTerm[link] > 0 && r.fixedTerm[link] != x+1 // 1 + the fixed term; 0: none
		if isOtherFixed {
			polys[value] = countspace.Constant(r.countVariables, scaled.Number{})
			continue
		}
		polys[value] = r.termPoly(r.links[link], x, r.ops)
	}
	return polys
}

// termOf returns the term of a link for a value of the link's index. They differ if the index leaves out terms of weight 0.
func (r *tableRun) termOf(link, value int) int {
	if support := r.expression.Support[r.netPlan.index[link]]; support != nil {
		return support[value]
	}
	return value
}

// multiplyEntries returns p·q. If one of them is a constant it only scales the other, which may be returned itself.
func (r *tableRun) multiplyEntries(p, q countspace.Poly) countspace.Poly {
	if q.Size() == 1 {
		p, q = q, p
	}
	if p.Size() > 1 {
		return p.Mul(q, r.ops)
	}
	x := p.Coef.At(0)   // p = x
	r.ops.Add(q.Size()) // one multiply-add for each coefficient
	switch {
	case x.IsZero():
		return countspace.Constant(r.countVariables, x)
	case x == scaled.One:
		return q
	}
	return q.Scale(x)
}

// multiplyTables returns the table of a product step: over the indices of both factors, the product of their entries.
func (r *tableRun) multiplyTables(s *step) ([]countspace.Poly, error) {
	walk := r.walk(s.scope, r.steps[s.first].scope, r.steps[s.second].scope)
	products := make([]countspace.Poly, int(r.entries(s)))
	for entry := range products {
		if err := r.ctx.Err(); err != nil {
			return nil, err
		}
		products[entry] = r.multiplyEntries(r.tables[s.first][walk.Position[0]], r.tables[s.second][walk.Position[1]])
		walk.Next()
	}
	return products, nil
}

// sumOut returns the table of a sum step: the table of the summand with one index summed out. It goes through the entries of the summand,
// and adds each to the entry of the result at the same values of the other indices.
func (r *tableRun) sumOut(s *step) ([]countspace.Poly, error) {
	summand := &r.steps[s.first]
	walk := r.walk(summand.scope, s.scope)
	sums := make([]countspace.Poly, int(r.entries(s)))
	for _, p := range r.tables[s.first] {
		if err := r.ctx.Err(); err != nil {
			return nil, err
		}
		if entry := walk.Position[0]; sums[entry].Shape == nil {
			sums[entry] = p
		} else if !p.IsZero() {
			sums[entry] = sums[entry].Add(p)
		}
		walk.Next()
	}
	return sums, nil
}

// termMarginals returns M(x) = w(x) ∂⟨h, p⟩/∂w(x) for every term x of every link, by link and term. p is the polynomial of the piece, and
// ⟨h, p⟩ = Σ_c h_c p_c for the given derivative h, over p's box. It goes back over the steps of fillTables and drops the tables on the way.
func (r *tableRun) termMarginals(derivative countspace.Poly) ([][]scaled.Number, error) {
	marginals := make([][]scaled.Number, len(r.links))
	for k, link := range r.links {
		marginals[k] = make([]scaled.Number, len(r.layout.net.Links[link].T.(*tensor.CP).Weights))
	}
	if r.tables == nil { // the piece is 0
		return marginals, nil
	}

	// adjoint is, by step and entry, the derivative by the entry. An entry without a shape has none.
	adjoint := make([][]countspace.Poly, len(r.steps))
	adjoint[len(r.steps)-1] = []countspace.Poly{derivative.Scale(r.expression.Scale)}
	for i := len(r.steps) - 1; i >= 0; i-- {
		step := &r.steps[i]
		var err error
		switch step.op {
		case opUnary:
			for entry, p := range r.tables[i] {
				if a := adjoint[i][entry]; a.Shape != nil {
					marginals[step.first][r.termOf(step.first, entry)] = countspace.Dot(a, p, r.ops)
				}
			}
		case opProduct:
			err = r.propagateProduct(step, adjoint, adjoint[i])
		case opSum:
			err = r.propagateSum(step, adjoint, adjoint[i])
		}
		if err != nil {
			return nil, err
		}
		adjoint[i], r.tables[i] = nil, nil
	}
	return marginals, nil
}

// propagateProduct sets adjoint, which has the derivatives by the entries of each step's table, for the two factors of a product step. h is
// the derivative by each entry of the product; an entry without a shape is 0. Factors that are tables of numbers need no derivatives.
func (r *tableRun) propagateProduct(step *step, adjoint [][]countspace.Poly, h []countspace.Poly) error {
	firstFactor, secondFactor := &r.steps[step.first], &r.steps[step.second]
	walk := r.walk(step.scope, firstFactor.scope, secondFactor.scope)
	adjoint[step.first] = make([]countspace.Poly, len(r.tables[step.first]))
	adjoint[step.second] = make([]countspace.Poly, len(r.tables[step.second]))
	for entry := range h {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if h[entry].Shape != nil && !h[entry].IsZero() {
			p, q := r.tables[step.first][walk.Position[0]], r.tables[step.second][walk.Position[1]]
			if firstFactor.op != opTable {
				r.addDerivative(&adjoint[step.first][walk.Position[0]], h[entry], p, q)
			}
			if secondFactor.op != opTable {
				r.addDerivative(&adjoint[step.second][walk.Position[1]], h[entry], q, p)
			}
		}
		walk.Next()
	}
	return nil
}

// addDerivative adds to a sum the derivative of ⟨h, p·q⟩ = Σ_c h[c] (p·q)[c] by the coefficients p[k], which is Σ_j q[j] h[k+j]. It is cut
// to the box of p. A sum without a shape is 0.
func (r *tableRun) addDerivative(sum *countspace.Poly, h, p, q countspace.Poly) {
	if q.IsZero() {
		return
	}
	var derivative countspace.Poly
	if q.Size() == 1 { // q is a number
		derivative = h
		if x := q.Coef.At(0); x != scaled.One {
			derivative = h.Scale(x)
		}
	} else {
		shape := make([]int, len(h.Shape)) // the box of p·q
		for v := range shape {
			shape[v] = p.Shape[v] + q.Shape[v] - 1
		}
		if !areEqual(shape, h.Shape) {
			h = countspace.Crop(h, shape)
		}
		derivative = countspace.Correlate(h, q, r.ops)
	}
	if !areEqual(derivative.Shape, p.Shape) {
		derivative = countspace.Crop(derivative, p.Shape)
	}
	if sum.Shape == nil {
		*sum = derivative
		return
	}
	*sum = sum.Add(derivative)
}

// areEqual reports whether two shapes of the same length are equal.
func areEqual(a, b []int) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// propagateSum sets adjoint[s] for the summand s of a sum step: the derivatives by the entries of its table, which are polynomials. h has
// the derivatives by the entries of the sum; one without a shape is 0. An entry of the summand is added to one entry of the sum, so it has
// the same derivative, cut to the exponents that the entry itself has. A summand that is a table of numbers needs no derivatives.
func (r *tableRun) propagateSum(step *step, adjoint [][]countspace.Poly, h []countspace.Poly) error {
	summand := &r.steps[step.first]
	if summand.op == opTable {
		return nil
	}
	walk := r.walk(summand.scope, step.scope)
	adjoint[step.first] = make([]countspace.Poly, len(r.tables[step.first]))
	for entry, p := range r.tables[step.first] {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if d := h[walk.Position[0]]; d.Shape != nil {
			if !areEqual(d.Shape, p.Shape) {
				d = countspace.Crop(d, p.Shape)
			}
			adjoint[step.first][entry] = d
		}
		walk.Next()
	}
	return nil
}

// walk returns a walk through the combinations of values of a scope. At each one, walk.Position has the index of the entry in every given
// table, whose scope is a part of it.
func (r *tableRun) walk(scope []int, tables ...[]int) *sumproduct.Walk {
	return sumproduct.NewWalk(r.expression.Dims, scope, tables...)
}
