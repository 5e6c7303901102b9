package baseline

// Bucket renormalisation: mini-buckets joined by vectors instead of bounded.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/sumproduct"
)

// RenormalisationOptions steer BucketRenormalisation.
type RenormalisationOptions struct {
	IBound int // mini-buckets have at most IBound+1 indices; 0: 8
	Rounds int // of global optimisation; 0: 10 as in the source, below 0: none, the local variant (MBR)
}

// BucketRenormalisation estimates ln Z by global bucket renormalisation (GBR). Each mini-bucket k of
// an index but the main one has a replica x' of the index of its own, tied to the index x by a
// rank-one δ(x, x') ≈ u(x) u(x'), ‖u‖ = 1.
//
// Local (MBR): u is the leading left singular vector of the mini-bucket as a matrix, x' × the rest,
// buckets in elimination order. Global: u is the leading left singular vector of the matrix M(x', x)
// that the whole renormalised model is with both u taken out, pair after pair in reverse order,
// round after round.
//
// It is Z itself where the min-fill order has a width of at most IBound, and no bound otherwise.
// Errors as MiniBucket's. Cost of a round: about d^(IBound+3) per mini-bucket.
// Source: Ahn, Chertkov, Weller, Shin, Bucket renormalization for approximate inference, ICML 2018,
// arXiv:1803.05104.
// Differs: messages towards the leaves are kept beside those towards the root, so that a round costs
// a few eliminations and not one per pair; mini-buckets as MiniBucket's; rows of M are the replica
// (with the main variable's, as in the authors' program, more rounds made 12×12 grids worse, |Δ ln
// Z| of 0.03 became 1.8 at Δ = 0.5); u is found by squaring M Mᵀ from the uniform vector, so that
// entries never fall below 0; rounds end when ln Z moves by less than 1e-10.
func BucketRenormalisation(
	ctx context.Context, e *sumproduct.Expression, o RenormalisationOptions,
) (Result, error) {
	if o.IBound == 0 {
		o.IBound = 8
	}
	if o.Rounds == 0 {
		o.Rounds = 10
	}
	t, err := newTree(ctx, e, o.IBound)
	if err != nil {
		return Result{}, err
	}

	n := len(t.buckets)
	s := &renormaliser{
		tree: t,
		u:    make([][]float64, n),
		up:   make([]table, n),
		exp:  make([]int64, n),
		down: make([]table, n),
	}
	for k := range t.buckets {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		s.local(k)
	}

	r := Result{LnZ: s.value(), Converged: o.Rounds < 0}
	for r.Rounds < o.Rounds && !r.Converged {
		for k := n - 1; k >= 0; k-- {
			if err := ctx.Err(); err != nil {
				return Result{}, err
			}
			s.global(k)
		}
		before := r.LnZ
		r.LnZ = s.value()
		r.Rounds++
		r.Converged = r.LnZ == before || math.Abs(r.LnZ-before) < 1e-10
	}

	r.Flops = s.flops
	return r, nil
}

// renormaliser holds the vectors and the messages that are up to date: up[k] goes from bucket k to
// its parent, down[k] from the parent to k, both over the indices that k hands on. Those without
// data are to be computed when they are needed.
type renormaliser struct {
	*tree
	u     [][]float64 // of a bucket that is not main: of its replica and, as a factor, of the main one
	up    []table
	exp   []int64 // up[k]·2^exp[k]
	down  []table // up to a factor
	flops float64
}

// local sets the vector of bucket k by its own tables and the messages it takes.
func (s *renormaliser) local(k int) {
	if b := &s.buckets[k]; b.main != k {
		s.u[k] = s.leading(s.sum(b.scope, b.dims, s.inputs(k, -1, -1), b.scope), b.dims[0])
	}
}

// global sets the vector of bucket k by the whole model, and forgets the messages that this changes.
func (s *renormaliser) global(k int) {
	b := &s.buckets[k]
	if b.main == k {
		return
	}
	s.u[k] = s.leading(s.pair(k), b.dims[0])
	below := make([]int, len(s.buckets)) // how many of the two buckets of the pair are at or below it
	for _, start := range []int{k, b.main} {
		for j := start; j >= 0; j = s.buckets[j].parent {
			s.up[j] = table{}
			below[j]++
		}
	}

	for j := range s.down {
		if below[j] < 2 {
			s.down[j] = table{}
		}
	}
}

// Labels of the two free axes of pair, where indices are ≥ 0.
const (
	replica = -1 - iota
	mainOne
)

