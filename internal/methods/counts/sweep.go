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

// variableSweep goes over a network of pieces without tables, one variable after the other. The counts c of the variables before variable t
// are in a box. The weight of all that can follow, or the largest such weight with max in the place of Σ, is
//
//	remaining_t[c] = Σ_x w_t(x) remaining_{t+1}[c + λ_t(x)]     remaining_n[c] = S[c]
type variableSweep struct {
	*Form
	pace      *pace.Pace
	links     []int             // by variable: its link
	terms     [][]valueChoice   // by kind of piece
	kind      []int32           // by variable
	shape     [][]int           // by variable, and after the last: the box of the counts so far
	remaining [][]scaled.Number // by variable, and after the last: the last count the fastest
}

// valueChoice is a value of a variable.
type valueChoice struct {
	weight scaled.Number
	count  []int // by count variable
}

// sweepCost returns the cost of a sweep. ok is false if some piece is more than a variable without tables.
func (f *Form) sweepCost() (bytes, muladds float64, ok bool) {
	highest := make([]float64, f.countVariables)
	for t := range f.pieces {
		k := &f.kinds[f.kindOf[t]]
		if k.tables != nil || len(k.links) != 1 {
			return 0, 0, false
		}
		size := 1.0
		for _, h := range highest {
			size *= h + 1
		}
		link := &f.net.Links[f.pieces[t].links[0]]
		cp := link.T.(*tensor.CP)
		for mode, leg := range link.Legs {
			if cp.Vectors[mode] != nil {
				return 0, 0, false
			}
			f.widenCounts(leg, highest)
		}
		bytes += 16 * size
		muladds += size * float64(len(cp.Weights))
	}
	return bytes + 16*f.spaceSize(), muladds, true
}

// widenCounts adds one to the largest counts, by count variable, of those at which a leg may count.
func (f *Form) widenCounts(leg int, hi []float64) {
	levels := make([]bool, f.countVariables)
	for y := range f.net.Dims[leg] {
		if _, level := f.contribution(leg, y); level > 0 {
			levels[level-1] = true
		}
	}
	for v, is := range levels {
		if is {
			hi[v]++
		}
	}
}

