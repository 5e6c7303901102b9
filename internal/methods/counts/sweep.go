package counts

// Assignments with several counts: one variable after the other, with the total of the remaining ones as a table over all
// counts so far.

import (
	"context"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// sweep is a network of pieces without tables, in the sequence of their variables. After t of them the counts c are in a box;
//
//	rest_t[c] = Σ_x w_t(x) rest_{t+1}[c + λ_t(x)]     rest_n[c] = S[c]
//
// is the weight of all that can come, or the largest, with max in the place of Σ.
type sweep struct {
	*Form
	look  *pace.Pace
	links []int             // by variable: its link
	terms [][]choice        // by kind of piece
	kind  []int32           // by variable
	shape [][]int           // by variable, and after the last: the box of the counts so far
	rest  [][]scaled.Number // the last count the fastest
}

// choice is a value of a variable.
type choice struct {
	w     scaled.Number
	count []int // by count variable
}

// sweeps reports whether all pieces are variables without tables, and the cost of a sweep over them.
func (f *Form) sweeps() (bytes, muladds float64, ok bool) {
	hi := make([]float64, f.vars)
	for t := range f.piece {
		k := &f.kinds[f.of[t]]
		if k.wired != nil || len(k.links) != 1 {
			return 0, 0, false
		}
		size := 1.0
		for _, h := range hi {
			size *= h + 1
		}
		link := &f.net.Links[f.piece[t].links[0]]
		cp := link.T.(*tensor.CP)
		for mode, leg := range link.Legs {
			if cp.Vectors[mode] != nil {
				return 0, 0, false
			}
			f.reached(leg, hi)
		}
		bytes += 16 * size
		muladds += size * float64(len(cp.Weights))
	}
	return bytes + 16*f.size(), muladds, true
}

// reached adds one to the counts that a leg may count at.
func (f *Form) reached(leg int, hi []float64) {
	levels := make([]bool, f.vars)
	for y := range f.net.Dims[leg] {
		if _, level := f.weight(leg, y); level > 0 {
			levels[level-1] = true
		}
	}
	for v, is := range levels {
		if is {
			hi[v]++
		}
	}
}

// newSweep fills the tables of a sweep. Errors: over budget, with the bytes, before anything is made; the context's.
func (f *Form) newSweep(ctx context.Context, maxed bool) (*sweep, error) {
	if bytes, _, _ := f.sweeps(); bytes > float64(f.memory) {
		return nil, fault.New(fault.OverBudget, "counts: assignments with %d counts take %.3g bytes, the budget is %d bytes",
			f.vars, bytes, f.memory)
	}
	n := len(f.net.Variables)
	s := &sweep{
		Form: f, look: pace.New(ctx),
		links: make([]int, n), kind: make([]int32, n), terms: make([][]choice, len(f.kinds)),
		shape: make([][]int, n+1), rest: make([][]scaled.Number, n+1),
	}
	for t, p := range f.piece {
		v := f.variable[p.links[0]]
		s.links[v], s.kind[v] = p.links[0], f.of[t]
	}
	hi := make([]float64, f.vars)
	for v := range n + 1 {
		s.shape[v] = make([]int, f.vars)
		for k, h := range hi {
			s.shape[v][k] = int(h) + 1
		}
		if v == n {
			break
		}
		for _, leg := range f.net.Links[s.links[v]].Legs {
			f.reached(leg, hi)
		}
		if k := s.kind[v]; s.terms[k] == nil {
			s.terms[k] = f.choices(s.links[v])
		}
	}

	all := f.space()
	s.rest[n] = s.box(n, func(c []int) scaled.Number {
		i := 0
		for k, x := range c {
			i = i*all.Shape[k] + x
		}
		return all.Coef.At(i)
	})
	for v := n - 1; v >= 0; v-- {
		terms := s.terms[s.kind[v]]
		s.rest[v] = s.box(v, func(c []int) scaled.Number {
			var sum scaled.Number
			for x := range terms {
				w := s.after(v, c, &terms[x])
				if !maxed {
					sum = sum.Add(w)
				} else if w.Cmp(sum) > 0 {
					sum = w
				}
			}
			return sum
		})
		if err := s.look.Err(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// choices lists the values of a link's variable.
func (f *Form) choices(link int) []choice {
	k := &f.net.Links[link]
	out := make([]choice, len(k.T.(*tensor.CP).Weights))
	for x, own := range k.T.(*tensor.CP).Weights {
		out[x] = choice{w: scaled.FromFloat(own), count: make([]int, f.vars)}
		for _, leg := range k.Legs {
			w, level := f.weight(leg, x)
			out[x].w = out[x].w.Mul(scaled.FromFloat(w))
			if level > 0 {
				out[x].count[level-1]++
			}
		}
	}
	return out
}

// box fills a table over the counts before a variable.
func (s *sweep) box(v int, entry func(c []int) scaled.Number) []scaled.Number {
	size := 1
	for _, n := range s.shape[v] {
		size *= n
	}
	out := make([]scaled.Number, size)
	c := make([]int, s.vars)
	for at := range out {
		if s.look.Over(8) {
			return out
		}
		out[at] = entry(c)
		for k := s.vars - 1; k >= 0; k-- {
			if c[k]++; c[k] < s.shape[v][k] {
				break
			}
			c[k] = 0
		}
	}
	return out
}

// after is the weight of a value of variable v, given the counts before it, times the total of the variables
// after it.
func (s *sweep) after(v int, c []int, x *choice) scaled.Number {
	if x.w.IsZero() {
		return scaled.Number{}
	}
	at := 0
	for k, n := range s.shape[v+1] {
		at = at*n + c[k] + x.count[k]
	}
	return x.w.Mul(s.rest[v+1][at])
}

// draw draws the values of all variables.
func (s *sweep) draw(rng *rand.Rand, values []int) error {
	var d drawer
	c := make([]int, s.vars)
	for v := range values {
		terms := s.terms[s.kind[v]]
		if s.look.Over(int64(len(terms))) {
			return s.look.Err()
		}
		d.begin()
		for x := range terms {
			d.add(x, s.after(v, c, &terms[x]))
		}
		values[v] = d.pick(rng)
		for k, n := range terms[values[v]].count {
			c[k] += n
		}
	}
	return nil
}

// best is the assignment of the largest weight, of several the smallest; nil where all weights are 0.
func (s *sweep) best(close float64) *btn.Found {
	top := s.rest[0][0]
	if top.IsZero() || s.scale.IsZero() {
		return nil
	}
	found := &btn.Found{Weight: top.Mul(s.scale), Values: make([]int, len(s.kind)), Unique: true, Close: close}
	before := scaled.One
	c := make([]int, s.vars)
	for v := range found.Values {
		terms := s.terms[s.kind[v]]
		first, tied := 0, 0
		var largest scaled.Number
		for x := range terms {
			w := before.Mul(s.after(v, c, &terms[x]))
			switch {
			case near(w, top, close):
				if tied++; tied == 1 {
					first = x
				}
			case tied == 0 && w.Cmp(largest) > 0:
				first, largest = x, w
			}
		}
		found.Unique = found.Unique && tied <= 1
		found.Values[v] = first
		before = before.Mul(terms[first].w)
		for k, n := range terms[first].count {
			c[k] += n
		}
	}
	return found
}

// sweepBest is Best by a sweep.
func (f *Form) sweepBest(ctx context.Context) (*btn.Found, error) {
	s, err := f.newSweep(ctx, true)
	if err != nil {
		return nil, err
	}
	return s.best(f.close()), nil
}

// sweepDraw is Draw by a sweep.
func (f *Form) sweepDraw(ctx context.Context, n int, stream func(k int) *rand.Rand) (a Answer, values []int, err error) {
	s, err := f.newSweep(ctx, false)
	if err != nil {
		return a, nil, err
	}
	if s.rest[0][0].IsZero() || f.scale.IsZero() {
		return a, nil, nil
	}
	_, muladds, _ := f.sweeps()
	a = Answer{Z: s.rest[0][0].Mul(f.scale), MulAdds: int64(muladds)}
	width := len(f.net.Variables)
	values = make([]int, n*width)
	for i := range n {
		if err := s.draw(stream(i), values[i*width:][:width]); err != nil {
			return a, nil, err
		}
	}
	return a, values, nil
}
