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

// Form is a network under evidence in count space.
type Form struct {
	*layout
	kinds  []kind
	piece  []piece
	of     []int32           // kinds of the pieces
	polys  []countspace.Poly // by kind; of those with tables once they were needed
	signed bool
	// The variable whose weights a link has, −1 for none.
	variable []int
	memory   int64
	mu       sync.Mutex // of polys
}

// Options bound a contraction.
type Options struct {
	Memory int64 // bytes for count polynomials
}

// New lays a network out in count space. Errors: the context's, and one that IsForm knows where a piece cannot
// be written in this form.
func New(ctx context.Context, net *btn.Network, part *Counts, o Options) (*Form, error) {
	l, err := newLayout(ctx, net, part)
	if err != nil {
		return nil, err
	}
	f := &Form{layout: l, memory: o.Memory, signed: Signed(net), variable: variables(net)}
	f.piece = l.pieces()
	if f.kinds, f.of, err = l.kinds(ctx, f.piece); err != nil {
		return nil, err
	}
	f.polys = make([]countspace.Poly, len(f.kinds))
	for k := range f.kinds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		kind := &f.kinds[k]
		if len(kind.cores) > 0 {
			kind.wired, err = l.newNet(ctx, kind.piece)
		} else {
			f.polys[k], err = l.plain(kind.links[0], nil)
		}
		if err != nil {
			return nil, fmt.Errorf("counts: link %d: %w", kind.links[0], err)
		}
	}
	return f, nil
}

// Wired reports whether some piece has tables.
func (f *Form) Wired() bool {
	for k := range f.kinds {
		if f.kinds[k].wired != nil {
			return true
		}
	}
	return false
}

// Signed reports whether a number of the network is below 0.
func Signed(net *btn.Network) bool {
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

// shapes are the polynomials of all kinds; ones over their boxes where they are not computed yet.
func (f *Form) shapes() []countspace.Poly {
	out := slices.Clone(f.polys)
	for k := range out {
		if out[k].Shape != nil {
			continue
		}
		box := slices.Repeat([]float64{1}, f.vars)
		for _, link := range f.kinds[k].links {
			for _, leg := range f.net.Links[link].Legs {
				f.widen(box, leg)
			}
		}
		shape := make([]int, f.vars)
		for v := range box {
			shape[v] = int(box[v])
		}
		out[k] = countspace.New(shape)
		for i := range out[k].Coef.Mant {
			out[k].Coef.Mant[i] = 1
		}
	}
	return out
}

// fill computes the polynomials of the kinds that have tables.
func (f *Form) fill(ctx context.Context, ops *countspace.Ops) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range f.polys {
		if f.polys[k].Shape != nil {
			continue
		}
		r := &run{layout: f.layout, net: f.kinds[k].wired, ctx: ctx, ops: ops}
		p, err := r.up()
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

// Cost bounds the work of the value, without computing any of it: flops of the value alone, and with
// all marginals, and the bytes at the peak. A multiply-add is two flops.
func (f *Form) Cost(marginals bool) query.Cost {
	muladds, wired, bytes := 0.0, 0.0, 0.0
	for k := range f.kinds {
		if f.kinds[k].wired == nil {
			continue
		}
		m, b := f.kinds[k].wired.cost()
		wired += m
		bytes = max(bytes, b)
	}
	m, b := f.productCost()
	muladds = m + wired
	if marginals {
		muladds = 3*m + 4*wired
		bytes *= 2
	}
	return query.Cost{Flops: 2 * muladds, Bytes: bytes + b}
}

// productCost is the multiply-adds and bytes of the product of all kinds.
func (f *Form) productCost() (muladds, bytes float64) {
	if f.vars == 1 {
		l := f.blank()
		return l.root.cost(), 3 * l.root.bytes()
	}
	return chainCost(factors(context.Background(), f.shapes(), f.powers(), nil), f.size())
}

// size is the number of coefficients of the whole count space.
func (f *Form) size() float64 {
	size := 1.0
	for i := range f.slots {
		size *= float64(f.slots[i].s.Size())
	}
	return size
}

// blank is the line of all kinds, where kinds with tables need not be computed.
func (f *Form) blank() *line {
	return newLine(context.Background(), f.shapes(), f.powers(), nil)
}

// powers lists the number of pieces of every kind.
func (f *Form) powers() []int {
	powers := make([]int, len(f.kinds))
	for k := range powers {
		powers[k] = f.kinds[k].members
	}
	return powers
}

// space returns S over the count variables of all slots.
func (f *Form) space() countspace.Poly {
	s := f.slots[0].s
	for i := range f.slots[1:] {
		s = outer(s, f.slots[i+1].s)
	}
	return s
}

// outer returns a(y)·b(z), a polynomial in the variables of both.
func outer(a, b countspace.Poly) countspace.Poly {
	shape := append(append([]int{}, a.Shape...), b.Shape...)
	out := countspace.Poly{Shape: shape, Coef: scaled.NewVector(a.Size() * b.Size())}
	for i := range a.Size() {
		x := a.Coef.At(i)
		for k := range b.Size() {
			out.Coef.Set(i*b.Size()+k, x.Mul(b.Coef.At(k)))
		}
	}
	return out
}

// fits refuses a value that does not fit the memory.
func (f *Form) fits(marginals bool) error {
	if c := f.Cost(marginals); c.Bytes > float64(f.memory) {
		return fault.New(fault.OverBudget,
			"counts: a count space of %.3g coefficients takes %.3g bytes, the budget is %d bytes",
			f.size(), c.Bytes, f.memory)
	}
	return nil
}
