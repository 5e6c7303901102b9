package buckets

// Kernel: one table out of several, block by block.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

const (
	block     = 1024    // entries of an inner block at most, but for a single axis
	shortOut  = 32      // outputs below are made one by one, along dropped indices
	shareWork = 1 << 16 // operations below which one goroutine does it all
)

// kernel computes out[o] = ⊕_d Π_t in_t[o, d].
type kernel struct {
	logs, largest bool
	in            []operand
	outer, drop   int // combinations
	inner         int
	across        bool // the inner block runs over dropped indices, and outputs are made one by one
}

// operand is an input: where its entries are, by outer, dropped and inner combination.
type operand struct {
	data               []float64
	outer, drop, inner []int
	kind               int
}

// How an operand varies within an inner block.
const (
	constant = iota
	contiguous
	scattered
)

// kernel lays a step out.
func (r *Run) kernel(s *Step, logs bool) *kernel {
	k := &kernel{logs: logs, largest: s.Max}
	size := func(scope []int) int {
		n := 1
		for _, i := range scope {
			n *= r.dims[i]
		}
		return n
	}

	// The inner axes are the last ones of the output, or of the dropped indices.
	split := func(scope []int) (head, tail []int) {
		at, n := len(scope), 1
		for at > 0 && (n == 1 || n*r.dims[scope[at-1]] <= block) {
			at--
			n *= r.dims[scope[at]]
		}
		return scope[:at], scope[at:]
	}
	outer, dropped, inner := s.Out, s.Drop, []int(nil)
	if size(s.Out) < shortOut && size(s.Drop) > size(s.Out) {
		k.across = true
		dropped, inner = split(s.Drop)
	} else {
		outer, inner = split(s.Out)
	}
	k.outer, k.drop, k.inner = size(outer), size(dropped), size(inner)

	for _, t := range s.In {
		in := &r.tables[t]
		sumproduct.Strides(r.stride, r.dims, in.scope)
		o := operand{
			data:  in.data,
			outer: sumproduct.Offsets([]int(nil), r.dims, outer, r.stride),
			drop:  sumproduct.Offsets([]int(nil), r.dims, dropped, r.stride),
			inner: sumproduct.Offsets([]int(nil), r.dims, inner, r.stride),
		}
		for _, i := range in.scope {
			r.stride[i] = 0
		}
		o.kind = kindOf(o.inner)
		k.in = append(k.in, o)
	}

	// Constants first: a zero among them ends a block.
	slices.SortStableFunc(k.in, func(a, b operand) int { return a.kind - b.kind })
	return k
}

// kindOf says how an operand varies.
func kindOf(inner []int) int {
	fixed, running := true, true
	for k, at := range inner {
		fixed, running = fixed && at == 0, running && at == k
	}
	switch {
	case fixed:
		return constant
	case running:
		return contiguous
	}
	return scattered
}

// run fills out; chunks of outer combinations are shared out.
func (k *kernel) run(ctx context.Context, out []float64, threads int) error {
	each := max(1, shareWork/max(1, k.inner*k.drop*len(k.in)))
	chunks := (k.outer + each - 1) / each
	room := make([]space, max(1, min(sumproduct.Threads(threads), chunks)))
	return sumproduct.Share(ctx, len(room), chunks, func(worker, chunk int) error {
		w := &room[worker]
		if w.acc == nil {
			w.acc, w.tmp = make([]float64, k.inner), make([]float64, k.inner)
			w.sum = make([]float64, k.inner)
		}
		for o := chunk * each; o < min(k.outer, (chunk+1)*each); o++ {
			if k.across {
				out[o] = k.one(o, w)
			} else {
				k.block(o, out[o*k.inner:][:k.inner], w)
			}
			if o&63 == 63 && ctx.Err() != nil {
				return ctx.Err()
			}
		}
		return nil
	})
}

// space is the room of one worker.
type space struct{ acc, tmp, sum []float64 }

// product returns the products of all inputs over an inner block, where not all are 0.
func (k *kernel) product(o, d int, w *space) ([]float64, bool) {
	c := 1.0
	if k.logs {
		c = 0
	}
	t := 0
	for ; t < len(k.in) && k.in[t].kind == constant; t++ {
		in := &k.in[t]
		if x := in.data[in.outer[o]+in.drop[d]]; k.logs {
			c += x
		} else {
			c *= x
		}
	}
	if k.logs && math.IsInf(c, -1) || !k.logs && c == 0 {
		return nil, false
	}

	tmp := w.tmp
	if t == len(k.in) {
		for i := range tmp {
			tmp[i] = c
		}
		return tmp, true
	}
	for first := true; t < len(k.in); t++ {
		in := &k.in[t]
		data := in.data[in.outer[o]+in.drop[d]:]
		switch {
		case in.kind == contiguous && k.logs && first:
			for i, x := range data[:len(tmp)] {
				tmp[i] = c + x
			}
		case in.kind == contiguous && k.logs:
			for i, x := range data[:len(tmp)] {
				tmp[i] += x
			}
		case in.kind == contiguous && first:
			for i, x := range data[:len(tmp)] {
				tmp[i] = c * x
			}
		case in.kind == contiguous:
			for i, x := range data[:len(tmp)] {
				tmp[i] *= x
			}
		case k.logs && first:
			for i, at := range in.inner[:len(tmp)] {
				tmp[i] = c + data[at]
			}
		case k.logs:
			for i, at := range in.inner[:len(tmp)] {
				tmp[i] += data[at]
			}
		case first:
			for i, at := range in.inner[:len(tmp)] {
				tmp[i] = c * data[at]
			}
		default:
			for i, at := range in.inner[:len(tmp)] {
				tmp[i] *= data[at]
			}
		}
		first = false
	}
	return tmp, true
}

// block makes the outputs of one inner block.
func (k *kernel) block(o int, out []float64, w *space) {
	nothing := 0.0
	if k.logs {
		nothing = math.Inf(-1)
	}
	for i := range out {
		out[i] = nothing
	}
	clear(w.sum)

	for d := range k.drop {
		tmp, some := k.product(o, d, w)
		if !some {
			continue
		}
		switch {
		case !k.logs:
			for i, x := range tmp {
				out[i] += x
			}
		case k.largest:
			for i, x := range tmp {
				out[i] = max(out[i], x)
			}
		default:
			for i, x := range tmp {
				out[i], w.sum[i] = addLog(out[i], w.sum[i], x)
			}
		}
	}
	if k.logs && !k.largest {
		for i := range out {
			out[i] += math.Log(w.sum[i])
		}
	}
}

// one makes one output, along the dropped indices.
func (k *kernel) one(o int, w *space) float64 {
	top, sum := 0.0, 0.0
	if k.logs {
		top = math.Inf(-1)
	}
	for d := range k.drop {
		tmp, some := k.product(o, d, w)
		if !some {
			continue
		}
		for _, x := range tmp {
			switch {
			case !k.logs:
				top += x
			case k.largest:
				top = max(top, x)
			default:
				top, sum = addLog(top, sum, x)
			}
		}
	}
	if k.logs && !k.largest {
		top += math.Log(sum)
	}
	return top
}

// addLog adds exp(x) to exp(top)·sum, top being the largest so far.
func addLog(top, sum, x float64) (newTop, newSum float64) {
	switch {
	case math.IsInf(x, -1):
		return top, sum
	case x <= top:
		return top, sum + math.Exp(x-top)
	}
	return x, sum*math.Exp(top-x) + 1
}
