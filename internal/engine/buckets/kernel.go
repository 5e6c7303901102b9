package buckets

// Kernel: one table out of several, block by block.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

const (
	maxBlock  = 1024    // entries of an inner block at most, but for a single axis
	shortOut  = 32      // outputs below are made one by one, along dropped indices
	shareWork = 1 << 16 // operations below which one goroutine does it all
)

// Kernel computes out[o] = ⊕_d Π_t in_t[o, d], where ⊕ is a sum or a maximum. It has the positions of the entries of the tables, and serves
// any tables of its shape.
type Kernel struct {
	In           []Operand
	Outer, Drops int  // combinations of the outer axes of the output, and of the dropped indices outside of blocks
	Inner        int  // entries of a block
	across       bool // blocks run over dropped indices, and the output is computed entry by entry
}

// Operand is an input: the offsets of its entries, by outer, dropped and inner combination.
type Operand struct {
	Table       int
	Outer, Drop []int
	Inner       []int32
	kind        int // constant, contiguous or scattered
}

// How an operand varies within a block.
const (
	constant   = iota // not at all
	contiguous        // its entries are neighbours, in the sequence of the block
	scattered         // otherwise
)

// NewKernel returns the kernel of a step with tables over these scopes. Blocks run over the last axes of the output. If across is set, and
// the output is small and has fewer entries than it has terms, they run over the last dropped indices. stride is scratch space by index, 0
// before and after. Tables have fewer than 2^31 entries.
func NewKernel(dims []int, s *Step, scopes [][]int, across bool, stride []int) *Kernel {
	split := func(scope []int) (head, tail []int) {
		at, n := len(scope), 1
		for at > 0 && (n == 1 || n*dims[scope[at-1]] <= maxBlock) {
			at--
			n *= dims[scope[at]]
		}
		return scope[:at], scope[at:]
	}
	k := &Kernel{across: across && sumproduct.Size(dims, s.Out) < shortOut && sumproduct.Size(dims, s.Drop) > sumproduct.Size(dims, s.Out)}
	outer, dropped, inner := s.Out, s.Drop, []int(nil)
	if k.across {
		dropped, inner = split(s.Drop)
	} else {
		outer, inner = split(s.Out)
	}
	k.Outer, k.Drops, k.Inner = sumproduct.Size(dims, outer), sumproduct.Size(dims, dropped), sumproduct.Size(dims, inner)

	for _, t := range s.In {
		sumproduct.Strides(stride, dims, scopes[t])
		o := Operand{
			Table: t,
			Outer: sumproduct.Offsets([]int(nil), dims, outer, stride),
			Drop:  sumproduct.Offsets([]int(nil), dims, dropped, stride),
			Inner: sumproduct.Offsets([]int32(nil), dims, inner, stride),
		}
		for _, i := range scopes[t] {
			stride[i] = 0
		}
		o.kind = kindOf(o.Inner)
		k.In = append(k.In, o)
	}

	// Constants first: a zero among them ends a block.
	slices.SortStableFunc(k.In, func(a, b Operand) int { return a.kind - b.kind })
	return k
}

// kindOf returns how an operand with these offsets varies within a block.
func kindOf(inner []int32) int {
	fixed, running := true, true
	for k, at := range inner {
		fixed, running = fixed && at == 0, running && int(at) == k
	}
	switch {
	case fixed:
		return constant
	case running:
		return contiguous
	}
	return scattered
}

// filling is a kernel with the tables of a step.
type filling struct {
	*Kernel
	tables           [][]float64
	useLogs, largest bool
}

// run computes all of out. Goroutines share chunks of outer combinations.
func (k *filling) run(ctx context.Context, out []float64, threads int) error {
	each := max(1, shareWork/max(1, k.Inner*k.Drops*len(k.In)))
	chunks := (k.Outer + each - 1) / each
	room := make([]workspace, max(1, min(sumproduct.Threads(threads), chunks)))
	return sumproduct.Share(ctx, len(room), chunks, func(worker, chunk int) error {
		w := &room[worker]
		if w.tmp == nil {
			w.tmp, w.sum = make([]float64, k.Inner), make([]float64, k.Inner)
		}
		for o := chunk * each; o < min(k.Outer, (chunk+1)*each); o++ {
			if k.across {
				out[o] = k.computeEntry(o, w)
			} else {
				k.computeBlock(o, out[o*k.Inner:][:k.Inner], w)
			}
			if o&63 == 63 && ctx.Err() != nil {
				return ctx.Err()
			}
		}
		return nil
	})
}

