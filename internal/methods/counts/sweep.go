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

// variableSweep assigns the variables one after the other, in a network of pieces without tables. c are the counts of the variables before
// variable t, one for each count variable. The total weight of all assignments of the other variables, from t on, is
//
//	remaining_t[c] = Σ_x w_t(x) remaining_{t+1}[c + λ_t(x)]     remaining_n[c] = S[c]
//
// where value x of variable t has weight w_t(x) and adds λ_t(x) to the counts. With max in the place of Σ it is the largest weight.
type variableSweep struct {
	*Form
	pace      *pace.Pace
	links     []int             // by variable: its link
	choices   [][]valueChoice   // by kind of piece: the values of its variable
	kind      []int32           // by variable: the kind of its piece
	shape     [][]int           // by variable, and after the last: the box of the counts before it
	remaining [][]scaled.Number // by variable, and after the last: an entry for each count vector of the box, the last count fastest
}

// valueChoice is a value of a variable.
type valueChoice struct {
	weight scaled.Number
	count  []int // by count variable
}

// sweepCost returns the bytes and the multiply-adds of a sweep over the variables, which keeps a number for each count vector before each
// variable. ok is false if some piece is more than one variable without tables. highest has, by count variable, the largest count of the
// variables so far.
func (f *Form) sweepCost() (bytes, muladds float64, ok bool) {
	highest := make([]float64, f.countVariables)
	for t := range f.pieces {
		k := &f.kinds[f.kindOf[t]]
		if k.tables != nil || len(k.links) != 1 {
			return 0, 0, false
		}
		size := 1.0 // of the box of the counts before this variable
		for _, largest := range highest {
			size *= largest + 1
		}
		link := &f.net.Links[f.pieces[t].links[0]]
		cp := link.T.(*tensor.CP)
		for mode, leg := range link.Legs {
			if cp.Vectors[mode] != nil {
				return 0, 0, false
			}
			f.widenCounts(leg, highest)
		}
		bytes += 16 * size // a scaled number has 16 bytes
		muladds += size * float64(len(cp.Weights))
	}
	return bytes + 16*f.spaceSize(), muladds, true // after the last variable: S itself
}

// widenCounts adds a leg to highest, the largest possible counts of some legs, by count variable: it adds one for each count variable at
// which some value of the leg counts.
func (f *Form) widenCounts(leg int, highest []float64) {
	canCount := make([]bool, f.countVariables)
	for y := range f.net.Dims[leg] {
		if _, level := f.contribution(leg, y); level > 0 { // level − 1 is the count variable
			canCount[level-1] = true
		}
	}
	for v, can := range canCount {
		if can {
			highest[v]++
		}
	}
}

// newSweep computes the table remaining of each variable v, in a sweep over the variables: by counts c of the variables before v, the total
// weight of all assignments of the variables from v on, or the largest one if isMaximum:
//
//	remaining_v[c] = Σ_x w_v(x) remaining_{v+1}[c + λ_v(x)],   remaining_n[c] = S[c]
//
// where value x of v has weight w_v(x) and adds λ_v(x) to the counts. Errors: over budget, with the bytes, before anything is computed; the
// context's.
func (f *Form) newSweep(ctx context.Context, isMaximum bool) (*variableSweep, error) {
	if bytes, _, _ := f.sweepCost(); bytes > float64(f.memory) { // the caller has seen to it that a sweep is possible
		return nil, fault.New(fault.OverBudget, "counts: assignments with %d counts take %.3g bytes, the budget is %d bytes",
			f.countVariables, bytes, f.memory)
	}
	n := len(f.net.Variables)
	s := &variableSweep{
		Form: f, pace: pace.New(ctx),
		links: make([]int, n), kind: make([]int32, n), choices: make([][]valueChoice, len(f.kinds)),
		shape: make([][]int, n+1), remaining: make([][]scaled.Number, n+1),
	}
	for t, p := range f.pieces { // each is the link of one variable
		v := f.variableOf[p.links[0]]
		s.links[v], s.kind[v] = p.links[0], f.kindOf[t]
	}
	s.fillShapes()
	if err := s.fillRemaining(isMaximum); err != nil {
		return nil, err
	}
	return s, nil
}

