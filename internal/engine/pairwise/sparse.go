package pairwise

// ContractSparse: the same contraction over the entries that are not 0.

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// SparseStats is what a sparse contraction took.
type SparseStats struct {
	Products float64 // pairs of entries multiplied, of all slices
	// PeakBytes is most memory for tables and the indexes of joins at once,
	// the expression included.
	PeakBytes int64
	Largest   int // entries of the largest table
}

// Density is the share of the entries of e's tables that are not 0; 1 without tables.
// Below a tenth ContractSparse is worth trying, with a budget.
func Density(e *sumproduct.Expression) float64 {
	all, some := 0, 0
	for _, t := range e.Tables {
		all += len(t.Data)
		for _, x := range t.Data {
			if x != 0 {
				some++
			}
		}
	}
	if all == 0 {
		return 1
	}
	return float64(some) / float64(all)
}

// ContractSparse returns what Contract does. Tables are lists of keys and values of the entries
// that are not 0, merges hash joins that add up products as they come: their cost is the pairs of
// entries that agree on the common indices, not the size of tables, and it is not known beforehand.
// Memory is bounded while it runs: before a list or an index grows over the budget, it ends with
// sumproduct.ErrOverBudget. One thread; the sequence of all sums is fixed, and the result has the
// same bits on every call. Rounding differs from Contract's.
//
// Errors as for Contract; sumproduct.ErrOverBudget too for tables whose keys exceed 64 bits.
func ContractSparse(
	ctx context.Context, e *sumproduct.Expression, t contractionorder.Tree, o Options,
) (scaled.Number, SparseStats, error) {
	r, err := prepare(ctx, e, t, o)
	if err != nil {
		return scaled.Number{}, SparseStats{}, err
	}
	x := &sparse{
		run:    r,
		limit:  budget(o.Memory),
		live:   8 * (r.shape.raw + r.copied),
		tables: make([]entries, len(r.shape.scope)),
	}
	r.digits = make([]int, len(r.shape.dims))
	if err := x.grow(0); err != nil {
		return scaled.Number{}, SparseStats{}, err
	}
	z, err := x.sumSlices(r.shape.forward())
	x.stats.PeakBytes = int64(x.peak)
	return z, x.stats, err
}

// entries is a table: value[i] at key[i], a key being the digits of the indices in bit fields.
type entries struct {
	fields []field
	key    []uint64
	value  []float64
}

// field says where the digit of an index is in a key.
type field struct{ index, shift, width int }

// bytes is the size of a table.
func (t *entries) bytes() float64 { return 16 * float64(cap(t.key)) }

// sparse carries one ContractSparse.
type sparse struct {
	run    *run
	tables []entries
	limit  float64 // bytes
	live   float64 // bytes
	peak   float64 // bytes
	stats  SparseStats
	join   join
}

// grow takes bytes, or refuses.
func (x *sparse) grow(bytes float64) error {
	if x.live+bytes > x.limit {
		return fault.New(fault.OverBudget,
			"%w: the sparse contraction needs more than %.0f bytes of tables, "+
				"%d entries in the largest so far",
			sumproduct.ErrOverBudget, x.limit, x.stats.Largest)
	}
	x.live += bytes
	x.peak = max(x.peak, x.live)
	return nil
}

// free gives up a table.
func (x *sparse) free(t int) {
	x.live -= x.tables[t].bytes()
	x.tables[t] = entries{}
}

// sumSlices runs a program and returns the sum over its slices.
func (x *sparse) sumSlices(p *program) (scaled.Number, error) {
	r := x.run
	common := r.start
	if err := x.do(p.before, &common); err != nil {
		return scaled.Number{}, err
	}
	var sum accumulator
	for n := r.from; n < r.to; n++ {
		r.place(n)
		r.value = scaled.One
		scale := common
		if err := x.do(p.each, &scale); err != nil {
			return scaled.Number{}, err
		}
		sum.add(scale.Mul(r.value))
		for t := range x.tables { // what a slice that is 0 has left
			if !r.shape.static[t] {
				x.free(t)
			}
		}
	}
	return sum.total(), nil
}

// do executes operations, as run.do does.
func (x *sparse) do(ops []op, scale *scaled.Number) error {
	for _, o := range ops {
		if scale.IsZero() {
			return nil
		}
		if err := x.run.ctx.Err(); err != nil {
			return err
		}
		switch o.code {
		case opLoad:
			if err := x.load(o.out); err != nil {
				return err
			}
			*scale = scale.Mul(x.settle(o.out))
		case opMerge, opTake:
			if err := x.merge(o.a, o.b, o.out); err != nil {
				return err
			}
			*scale = scale.Mul(x.settle(o.out))
		case opMove:
			if o.a != o.out {
				x.free(o.a)
			}
		case opFree:
			x.free(o.a)
		case opDone:
			x.run.value = scaled.Number{}
			if t := x.tables[o.a]; len(t.value) > 0 {
				x.run.value = scaled.FromFloat(t.value[0])
			}
		}
	}
	return nil
}