// newSweep fills the tables of a sweep, with the largest weights instead of sums if maxed. Errors: over budget, with the bytes, before
// anything is made; the context's.
func (f *Form) newSweep(ctx context.Context, maxed bool) (*variableSweep, error) {
	if bytes, _, _ := f.sweepCost(); bytes > float64(f.memory) {
		return nil, fault.New(fault.OverBudget, "counts: assignments with %d counts take %.3g bytes, the budget is %d bytes",
			f.countVariables, bytes, f.memory)
	}
	n := len(f.net.Variables)
	s := &variableSweep{
		Form: f, pace: pace.New(ctx),
		links: make([]int, n), kind: make([]int32, n), terms: make([][]valueChoice, len(f.kinds)),
		shape: make([][]int, n+1), remaining: make([][]scaled.Number, n+1),
	}
	for t, p := range f.pieces {
		v := f.variableOf[p.links[0]]
		s.links[v], s.kind[v] = p.links[0], f.kindOf[t]
	}
	highest := make([]float64, f.countVariables)
	for v := range n + 1 {
		s.shape[v] = make([]int, f.countVariables)
		for k, h := range highest {
			s.shape[v][k] = int(h) + 1
		}
		if v == n {
			break
		}
		for _, leg := range f.net.Links[s.links[v]].Legs {
			f.widenCounts(leg, highest)
		}
		if k := s.kind[v]; s.terms[k] == nil {
			s.terms[k] = f.choices(s.links[v])
		}
	}

	space := f.spacePoly()
	s.remaining[n] = s.fillBox(n, func(c []int) scaled.Number {
		i := 0
		for k, x := range c {
			i = i*space.Shape[k] + x
		}
		return space.Coef.At(i)
	})
	for v := n - 1; v >= 0; v-- {
		terms := s.terms[s.kind[v]]
		s.remaining[v] = s.fillBox(v, func(c []int) scaled.Number {
			var sum scaled.Number
			for x := range terms {
				w := s.weightWith(v, c, &terms[x])
				if !maxed {
					sum = sum.Add(w)
				} else if w.Cmp(sum) > 0 {
					sum = w
				}
			}
			return sum
		})
		if err := s.pace.Err(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// choices returns the values of a link's variable.
func (f *Form) choices(link int) []valueChoice {
	k := &f.net.Links[link]
	out := make([]valueChoice, len(k.T.(*tensor.CP).Weights))
	for x, own := range k.T.(*tensor.CP).Weights {
		out[x] = valueChoice{weight: scaled.FromFloat(own), count: make([]int, f.countVariables)}
		for _, leg := range k.Legs {
			w, level := f.contribution(leg, x)
			out[x].weight = out[x].weight.Mul(scaled.FromFloat(w))
			if level > 0 {
				out[x].count[level-1]++
			}
		}
	}
	return out
}

// fillBox returns a table over the counts before variable v, with an entry for each count vector.
func (s *variableSweep) fillBox(v int, entry func(c []int) scaled.Number) []scaled.Number {
	size := 1
	for _, n := range s.shape[v] {
		size *= n
	}
	out := make([]scaled.Number, size)
	c := make([]int, s.countVariables)
	for index := range out {
		if s.pace.Over(8) {
			return out
		}
		out[index] = entry(c)
		for k := s.countVariables - 1; k >= 0; k-- {
			if c[k]++; c[k] < s.shape[v][k] {
				break
			}
			c[k] = 0
		}
	}
	return out
}

// weightWith returns the weight of value x of variable v times the weight of all that can follow, given the counts before the variable.
func (s *variableSweep) weightWith(v int, c []int, x *valueChoice) scaled.Number {
	if x.weight.IsZero() {
		return scaled.Number{}
	}
	place := 0
	for k, n := range s.shape[v+1] {
		place = place*n + c[k] + x.count[k]
	}
	return x.weight.Mul(s.remaining[v+1][place])
}

// drawValues draws one assignment: it sets values, by variable, each given those before it. Its error is the context's.
func (s *variableSweep) drawValues(rng *rand.Rand, values []int) error {
	var d drawState
	c := make([]int, s.countVariables)
	for v := range values {
		terms := s.terms[s.kind[v]]
		if s.pace.Over(int64(len(terms))) {
			return s.pace.Err()
		}
		d.clearWeights()
		for x := range terms {
			d.addWeight(x, s.weightWith(v, c, &terms[x]))
		}
		values[v] = d.drawPlace(rng)
		for k, n := range terms[values[v]].count {
			c[k] += n
		}
	}
	return nil
}

// findBest returns the assignment of the largest weight, of several the smallest. It returns nil if all weights are 0.
func (s *variableSweep) findBest(close float64) *btn.Found {
	top := s.remaining[0][0]
	if top.IsZero() || s.scale.IsZero() {
		return nil
	}
	found := &btn.Found{Weight: top.Mul(s.scale), Values: make([]int, len(s.kind)), Unique: true, Close: close}
	weightBefore := scaled.One
	c := make([]int, s.countVariables)
	for v := range found.Values {
		terms := s.terms[s.kind[v]]
		first, ties := 0, 0
		var largest scaled.Number
		for x := range terms {
			w := weightBefore.Mul(s.weightWith(v, c, &terms[x]))
			switch {
			case isNear(w, top, close):
				if ties++; ties == 1 {
					first = x
				}
			case ties == 0 && w.Cmp(largest) > 0:
				first, largest = x, w
			}
		}
		found.Unique = found.Unique && ties <= 1
		found.Values[v] = first
		weightBefore = weightBefore.Mul(terms[first].weight)
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
	return s.findBest(f.tieTolerance()), nil
}

// sweepDraw is Draw by a sweep.
func (f *Form) sweepDraw(ctx context.Context, n int, stream func(k int) *rand.Rand) (a Answer, values []int, err error) {
	s, err := f.newSweep(ctx, false)
	if err != nil {
		return a, nil, err
	}
	if s.remaining[0][0].IsZero() || f.scale.IsZero() {
		return a, nil, nil
	}
	_, muladds, _ := f.sweepCost()
	a = Answer{Z: s.remaining[0][0].Mul(f.scale), MulAdds: int64(muladds)}
	width := len(f.net.Variables)
	values = make([]int, n*width)
	for i := range n {
		if err := s.drawValues(stream(i), values[i*width:][:width]); err != nil {
			return a, nil, err
		}
	}
	return a, values, nil
}
