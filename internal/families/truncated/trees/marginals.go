package trees

// Marginals: with its projectors held fixed a contraction is a sequence of products, and Z is
// linear in every tensor. One pass back over the sequence gives ∂Z/∂T for every table, up to a
// factor.

// step is one product on the tape: a merge, or node out times a projector.
type step struct {
	merging *merging
	in      [2][]float64 // what was merged
	out     int32        // the node that was made

	projector  []float64 // rows × cols
	rows, cols int
	// of the node before: layout is the axes in sequence, the bundle last; dims those of all axes
	layout, dims []int
}

// marginals runs the tape backwards and reads every index at the smallest table that has it.
func (r *run) marginals() error {
	adjoint := make([][]float64, len(r.n.node))
	for i, nd := range r.n.node {
		if nd.alive {
			adjoint[i] = r.Get(1)
			adjoint[i][0] = 1
		}
	}

	for len(r.tape) > 0 {
		if err := r.ctx.Err(); err != nil {
			return err
		}

		s := r.tape[len(r.tape)-1]
		r.tape[len(r.tape)-1] = step{}
		r.tape = r.tape[:len(r.tape)-1]

		if s.merging == nil {
			adjoint[s.out] = r.backProject(s, adjoint[s.out])
			continue
		}

		m := s.merging

		// ∂Z/∂A = ∂Z/∂C · B, and the other way round:
		// the product with the result in the place of one input.
		given := array{adjoint[s.out], m.out}
		for k, i := range m.operand {
			if i < 0 {
				continue
			}
			out := array{r.Get(len(s.in[k])), m.labels[k]}
			r.product(out, given, array{s.in[1-k], m.labels[1-k]}, m.dims)
			if _, err := rescale(out.data); err != nil && err != errZero {
				return err
			}
			adjoint[i] = out.data
		}

		for k, i := range m.operand {
			if i >= 0 {
				r.Put(s.in[k])
			}
		}
		r.Put(adjoint[s.out])
		adjoint[s.out] = nil
	}

	r.read(adjoint)
	return nil
}

// backProject is the derivative by a node before a projector was applied to it.
func (r *run) backProject(s step, given []float64) []float64 {
	rest := len(given) / s.cols
	x := r.Get(rest * s.rows)
	r.MulTB(x, given, s.projector, rest, s.cols, s.rows)
	r.flops += 2 * float64(len(x)) * float64(s.cols)
	r.Put(given)

	axes := permutation(s.layout, s.dims)
	if contiguous(axes) {
		return x
	}

	for i := range axes {
		axes[i].to, axes[i].from = axes[i].from, axes[i].to
	}

	out := r.Get(len(x))
	spread(out, x, axes)
	r.Put(x)
	return out
}

// read fills in Value.Marginals from the derivatives by the tables.
func (r *run) read(adjoint [][]float64) {
	e := r.e
	at := make([]int, len(e.Dims)) // the table to read at, plus one
	tables := make([]int, len(e.Dims))
	for t, table := range e.Tables {
		for _, i := range table.Scope {
			tables[i]++
			if r.plan.Hosts[t] < 0 &&
				(at[i] == 0 || len(table.Data) < len(e.Tables[at[i]-1].Data)) {
				at[i] = t + 1
			}
		}
	}

	r.value.Marginals = make([][]float64, len(e.Dims))
	here := make([][]int, len(e.Tables))
	for i, d := range e.Dims {
		p := make([]float64, d)
		r.value.Marginals[i] = p
		if at[i] > 0 {
			here[at[i]-1] = append(here[at[i]-1], i)
			continue
		}
		for v := range p {
			p[v] = 1 / float64(d)
		}
	}

	for t, indices := range here {
		if len(indices) > 0 {
			r.readTable(t, indices, adjoint[t])
		}
	}
}

// readTable sums T·∂Z/∂T over all but one index, for each of some indices of table t.
func (r *run) readTable(t int, indices []int, adjoint []float64) {
	r.shared = r.sharedIndices()
	scope := r.e.Tables[t].Scope
	x, y := array{data: r.whole(t)}, array{data: adjoint}
	var dims []int
	label := make(map[int]int32, len(scope))
	for l, i := range scope {
		label[i] = int32(l)
		dims = append(dims, r.e.Dims[i])
		x.labels = append(x.labels, int32(l))
		if r.shared[i] {
			y.labels = append(y.labels, int32(l))
		}
	}

	for _, i := range indices {
		p := r.value.Marginals[i]
		r.product(array{p, []int32{label[i]}}, x, y, dims)
		normalise(p)
	}
	r.Put(x.data)
}

// sharedIndices says which indices are wires of the network,
// and not summed where a table is loaded.
func (r *run) sharedIndices() []bool {
	if r.shared != nil {
		return r.shared
	}
	shared := make([]bool, len(r.e.Dims))
	for _, w := range r.plan.Wires {
		shared[w[0]] = shared[w[0]] || w[2] >= 0
	}
	return shared
}

// normalise divides by the sum, where there is one.
func normalise(p []float64) {
	total := 0.0
	for _, x := range p {
		total += x
	}
	if total == 0 {
		return
	}
	for v := range p {
		p[v] /= total
	}
}