// settle drops entries that became 0 and divides by the power of two of the largest,
// which it returns; 0 for no entries.
func (x *sparse) settle(t int) scaled.Number {
	e := &x.tables[t]
	n := 0
	for i, v := range e.value {
		if v != 0 {
			e.key[n] = e.key[i]
			e.value[n] = v
			n++
		}
	}
	e.key = e.key[:n]
	e.value = e.value[:n]

	x.stats.Largest = max(x.stats.Largest, n)
	top := scaled.LargestBits(e.value)
	if top == 0 {
		return scaled.Number{}
	}
	return scaled.Rescale(e.value, top)
}

// fields lays out keys over a scope, those that stay longest in the lowest bits.
func (x *sparse) fields(scope []int) ([]field, error) {
	s := x.run.shape
	order := slices.Clone(scope)
	slices.SortFunc(order, s.longLived)
	out := make([]field, len(order))
	at := 0
	for i := len(order) - 1; i >= 0; i-- {
		w := bits.Len(uint(s.dims[order[i]] - 1))
		out[i] = field{order[i], at, w}
		at += w
	}

	if at > 64 {
		return nil, fault.New(fault.OverBudget,
			"%w: a sparse table over %d indices has keys of %d bits, 64 are possible",
			sumproduct.ErrOverBudget, len(scope), at)
	}
	return out, nil
}

// load lists the entries of a leaf in the slice,
// adding up those that differ only in indices it alone has.
func (x *sparse) load(leaf int) error {
	s := x.run.shape
	fields, err := x.fields(s.scope[leaf])
	if err != nil {
		return err
	}

	l := s.rawLayout(leaf)
	axes := make([]axis, len(l.index))
	for i, v := range l.index {
		axes[i] = axis{index: v, dim: s.dims[v], stride: [2]int{l.stride[i], 0}}
	}

	shift := make([]int, len(axes))
	for i, a := range axes {
		shift[i] = -1
		for _, f := range fields {
			if f.index == a.index {
				shift[i] = f.shift
			}
		}
	}

	data := x.run.raw[leaf].data[x.run.base(leaf):]
	sum := newSums(x, len(s.alone[leaf]) > 0)
	var at odometer
	at.seek(axes, 0)

	for range count(axes) {
		if v := data[at.off[0]]; v != 0 {
			key := uint64(0)
			for i, d := range at.at {
				if shift[i] >= 0 {
					key |= uint64(d) << shift[i]
				}
			}
			if err := sum.add(key, v); err != nil {
				return err
			}
		}
		at.next()
	}
	x.tables[leaf] = sum.table(fields)
	return nil
}

// sums collects entries; with equal keys possible,
// through a hash index in the sequence of their first appearance.
type sums struct {
	x     *sparse
	out   entries
	slots []uint32 // number of an entry plus 1, 0 for none; nil when keys are distinct
	shift int      // of the hash, which leaves the bits of a slot
}

// newSums begins an empty table; repeated says that keys may come more than once.
func newSums(x *sparse, repeated bool) *sums {
	s := &sums{x: x}
	if repeated {
		s.slots = make([]uint32, 64)
		s.shift = 64 - 6
	}
	return s
}

const golden = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio: Fibonacci hashing

// add adds v at key.
func (s *sums) add(key uint64, v float64) error {
	if s.slots != nil {
		for h := key * golden >> s.shift; ; h = (h + 1) & uint64(len(s.slots)-1) {
			i := s.slots[h]
			if i == 0 {
				s.slots[h] = uint32(len(s.out.key) + 1)
				break
			}
			if s.out.key[i-1] == key {
				s.out.value[i-1] += v
				return nil
			}
		}
	}

	if len(s.out.key) == cap(s.out.key) {
		if err := s.more(); err != nil {
			return err
		}
	}
	s.out.key = append(s.out.key, key)
	s.out.value = append(s.out.value, v)

	if s.slots != nil && 2*len(s.out.key) > len(s.slots) {
		return s.rehash()
	}
	return nil
}

// more doubles the room for entries. While they are copied, both are live.
func (s *sums) more() error {
	old := s.out.bytes()
	n := max(16, 2*cap(s.out.key))
	if n >= math.MaxUint32 {
		return fault.New(fault.OverBudget, "%w: a sparse table of %d entries",
			sumproduct.ErrOverBudget, n)
	}
	if err := s.x.grow(16 * float64(n)); err != nil {
		return err
	}

	key := make([]uint64, len(s.out.key), n)
	value := make([]float64, len(s.out.value), n)
	copy(key, s.out.key)
	copy(value, s.out.value)
	s.out.key = key
	s.out.value = value
	s.x.live -= old
	return nil
}

// rehash doubles the slots.
func (s *sums) rehash() error {
	n := 2 * len(s.slots)
	if err := s.x.grow(4 * float64(n)); err != nil {
		return err
	}
	s.x.live -= 4 * float64(len(s.slots))
	if len(s.slots) == 64 {
		s.x.live += 256 // the first slots were not counted
	}

	s.slots = make([]uint32, n)
	s.shift--
	for i, key := range s.out.key {
		h := key * golden >> s.shift
		for s.slots[h] != 0 {
			h = (h + 1) & uint64(n-1)
		}
		s.slots[h] = uint32(i + 1)
	}
	return nil
}

// table ends the collection.
func (s *sums) table(fields []field) entries {
	if len(s.slots) > 64 {
		s.x.live -= 4 * float64(len(s.slots))
	}
	s.out.fields = fields
	return s.out
}