// fillShapes sets s.shape[v], the sides of the box of the counts of all variables before v, and s.choices[k], the values of a variable of
// kind k with their weights and counts. Variables of a kind are equal.
func (s *variableSweep) fillShapes() {
	highest := make([]float64, s.countVariables) // the largest counts of the variables so far
	n := len(s.links)
	for v := range n + 1 {
		s.shape[v] = make([]int, s.countVariables)
		for k, largest := range highest {
			s.shape[v][k] = int(largest) + 1
		}
		if v == n { // after the last variable
			break
		}
		for _, leg := range s.net.Links[s.links[v]].Legs {
			s.widenCounts(leg, highest)
		}
		if k := s.kind[v]; s.choices[k] == nil {
			s.choices[k] = s.linkChoices(s.links[v])
		}
	}
}

// fillRemaining sets remaining[v], by counts c of the variables before v, to the total weight of the variables from v on, or to the largest
// one with isMaximum. After the last variable that is S[c], the entry of the symmetric cores, and from there it goes back to the first. The
// error is the context's.
func (s *variableSweep) fillRemaining(isMaximum bool) error {
	n := len(s.links)
	space := s.spacePoly()
	s.remaining[n] = s.fillBox(n, func(c []int) scaled.Number {
		entry := 0
		for k, x := range c {
			entry = entry*space.Shape[k] + x
		}
		return space.Coef.At(entry)
	})
	for v := n - 1; v >= 0; v-- {
		choices := s.choices[s.kind[v]]
		s.remaining[v] = s.fillBox(v, func(c []int) scaled.Number {
			var total scaled.Number // the sum over the values, or the largest
			for x := range choices {
				w := s.weightWith(v, c, &choices[x])
				if !isMaximum {
					total = total.Add(w)
				} else if w.Cmp(total) > 0 {
					total = w
				}
			}
			return total
		})
		if err := s.pace.Err(); err != nil {
			return err
		}
	}
	return nil
}

// linkChoices returns the values of a link's variable with their weights, and what each adds to the counts.
func (f *Form) linkChoices(link int) []valueChoice {
	weights := f.net.Links[link].T.(*tensor.CP).Weights
	choices := make([]valueChoice, len(weights))
	for x, weight := range weights {
		choices[x] = valueChoice{weight: scaled.FromFloat(weight), count: make([]int, f.countVariables)}
		for _, leg := range f.net.Links[link].Legs {
			factor, level := f.contribution(leg, x)
			choices[x].weight = choices[x].weight.Mul(scaled.FromFloat(factor))
			if level > 0 {
				choices[x].count[level-1]++
			}
		}
	}
	return choices
}

// fillBox returns a table over the counts before variable v. It calls entry for each count vector c, the last count fastest.
func (s *variableSweep) fillBox(v int, entry func(c []int) scaled.Number) []scaled.Number {
	size := 1
	for _, n := range s.shape[v] {
		size *= n
	}
	table := make([]scaled.Number, size)
	c := make([]int, s.countVariables)
	for index := range table {
		if s.pace.Over(8) { // about 8 operations; the caller looks at pace.Err
			return table
		}
		table[index] = entry(c)

		// The next count vector.
		for k := s.countVariables - 1; k >= 0; k-- {
			if c[k]++; c[k] < s.shape[v][k] {
				break
			}
			c[k] = 0
		}
	}
	return table
}

