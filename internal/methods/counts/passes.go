package counts

// The passes over a piece with tables: up for its polynomial, down for the derivatives.

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// run holds the tables of one evaluation, by step: entries over the scope, the last index fastest.
type run struct {
	*layout
	*net
	ctx    context.Context
	ops    *countspace.Ops
	tables [][]countspace.Poly
	only   []int // by link: 1 + the one term that is not 0, 0 for all; nil: all
}

// up fills the tables and returns the polynomial of the piece.
func (r *run) up() (countspace.Poly, error) {
	if r.e.Scale.IsZero() {
		return countspace.Constant(r.vars, scaled.Number{}), nil
	}
	r.tables = make([][]countspace.Poly, len(r.steps))
	for i := range r.steps {
		s := &r.steps[i]
		var err error
		switch s.op {
		case opTable:
			r.tables[i] = r.constants(s)
		case opUnary:
			r.tables[i] = r.unary(s.a)
		case opProduct:
			r.tables[i], err = r.product(s)
		case opSum:
			r.tables[i], err = r.sumOut(s)
		}
		if err != nil {
			return countspace.Poly{}, err
		}
	}
	return r.tables[len(r.steps)-1][0].Scale(r.e.Scale), nil
}

// constants are the entries of a table of the expression, over its scope in ascending sequence.
func (r *run) constants(s *step) []countspace.Poly {
	t := &r.e.Tables[s.a]
	out := make([]countspace.Poly, len(t.Data))
	w := r.walk(s.scope, t.Scope)
	for at := range out {
		from := w.At[0]
		x := scaled.FromFloat(t.Data[from])
		if t.Exp != nil {
			x = scaled.Make(t.Data[from], t.Exp[from])
		}
		out[at] = countspace.Constant(r.vars, x)
		w.Next()
	}
	return out
}

// unary are the polynomials of the terms of a link that its index has.
func (r *run) unary(link int) []countspace.Poly {
	out := make([]countspace.Poly, r.e.Dims[r.net.index[link]])
	for at := range out {
		x := r.termOf(link, at)
		if r.only != nil && r.only[link] > 0 && r.only[link] != x+1 {
			out[at] = countspace.Constant(r.vars, scaled.Number{})
			continue
		}
		out[at] = r.term(r.links[link], x, r.ops)
	}
	return out
}

// termOf is the term of a link that a value of its index is.
func (r *run) termOf(link, at int) int {
	if support := r.e.Support[r.net.index[link]]; support != nil {
		return support[at]
	}
	return at
}

// times is p·q, quick where one of them is a constant.
func (r *run) times(p, q countspace.Poly) countspace.Poly {
	if q.Size() == 1 {
		p, q = q, p
	}
	if p.Size() > 1 {
		return p.Mul(q, r.ops)
	}
	x := p.Coef.At(0)
	r.ops.Add(q.Size())
	switch {
	case x.IsZero():
		return countspace.Constant(r.vars, x)
	case x == scaled.One:
		return q
	}
	return q.Scale(x)
}

// product multiplies two tables.
func (r *run) product(s *step) ([]countspace.Poly, error) {
	w := r.walk(s.scope, r.steps[s.a].scope, r.steps[s.b].scope)
	out := make([]countspace.Poly, int(r.states(s)))
	for at := range out {
		if err := r.ctx.Err(); err != nil {
			return nil, err
		}
		out[at] = r.times(r.tables[s.a][w.At[0]], r.tables[s.b][w.At[1]])
		w.Next()
	}
	return out, nil
}

// sumOut adds the entries of a table up over an index.
func (r *run) sumOut(s *step) ([]countspace.Poly, error) {
	from := &r.steps[s.a]
	w := r.walk(from.scope, s.scope)
	out := make([]countspace.Poly, int(r.states(s)))
	for _, p := range r.tables[s.a] {
		if err := r.ctx.Err(); err != nil {
			return nil, err
		}
		if at := w.At[0]; out[at].Shape == nil {
			out[at] = p
		} else if !p.IsZero() {
			out[at] = out[at].Add(p)
		}
		w.Next()
	}
	return out, nil
}

