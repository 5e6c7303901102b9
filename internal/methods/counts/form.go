package counts

// The form of a network in count space: its kinds of pieces with their polynomials, and their product.

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Form is a network under evidence in count space: connected pieces, each a polynomial in the count variables.
type Form struct {
	*layout
	pieces     []piece
	kinds      []kind            // of equal pieces
	kindOf     []int32           // by piece
	polys      []countspace.Poly // by kind; those of kinds with tables are empty until computePolys
	isSigned   bool              // a number of the network is below 0
	variableOf []int             // by link: the variable whose weights it has, −1 for none
	memory     int64
	mu         sync.Mutex // of polys
}

// Options bound a contraction.
type Options struct {
	Memory int64 // bytes for count polynomials
}

// NewForm returns a network in count space for a part. Pieces are the connected parts of the network without the part's cores, and kinds
// are the classes of equal pieces. A piece without tables has its polynomial at once, a piece with tables a plan of their elimination.
// Errors: the context's, and one that IsNoForm recognises if a piece cannot be written in this form.
func NewForm(ctx context.Context, net *btn.Network, part *Counts, o Options) (*Form, error) {
	l, err := newLayout(ctx, net, part)
	if err != nil {
		return nil, err
	}
	f := &Form{layout: l, memory: o.Memory, isSigned: HasNegativeNumber(net), variableOf: linkVariables(net)}
	f.pieces = l.findPieces()
	if f.kinds, f.kindOf, err = l.findKinds(ctx, f.pieces); err != nil {
		return nil, err
	}
	f.polys = make([]countspace.Poly, len(f.kinds))
	for k := range f.kinds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		kind := &f.kinds[k]
		if len(kind.cores) > 0 {
			kind.tables, err = l.planNet(ctx, kind.piece)
		} else {
			f.polys[k], err = l.linkPoly(kind.links[0], nil) // a piece without tables has one link; nil: its work is not counted
		}
		if err != nil {
			return nil, fmt.Errorf("counts: link %d: %w", kind.links[0], err)
		}
	}
	return f, nil
}

// HasTables reports whether some piece has tables.
func (f *Form) HasTables() bool {
	for k := range f.kinds {
		if f.kinds[k].tables != nil {
			return true
		}
	}
	return false
}

// HasNegativeNumber reports whether a number of the network is below 0.
func HasNegativeNumber(net *btn.Network) bool {
	for i := range net.Links {
		if tensor.Signed(net.Links[i].T) {
			return true
		}
	}
	for i := range net.Cores {
		if tensor.Signed(net.Cores[i].T) {
			return true
		}
	}
	return false
}

// boxes returns the polynomials of all kinds of pieces for estimates of cost. A polynomial that is not computed yet is replaced by one with
// coefficients 1 at all exponents that it may have, its box. That costs at least as much.
func (f *Form) boxes() []countspace.Poly {
	polys := slices.Clone(f.polys)
	for k := range polys {
		if polys[k].Shape != nil {
			continue
		}
		box := slices.Repeat([]float64{1}, f.countVariables) // its side in each count variable
		for _, link := range f.kinds[k].links {
			for _, leg := range f.net.Links[link].Legs {
				f.widen(box, leg)
			}
		}
		shape := make([]int, f.countVariables)
		for v := range box {
			shape[v] = int(box[v])
		}
		polys[k] = countspace.New(shape)
		for i := range polys[k].Coef.Mant {
			polys[k].Coef.Mant[i] = 1
		}
	}
	return polys
}

// computePolys computes the polynomials of the kinds, classes of equal pieces, that have tables and are not known yet. Others are known
// from the beginning.
func (f *Form) computePolys(ctx context.Context, ops *countspace.Ops) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range f.polys {
		if f.polys[k].Shape != nil {
			continue
		}
		r := &tableRun{layout: f.layout, netPlan: f.kinds[k].tables, ctx: ctx, ops: ops}
		p, err := r.fillTables()
		if err == nil {
			err = ctx.Err() // an unfinished one must not be kept
		}
		if err != nil {
			return err
		}
		f.polys[k] = p
	}
	return nil
}

// Cost bounds the work of the value, or with marginals of the value and all marginals, and computes none of it. A multiply-add is two
// flops. Bytes are those at the peak.
func (f *Form) Cost(marginals bool) query.Cost {
	tableMuladds, tableBytes := 0.0, 0.0
	for k := range f.kinds {
		if f.kinds[k].tables == nil {
			continue
		}
		muladds, bytes := f.kinds[k].tables.cost()
		tableMuladds += muladds
		tableBytes = max(tableBytes, bytes)
	}
	productMuladds, productBytes := f.productCost()
	muladds := productMuladds + tableMuladds
	if marginals { // the way back takes two derivatives of each product; tables are filled again for that, and have adjoints
		muladds = 3*productMuladds + 4*tableMuladds
		tableBytes *= 2
	}
	return query.Cost{Flops: 2 * muladds, Bytes: tableBytes + productBytes}
}

// productCost returns the multiply-adds and the bytes of the product of the polynomials of all pieces.
func (f *Form) productCost() (muladds, bytes float64) {
	if f.countVariables == 1 {
		l := f.plannedLine()
		return l.root.cost(), 3 * l.root.bytes()
	}
	return chainCost(chainFactors(context.Background(), f.boxes(), f.powers(), nil), f.spaceSize())
}

// spaceSize returns the number of coefficients of the whole count space.
func (f *Form) spaceSize() float64 {
	size := 1.0
	for i := range f.slots {
		size *= float64(f.slots[i].poly.Size())
	}
	return size
}

// plannedLine returns the product tree of all kinds for estimates of cost. Polynomials that are not computed yet are replaced by their
// boxes.
func (f *Form) plannedLine() *line {
	return newLine(context.Background(), f.boxes(), f.powers(), nil)
}

// powers returns, by kind, the number of its pieces. Pieces of a kind are equal: in the product of the polynomials of all pieces, that of
// the kind has this power.
func (f *Form) powers() []int {
	powers := make([]int, len(f.kinds))
	for k := range powers {
		powers[k] = f.kinds[k].count
	}
	return powers
}

// spacePoly returns S, the polynomial in all count variables whose coefficient at c is the entry of the symmetric cores at counts c: the
// outer product of the slots' polynomials.
func (f *Form) spacePoly() countspace.Poly {
	s := f.slots[0].poly
	for i := range f.slots[1:] {
		s = outerProduct(s, f.slots[i+1].poly)
	}
	return s
}

// outerProduct returns the polynomial a(y)·b(z), whose variables are those of a, y, and then those of b, z.
func outerProduct(a, b countspace.Poly) countspace.Poly {
	shape := append(append([]int{}, a.Shape...), b.Shape...)
	product := countspace.Poly{Shape: shape, Coef: scaled.NewVector(a.Size() * b.Size())}
	for i := range a.Size() {
		x := a.Coef.At(i)
		for k := range b.Size() {
			product.Coef.Set(i*b.Size()+k, x.Mul(b.Coef.At(k)))
		}
	}
	return product
}

// checkMemory returns an error if the value, or with marginals the value and all marginals, takes more bytes than the memory.
func (f *Form) checkMemory(marginals bool) error {
	if c := f.Cost(marginals); c.Bytes > float64(f.memory) {
		return fault.New(fault.OverBudget,
			"counts: a count space of %.3g coefficients takes %.3g bytes, the budget is %d bytes",
			f.spaceSize(), c.Bytes, f.memory)
	}
	return nil
}
