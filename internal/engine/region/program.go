package region

// Elimination of small networks, compiled once per shape.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/sumproduct"
)

// program sums out the indices of a network of one shape. Operands are numbered: the tables, then
// the outputs of the steps. The axes of an output are in the reverse order of elimination, the next
// index to go fastest.
type program struct {
	dims   []int
	steps  []step
	buffer int     // entries of all outputs together
	flops  float64 // multiplications and additions
	log2   float64 // log2 of the entries of the largest table touched, the index summed out included
	most   int     // entries of the largest block of a step
}

// step is out[o] = Σ_x b_v(x) Π_k in_k[base_k(o) + x·stride_k] with base_k(o) = outer_k[o / block] +
// inner_k[o % block].
type step struct {
	index   int // v
	out     int // the first entry of the output in the buffer
	size    int // entries of the output
	block   int
	in      []operand
	visible bool // some operand is an output: there is something to propagate backwards
}

// operand is a table, or an earlier result, in one step.
type operand struct {
	from         int // table, or first entry in the buffer
	buffered     bool
	stride       int32 // of v
	inner, outer []int32
}

// cost is what an elimination takes: log2 is of the entries of the largest table touched, entries
// are those of all outputs.
type cost struct{ flops, log2, entries float64 }

// price returns the min-fill order of a network and what eliminating along it costs. It allocates no
// tables. The only error is the context's.
func price(ctx context.Context, dims []int, scopes [][]int) (order []int, c cost, err error) {
	if order, err = contractionorder.MinFill(ctx, contractionorder.Hypergraph{
		Dims: dims, Edges: scopes,
	}); err != nil {
		return nil, cost{}, err
	}
	buckets(dims, scopes, order, func(v int, in []int, union []int, _ [][]int) {
		l := 0.0
		for _, i := range union {
			l += math.Log2(float64(dims[i]))
		}
		c.log2 = max(c.log2, l)
		c.flops += math.Exp2(l) * float64(len(in)+1)
		c.entries += math.Exp2(l) / float64(dims[v])
	})
	return order, c, nil
}

// buckets walks through an elimination: yield is called for every index of order that some table
// has, with the operands multiplied and the union of their scopes, in the reverse order of
// elimination. live holds the scopes of all operands.
func buckets(
	dims []int, scopes [][]int, order []int,
	yield func(v int, in []int, union []int, live [][]int),
) {
	place := make([]int, len(dims))
	for k, v := range order {
		place[v] = k
	}
	live := slices.Clone(scopes)
	bucket := make([][]int, len(dims)) // operands whose next index to go this is
	drop := func(o int) {
		if len(live[o]) > 0 {
			next := live[o][0]
			for _, i := range live[o] {
				if place[i] < place[next] {
					next = i
				}
			}
			bucket[next] = append(bucket[next], o)
		}
	}
	for o := range live {
		drop(o)
	}

	for _, v := range order {
		in := bucket[v]
		if len(in) == 0 {
			continue
		}
		var union []int
		for _, o := range in {
			for _, i := range live[o] {
				if !slices.Contains(union, i) {
					union = append(union, i)
				}
			}
		}
		slices.SortFunc(union, func(a, b int) int { return place[b] - place[a] })
		yield(v, in, union, live)
		live = append(live, union[:len(union)-1])
		drop(len(live) - 1)
	}
}

// maxBlock bounds the entries of a block: what a step holds at once, and its tables of offsets.
const maxBlock = 256

// compile prepares the elimination of networks of a shape along order. Outputs must fit int32: log2
// ≤ 30 (see price).
func compile(dims []int, scopes [][]int, order []int) *program {
	p := &program{dims: slices.Clone(dims)}
	at := make([]int, 0, len(order)) // first entry of every output
	stride := make([]int, len(dims)) // by index, of one operand
	buckets(dims, scopes, order, func(v int, in []int, union []int, live [][]int) {
		out := union[:len(union)-1]
		s := step{index: v, out: p.buffer, size: 1, block: 1}
		split := len(out)
		for split > 0 && s.block*dims[out[split-1]] <= maxBlock {
			split--
			s.block *= dims[out[split]]
		}

		for _, i := range out {
			s.size *= dims[i]
		}
		for _, o := range in {
			sumproduct.Strides(stride, dims, live[o])
			op := operand{from: o, stride: int32(stride[v])}
			if o >= len(scopes) {
				op.buffered, op.from, s.visible = true, at[o-len(scopes)], true
			}
			op.inner = sumproduct.Offsets[int32](nil, dims, out[split:], stride)
			op.outer = sumproduct.Offsets[int32](nil, dims, out[:split], stride)
			for _, i := range live[o] {
				stride[i] = 0
			}
			s.in = append(s.in, op)
		}

		at = append(at, p.buffer)
		p.buffer += s.size
		full := float64(s.size) * float64(dims[v])
		p.flops += full * float64(len(in)+1)
		p.log2 = max(p.log2, math.Log2(full))
		p.most = max(p.most, s.block)
		p.steps = append(p.steps, s)
	})

	return p
}