// down returns M(x) = w(x) ∂⟨h, p⟩/∂w(x) of every term of every link, where p is the polynomial of the
// piece and h a function on its coefficients, over p's box. Tables are let go of on the way.
func (r *run) down(h countspace.Poly) ([][]scaled.Number, error) {
	out := make([][]scaled.Number, len(r.links))
	for k, link := range r.links {
		out[k] = make([]scaled.Number, len(r.layout.net.Links[link].T.(*tensor.CP).Weights))
	}
	if r.tables == nil {
		return out, nil
	}

	adjoint := make([][]countspace.Poly, len(r.steps))
	adjoint[len(r.steps)-1] = []countspace.Poly{h.Scale(r.e.Scale)}
	for i := len(r.steps) - 1; i >= 0; i-- {
		s := &r.steps[i]
		var err error
		switch s.op {
		case opUnary:
			for at, p := range r.tables[i] {
				if a := adjoint[i][at]; a.Shape != nil {
					out[s.a][r.termOf(s.a, at)] = countspace.Dot(a, p, r.ops)
				}
			}
		case opProduct:
			err = r.productDown(s, adjoint, adjoint[i])
		case opSum:
			err = r.sumDown(s, adjoint, adjoint[i])
		}
		if err != nil {
			return nil, err
		}
		adjoint[i], r.tables[i] = nil, nil
	}
	return out, nil
}

// productDown carries the derivative by a product to its factors.
func (r *run) productDown(s *step, adjoint [][]countspace.Poly, h []countspace.Poly) error {
	a, b := &r.steps[s.a], &r.steps[s.b]
	w := r.walk(s.scope, a.scope, b.scope)
	adjoint[s.a] = make([]countspace.Poly, len(r.tables[s.a]))
	adjoint[s.b] = make([]countspace.Poly, len(r.tables[s.b]))
	for at := range h {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if h[at].Shape != nil && !h[at].IsZero() {
			p, q := r.tables[s.a][w.At[0]], r.tables[s.b][w.At[1]]
			// A table that nobody asks of ends here.
			if a.op != opTable {
				r.gather(&adjoint[s.a][w.At[0]], h[at], p, q)
			}
			if b.op != opTable {
				r.gather(&adjoint[s.b][w.At[1]], h[at], q, p)
			}
		}
		w.Next()
	}
	return nil
}

// gather adds the derivative by p of ⟨h, p·q⟩ to a sum.
func (r *run) gather(sum *countspace.Poly, h, p, q countspace.Poly) {
	if q.IsZero() {
		return
	}
	var d countspace.Poly
	if q.Size() == 1 {
		d = h
		if x := q.Coef.At(0); x != scaled.One {
			d = h.Scale(x)
		}
	} else {
		shape := make([]int, len(h.Shape))
		for v := range shape {
			shape[v] = p.Shape[v] + q.Shape[v] - 1
		}
		if !equal(shape, h.Shape) {
			h = countspace.Crop(h, shape)
		}
		d = countspace.Correlate(h, q, r.ops)
	}
	if !equal(d.Shape, p.Shape) {
		d = countspace.Crop(d, p.Shape)
	}
	if sum.Shape == nil {
		*sum = d
		return
	}
	*sum = sum.Add(d)
}

func equal(a, b []int) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// sumDown carries the derivative by a sum to every term.
func (r *run) sumDown(s *step, adjoint [][]countspace.Poly, h []countspace.Poly) error {
	from := &r.steps[s.a]
	if from.op == opTable {
		return nil
	}
	w := r.walk(from.scope, s.scope)
	adjoint[s.a] = make([]countspace.Poly, len(r.tables[s.a]))
	for at, p := range r.tables[s.a] {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if d := h[w.At[0]]; d.Shape != nil {
			if !equal(d.Shape, p.Shape) {
				d = countspace.Crop(d, p.Shape)
			}
			adjoint[s.a][at] = d
		}
		w.Next()
	}
	return nil
}

// walk goes through the values of some indices, with the places in tables over parts of them.
func (r *run) walk(scope []int, tables ...[]int) *sumproduct.Walk {
	return sumproduct.NewWalk(r.e.Dims, scope, tables...)
}