// weightWith returns the weight of value x of variable v, times the total weight, or the largest weight, of all values of the later
// variables: w_v(x) · remaining_{v+1}[c + λ_v(x)]. c are the counts of the variables before v, and λ_v(x) is what the value adds to them.
func (s *variableSweep) weightWith(v int, c []int, x *valueChoice) scaled.Number {
	if x.weight.IsZero() {
		return scaled.Number{}
	}
	entry := 0
	for k, n := range s.shape[v+1] {
		entry = entry*n + c[k] + x.count[k]
	}
	return x.weight.Mul(s.remaining[v+1][entry])
}

// drawValues draws one assignment into values, by variable. Each value is drawn with its probability given the values before it, whose
// counts are in c. The error is the context's.
func (s *variableSweep) drawValues(rng *rand.Rand, values []int) error {
	var d drawState                    // for its list of outcomes
	c := make([]int, s.countVariables) // counts of the values drawn so far
	for v := range values {
		choices := s.choices[s.kind[v]]
		if s.pace.Over(int64(len(choices))) {
			return s.pace.Err()
		}
		d.clearWeights()
		for x := range choices {
			d.addWeight(x, s.weightWith(v, c, &choices[x]))
		}
		values[v] = d.drawOutcome(rng)
		for k, n := range choices[values[v]].count {
			c[k] += n
		}
	}
	return nil
}

// findBest returns the assignment of the largest weight. Of several it returns the smallest; weights are equal within the relative
// difference tolerance. It returns nil if all weights are 0.
func (s *variableSweep) findBest(tolerance float64) *btn.Found {
	largestWeight := s.remaining[0][0]
	if largestWeight.IsZero() || s.scale.IsZero() {
		return nil
	}
	best := &btn.Found{Weight: largestWeight.Mul(s.scale), Values: make([]int, len(s.kind)), Unique: true, Close: tolerance}

	// weightSoFar and c are the weight and the counts of the values chosen so far.
	weightSoFar := scaled.One
	c := make([]int, s.countVariables)
	for v := range best.Values {
		choices := s.choices[s.kind[v]]
		// The first value that reaches the largest weight. ties is the number of such values. If roundings leave none, it is the value that
		// comes nearest.
		first, ties := 0, 0
		var nearestWeight scaled.Number
		for x := range choices {
			w := weightSoFar.Mul(s.weightWith(v, c, &choices[x]))
			switch {
			case isNear(w, largestWeight, tolerance):
				if ties++; ties == 1 {
					first = x
				}
			case ties == 0 && w.Cmp(nearestWeight) > 0:
				first, nearestWeight = x, w
			}
		}
		best.Unique = best.Unique && ties <= 1
		best.Values[v] = first
		weightSoFar = weightSoFar.Mul(choices[first].weight)
		for k, n := range choices[first].count {
			c[k] += n
		}
	}
	return best
}

// sweepBest returns the most probable assignment by a sweep over the variables.
func (f *Form) sweepBest(ctx context.Context) (*btn.Found, error) {
	const isMaximum = true // the largest weights, in place of sums
	s, err := f.newSweep(ctx, isMaximum)
	if err != nil {
		return nil, err
	}
	return s.findBest(f.tieTolerance()), nil
}

// sweepDraw returns Z and n drawn assignments by a sweep over the variables. Draw k has the random stream stream(k). There are no
// assignments if Z is 0.
func (f *Form) sweepDraw(ctx context.Context, n int, stream func(k int) *rand.Rand) (a Answer, values []int, err error) {
	const isMaximum = false
	s, err := f.newSweep(ctx, isMaximum)
	if err != nil {
		return a, nil, err
	}
	total := s.remaining[0][0] // of all assignments, before the first variable
	if total.IsZero() || f.scale.IsZero() {
		return a, nil, nil
	}
	_, muladds, _ := f.sweepCost() // newSweep has compared its bytes with the memory
	a = Answer{Z: total.Mul(f.scale), MulAdds: int64(muladds)}
	variables := len(f.net.Variables)
	values = make([]int, n*variables)
	for i := range n {
		if err := s.drawValues(stream(i), values[i*variables:][:variables]); err != nil {
			return a, nil, err
		}
	}
	return a, values, nil
}
