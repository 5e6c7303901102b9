package buckets

// Kernel: one table out of several, block by block.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

const (
	maxBlock  = 1024    // most entries of an inner block, unless it has a single axis
	shortOut  = 32      // an output of fewer entries is computed entry by entry, in blocks of dropped indices
	shareWork = 1 << 16 // operations below which one goroutine does it all
)

// Kernel computes out[o] = ⊕_d Π_t in_t[o, d], where ⊕ is a sum or a maximum. It has the positions of the entries of the tables, and serves
// any tables of its shape. The innermost loops run over blocks: combinations of the last axes of the output, or of the last dropped
// indices.
type Kernel struct {
	In    []Operand
	Outer int // number of combinations of the axes of the output that are not in blocks
	Drops int // number of combinations of the dropped indices that are not in blocks
	Inner int // number of entries of a block
	// runsOverDropped is set if blocks run over dropped indices. Then the output is computed entry by entry.
	runsOverDropped bool
}

// Operand is an input of a kernel. Its entry for the outer combination o, the dropped combination d and entry i of the block is at
// Outer[o] + Drop[d] + Inner[i].
type Operand struct {
	Table       int // its number
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

// NewKernel returns the kernel of a step. scopes has the indices of all tables. Blocks run over the last axes of the output. If
// mayRunOverDropped is set, and the output is small and has fewer entries than each of them has terms, they run over the last dropped
// indices. stride is scratch space by index, 0 before and after. Tables have fewer than 2^31 entries.
func NewKernel(dims []int, s *Step, scopes [][]int, mayRunOverDropped bool, stride []int) *Kernel {
	entries, terms := sumproduct.Size(dims, s.Out), sumproduct.Size(dims, s.Drop) // of the output; of each of its entries
	k := &Kernel{runsOverDropped: mayRunOverDropped && entries < shortOut && terms > entries}
	outer, dropped, inner := s.Out, s.Drop, []int(nil)
	if k.runsOverDropped {
		dropped, inner = splitOffBlock(dims, s.Drop)
	} else {
		outer, inner = splitOffBlock(dims, s.Out)
	}
	k.Outer, k.Drops, k.Inner = sumproduct.Size(dims, outer), sumproduct.Size(dims, dropped), sumproduct.Size(dims, inner)

	// The positions of the entries of each input.
	for _, t := range s.In {
		sumproduct.Strides(stride, dims, scopes[t]) // 0 for indices that the table does not have
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

	// Constants first: if one is 0, Product skips the block.
	slices.SortStableFunc(k.In, func(a, b Operand) int { return a.kind - b.kind })
	return k
}

// splitOffBlock divides a scope into the last indices, which have at most maxBlock combinations of values or are a single one, and the
// indices before.
func splitOffBlock(dims, scope []int) (before, block []int) {
	first, n := len(scope), 1
	for first > 0 && (n == 1 || n*dims[scope[first-1]] <= maxBlock) {
		first--
		n *= dims[scope[first]]
	}
	return scope[:first], scope[first:]
}

// kindOf returns how an operand varies within a block, given the offset of each entry of the block in it.
func kindOf(offsets []int32) int {
	isConstant, isContiguous := true, true
	for k, offset := range offsets {
		isConstant, isContiguous = isConstant && offset == 0, isContiguous && int(offset) == k
	}
	switch {
	case isConstant:
		return constant
	case isContiguous:
		return contiguous
	}
	return scattered
}

// filling is a kernel with the tables of a step.
type filling struct {
	*Kernel
	tables    [][]float64 // by number
	useLogs   bool        // tables and output have logarithms
	maximises bool        // ⊕ is a maximum; else it is a sum
}

// run computes all entries of out. An outer combination is a choice of values of the output's indices outside a block. Goroutines share
// chunks of outer combinations.
func (k *filling) run(ctx context.Context, out []float64, threads int) error {
	workOfOuter := k.Inner * k.Drops * len(k.In) // an operation for each input of each term
	chunkSize := max(1, shareWork/max(1, workOfOuter))
	chunks := (k.Outer + chunkSize - 1) / chunkSize
	workspaces := make([]workspace, max(1, min(sumproduct.Threads(threads), chunks)))
	return sumproduct.RunChunks(ctx, len(workspaces), chunks, func(worker, chunk int) error {
		w := &workspaces[worker]
		if w.products == nil {
			w.products, w.sums = make([]float64, k.Inner), make([]float64, k.Inner)
		}
		for o := chunk * chunkSize; o < min(k.Outer, (chunk+1)*chunkSize); o++ {
			if k.runsOverDropped {
				out[o] = k.computeEntry(o, w)
			} else {
				k.computeBlock(o, out[o*k.Inner:][:k.Inner], w)
			}
			if o&63 == 63 && ctx.Err() != nil { // looked at once in 64 times
				return ctx.Err()
			}
		}
		return nil
	})
}

// workspace is the scratch space of one worker, with a number for each entry of a block.
type workspace struct {
	products []float64 // the products of all inputs
	sums     []float64 // of exponentials relative to the largest logarithm (addLog)
}

// Product sets products[i] to the product of all inputs at entry i of a block, or to the sum of their logarithms if useLogs is set. o is
// the combination of values of the output's indices outside a block, and d that of the dropped indices. It returns false, and leaves
// products as they are, if an input that is constant within the block is 0, and so are all products.
func (k *Kernel) Product(tables [][]float64, o, d int, useLogs bool, products []float64) bool {
	// The inputs that are constant within the block are one factor, or one sum of logarithms. They come first in k.In.
	factor := 1.0
	if useLogs {
		factor = 0
	}
	t := 0
	for ; t < len(k.In) && k.In[t].kind == constant; t++ {
		in := &k.In[t]
		if x := tables[in.Table][in.Outer[o]+in.Drop[d]]; useLogs {
			factor += x
		} else {
			factor *= x
		}
	}
	isZero := useLogs && math.IsInf(factor, -1) || !useLogs && factor == 0
	if isZero {
		return false
	}

	if t == len(k.In) {
		for i := range products {
			products[i] = factor
		}
		return true
	}

	// The first of the other inputs sets the products, the rest are multiplied in.
	for isFirst := true; t < len(k.In); t++ {
		in := &k.In[t]
		data := tables[in.Table][in.Outer[o]+in.Drop[d]:]
		if useLogs {
			in.addLogs(products, data, factor, isFirst)
		} else {
			in.multiply(products, data, factor, isFirst)
		}
		isFirst = false
	}
	return true
}

// multiply multiplies the entries of an input into the products of a block. If isFirst is set, it sets them to factor times the input's.
// data begins at the input's first entry of the block.
func (in *Operand) multiply(products, data []float64, factor float64, isFirst bool) {
	switch {
	case in.kind == contiguous && isFirst:
		for i, x := range data[:len(products)] {
			products[i] = factor * x
		}
	case in.kind == contiguous:
		for i, x := range data[:len(products)] {
			products[i] *= x
		}
	case isFirst:
		for i, offset := range in.Inner[:len(products)] {
			products[i] = factor * data[offset]
		}
	default:
		for i, offset := range in.Inner[:len(products)] {
			products[i] *= data[offset]
		}
	}
}

// addLogs adds the logarithms of an input to those of a block's products. If isFirst is set, it sets them to factor plus the input's.
// data begins at the input's first entry of the block.
func (in *Operand) addLogs(products, data []float64, factor float64, isFirst bool) {
	switch {
	case in.kind == contiguous && isFirst:
		for i, x := range data[:len(products)] {
			products[i] = factor + x
		}
	case in.kind == contiguous:
		for i, x := range data[:len(products)] {
			products[i] += x
		}
	case isFirst:
		for i, offset := range in.Inner[:len(products)] {
			products[i] = factor + data[offset]
		}
	default:
		for i, offset := range in.Inner[:len(products)] {
			products[i] += data[offset]
		}
	}
}

// computeBlock sets out, a block of the output, to the sums or maxima over all combinations of values of the dropped indices. o is the
// block's outer combination: the values of the output's indices outside a block.
func (k *filling) computeBlock(o int, out []float64, w *workspace) {
	zero := 0.0
	if k.useLogs {
		zero = math.Inf(-1)
	}
	for i := range out {
		out[i] = zero
	}
	clear(w.sums)

	for d := range k.Drops {
		if !k.Product(k.tables, o, d, k.useLogs, w.products) {
			continue // all products are 0
		}
		switch {
		case !k.useLogs:
			for i, x := range w.products {
				out[i] += x
			}
		case k.maximises:
			for i, x := range w.products {
				out[i] = max(out[i], x)
			}
		default:
			for i, x := range w.products {
				out[i], w.sums[i] = addLog(out[i], w.sums[i], x)
			}
		}
	}
	if k.useLogs && !k.maximises {
		for i := range out {
			out[i] += math.Log(w.sums[i])
		}
	}
}

// computeEntry returns entry o of the output: the sum or the maximum over all combinations of values of the dropped indices. It goes
// through them block by block.
func (k *filling) computeEntry(o int, w *workspace) float64 {
	result := 0.0 // for sums of logarithms, the largest so far
	sum := 0.0    // for sums of logarithms, Σ exp(x − result)
	if k.useLogs {
		result = math.Inf(-1)
	}
	for d := range k.Drops {
		if !k.Product(k.tables, o, d, k.useLogs, w.products) {
			continue // all products are 0
		}
		for _, x := range w.products {
			switch {
			case !k.useLogs:
				result += x
			case k.maximises:
				result = max(result, x)
			default:
				result, sum = addLog(result, sum, x)
			}
		}
	}
	if k.useLogs && !k.maximises {
		result += math.Log(sum)
	}
	return result
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