// workspace is the scratch space of one worker.
type workspace struct{ tmp, sum []float64 }

// Product sets tmp to the products of all inputs over a block; if useLogs, to the sums of their logarithms. It returns false, and leaves
// tmp as it is, if a constant input is 0 and so are all products.
func (k *Kernel) Product(tables [][]float64, o, d int, useLogs bool, tmp []float64) bool {
	c := 1.0
	if useLogs {
		c = 0
	}
	t := 0
	for ; t < len(k.In) && k.In[t].kind == constant; t++ {
		in := &k.In[t]
		if x := tables[in.Table][in.Outer[o]+in.Drop[d]]; useLogs {
			c += x
		} else {
			c *= x
		}
	}
	if useLogs && math.IsInf(c, -1) || !useLogs && c == 0 {
		return false
	}

	if t == len(k.In) {
		for i := range tmp {
			tmp[i] = c
		}
		return true
	}
	for first := true; t < len(k.In); t++ {
		in := &k.In[t]
		data := tables[in.Table][in.Outer[o]+in.Drop[d]:]
		switch {
		case useLogs:
			in.addTo(tmp, data, c, first)
		case in.kind == contiguous && first:
			for i, x := range data[:len(tmp)] {
				tmp[i] = c * x
			}
		case in.kind == contiguous:
			for i, x := range data[:len(tmp)] {
				tmp[i] *= x
			}
		case first:
			for i, at := range in.Inner[:len(tmp)] {
				tmp[i] = c * data[at]
			}
		default:
			for i, at := range in.Inner[:len(tmp)] {
				tmp[i] *= data[at]
			}
		}
		first = false
	}
	return true
}

// addTo adds the operand's logarithms to a block; if first, it sets the block to their sums with c.
func (in *Operand) addTo(tmp, data []float64, c float64, first bool) {
	switch {
	case in.kind == contiguous && first:
		for i, x := range data[:len(tmp)] {
			tmp[i] = c + x
		}
	case in.kind == contiguous:
		for i, x := range data[:len(tmp)] {
			tmp[i] += x
		}
	case first:
		for i, at := range in.Inner[:len(tmp)] {
			tmp[i] = c + data[at]
		}
	default:
		for i, at := range in.Inner[:len(tmp)] {
			tmp[i] += data[at]
		}
	}
}

// computeBlock computes the entries of the output in one inner block.
func (k *filling) computeBlock(o int, out []float64, w *workspace) {
	zero := 0.0
	if k.useLogs {
		zero = math.Inf(-1)
	}
	for i := range out {
		out[i] = zero
	}
	clear(w.sum)

	for d := range k.Drops {
		if !k.Product(k.tables, o, d, k.useLogs, w.tmp) {
			continue
		}
		switch {
		case !k.useLogs:
			for i, x := range w.tmp {
				out[i] += x
			}
		case k.largest:
			for i, x := range w.tmp {
				out[i] = max(out[i], x)
			}
		default:
			for i, x := range w.tmp {
				out[i], w.sum[i] = addLog(out[i], w.sum[i], x)
			}
		}
	}
	if k.useLogs && !k.largest {
		for i := range out {
			out[i] += math.Log(w.sum[i])
		}
	}
}

// computeEntry computes one entry of the output, in blocks along the dropped indices.
func (k *filling) computeEntry(o int, w *workspace) float64 {
	top, sum := 0.0, 0.0
	if k.useLogs {
		top = math.Inf(-1)
	}
	for d := range k.Drops {
		if !k.Product(k.tables, o, d, k.useLogs, w.tmp) {
			continue
		}
		for _, x := range w.tmp {
			switch {
			case !k.useLogs:
				top += x
			case k.largest:
				top = max(top, x)
			default:
				top, sum = addLog(top, sum, x)
			}
		}
	}
	if k.useLogs && !k.largest {
		top += math.Log(sum)
	}
	return top
}

// addLog adds exp(x) to exp(top)·sum, where top is the largest logarithm so far. It returns the new total in the same form.
func addLog(top, sum, x float64) (newTop, newSum float64) {
	switch {
	case math.IsInf(x, -1):
		return top, sum
	case x <= top:
		return top, sum + math.Exp(x-top)
	}
	return x, sum*math.Exp(top-x) + 1
}