// pair returns M, replica × main: what the whole renormalised model is as a function of both, up to
// a factor. It goes up from either bucket to where they meet, if they do.
func (s *renormaliser) pair(k int) table {
	m, d := s.buckets[k].main, s.buckets[k].dims[0]
	above := map[int]bool{}
	for j := s.buckets[m].parent; j >= 0; j = s.buckets[j].parent {
		above[j] = true
	}
	meet := s.buckets[k].parent
	for meet >= 0 && !above[meet] {
		meet = s.buckets[meet].parent
	}

	a, fromA := s.climb(k, replica, s.inputs(k, -1, -1), meet)
	b, fromB := s.climb(m, mainOne, append(s.inputs(m, -1, -1), s.vectors(m, k)...), meet)
	ops, axes, dims := []table{a, b}, []int{replica, mainOne}, []int{d, d}
	if meet >= 0 {
		axes, dims = append(axes, s.buckets[meet].scope...), append(dims, s.buckets[meet].dims...)
		ops = append(append(append(ops, s.inputs(meet, fromA, fromB)...), s.vectors(meet, -1)...), s.outside(meet)...)
	}
	return s.sum(axes, dims, ops, axes[:2])
}

// climb returns bucket k's message with its own index left as the axis label, at the bucket until
// or, below 0, at the root, and the last bucket on the way there.
func (s *renormaliser) climb(k, label int, ops []table, until int) (table, int) {
	b := &s.buckets[k]
	d := b.dims[0]
	t := s.sum(b.scope, b.dims, ops, b.scope)
	t.axes = append([]int{label}, b.scope[1:]...)
	for b.parent != until {
		from := k
		k = b.parent
		b = &s.buckets[k]
		ops := append(append(s.inputs(k, from, -1), s.vectors(k, -1)...), t)
		t = s.sum(append([]int{label}, b.scope...), append([]int{d}, b.dims...), ops,
			append([]int{label}, b.scope[1:]...))
	}
	return t, k
}

// inputs are the tables of bucket k and the messages of its children but two.
func (s *renormaliser) inputs(k, but, but2 int) []table {
	ops := slices.Clone(s.buckets[k].tables)
	for _, c := range s.buckets[k].children {
		if c != but && c != but2 {
			ops = append(ops, s.message(c))
		}
	}
	return ops
}

// vectors are those at bucket k but that of bucket but: its own, or where it is main those of the
// others.
func (s *renormaliser) vectors(k, but int) (ops []table) {
	own := s.buckets[k].scope[:1]
	if s.buckets[k].main != k {
		return []table{{axes: own, data: s.u[k]}}
	}
	for j := k - 1; j >= 0 && s.buckets[j].main == k; j-- {
		if j != but {
			ops = append(ops, table{axes: own, data: s.u[j]})
		}
	}
	return ops
}

// message returns up[k].
func (s *renormaliser) message(k int) table {
	if s.up[k].data == nil {
		b := &s.buckets[k]
		ops := append(s.inputs(k, -1, -1), s.vectors(k, -1)...)
		t := product(b.scope, b.dims, ops, b.scope[1:], false, &s.flops)
		s.exp[k], s.up[k] = normalise(t.data), t
	}
	return s.up[k]
}

// outside returns down[k], nothing for a root.
func (s *renormaliser) outside(k int) []table {
	p := s.buckets[k].parent
	if p < 0 {
		return nil
	}
	if s.down[k].data == nil {
		b := &s.buckets[p]
		ops := append(append(s.inputs(p, k, -1), s.vectors(p, -1)...), s.outside(p)...)
		s.down[k] = s.sum(b.scope, b.dims, ops, s.buckets[k].scope[1:])
	}
	return []table{s.down[k]}
}

// sum is product, normalised: a factor is lost.
func (s *renormaliser) sum(axes, dims []int, ops []table, out []int) table {
	t := product(axes, dims, ops, out, false, &s.flops)
	normalise(t.data)
	return t
}

// value is ln of the renormalised model's Z.
func (s *renormaliser) value() float64 {
	var numbers []float64
	exp := int64(0)
	for k, b := range s.buckets {
		if t := s.message(k); b.parent < 0 {
			numbers = append(numbers, t.data[0])
		}
		exp += s.exp[k]
	}
	return lnOf(s.scale, numbers, exp)
}

// leading returns the leading left singular vector of t as a matrix of d rows, of norm 1 and entries
// ≥ 0: (M Mᵀ)^(2^40) applied to the uniform vector, which is kept where M is 0.
func (s *renormaliser) leading(t table, d int) []float64 {
	n := len(t.data) / d
	g, next, u := make([]float64, d*d), make([]float64, d*d), make([]float64, d)
	for i := range d {
		for j := range d {
			for k := range n {
				g[i*d+j] += t.data[i*n+k] * t.data[j*n+k]
			}
		}
	}

	s.flops += 2 * float64(d*d*n)
	for range 40 {
		normalise(g)
		for i := range d {
			for j := range d {
				next[i*d+j] = 0
				for k := range d {
					next[i*d+j] += g[i*d+k] * g[k*d+j]
				}
			}
		}
		g, next = next, g
	}

	norm := 0.0
	for i := range u {
		for _, x := range g[i*d : (i+1)*d] {
			u[i] += x
		}
		norm = math.Hypot(norm, u[i])
	}

	for i := range u {
		if u[i] /= norm; norm == 0 {
			u[i] = 1 / math.Sqrt(float64(d))
		}
	}
	return u
}
