package exchangeable

// Sums value by value: where the values of a class do not interact, but for the number of variables that each of them has (Potts models),
// the count vectors need not be listed.

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	// maxStates bounds the states of a sum value by value: the numbers of variables, by group, that have a value.
	maxStates = 1 << 16
	// separation bounds the rounding of what values of a class have between them, nats.
	separation = 1e-20
)

// separated is a function of the counts of one class as a product of functions of one count:
//
//	ln S(c) = Σ_a functions[a][c_a],   Σ_a c_a = n
type separated struct{ functions [][]logarithm }

// separate returns the terms of a class of n variables of d values as a sum of functions of one count each. It returns nil if two values
// interact otherwise than by a sum of a share of each: Σ_{a<b} c_a c_b (u_a + u_b) = Σ_a u_a c_a (n − c_a). Cost O(d² + d n).
func separate(k *kinds, n, d int) *separated {
	s := &separated{functions: make([][]logarithm, d)}
	for a := range s.functions {
		s.functions[a] = make([]logarithm, n+1)
	}
	between := make([]logarithm, d*d)
	for _, t := range k.terms {
		first := t.members[0]
		switch {
		case len(t.members) == 1:
			for c := range s.functions[first.value] {
				s.functions[first.value][c] = s.functions[first.value][c].plus(t.ln.times(binomial(float64(c), first.times)))
			}
		case len(t.members) == 2 && first.times == 1 && t.members[1].times == 1:
			a, b := first.value, t.members[1].value
			between[a*d+b], between[b*d+a] = t.ln, t.ln
		default:
			return nil
		}
	}
	for _, t := range k.forbidden {
		if len(t.members) > 1 {
			return nil
		}
		first := t.members[0]
		for c := first.times; c <= n; c++ {
			s.functions[first.value][c] = impossible
		}
	}
	shares := make([]logarithm, d)
	for a := range shares {
		b, c := (a+1)%d, (a+2)%d
		switch {
		case d == 2:
			shares[a] = between[a*d+b].times(0.5)
		case d > 2:
			shares[a] = between[a*d+b].plus(between[a*d+c]).minus(between[b*d+c]).times(0.5)
		}
	}
	for a, u := range shares {
		for b := range a {
			if math.Abs(between[a*d+b].minus(u.plus(shares[b])).float()) > separation {
				return nil
			}
		}
		for c := range s.functions[a] {
			s.functions[a][c] = s.functions[a][c].plus(u.times(float64(c) * float64(n-c)))
		}
	}
	return s
}

// valueSum is a form of one class under evidence, summed value by value. A state says how many variables of each group have a value so
// far.
type valueSum struct {
	*form
	*separated
	groups     []group // that have several values possible
	fixedCount []int32 // by value: variables that have no other
	constant   logarithm
	strides    []int
	states     int
	countsOf   [][]int32         // by state
	weightsOf  [][]scaled.Number // by value and state: the weights of the variables that have the value, over their number's factorial
	sumsBefore []box             // by value: Σ over the values before it, by state
	roundings  float64           // roundings of a term
}

// valueByValue returns the sum of a form value by value. It returns nil if the form has several classes, if its values interact, or if the
// sum has more than maxStates states.
func (f *form) valueByValue() *valueSum {
	if len(f.fields.groups) != 1 || len(f.interactions.conditionals) > 0 {
		return nil
	}
	n, d := 0, f.values(0)
	for _, g := range f.fields.groups[0] {
		n += len(g.variables)
	}
	b := &valueSum{form: f, fixedCount: make([]int32, d), states: 1, constant: f.fields.constant}
	if b.separated = separate(f.kinds, n, d); b.separated == nil {
		return nil
	}
	for _, g := range f.fields.groups[0] {
		if len(g.support) == 1 {
			x := g.support[0]
			b.fixedCount[x] += int32(len(g.variables))
			b.constant = b.constant.plus(g.field[x].times(float64(len(g.variables))))
			continue
		}
		if len(g.support) == 0 {
			b.constant = impossible
		}
		b.groups = append(b.groups, g)
		b.strides = append(b.strides, b.states)
		if b.states *= len(g.variables) + 1; b.states > maxStates {
			return nil
		}
	}
	return b
}

// flops returns the flops of a sum, with marginals.
func (b *valueSum) flops() float64 {
	return 40 * float64(len(b.functions)) * float64(b.states) * float64(b.states)
}

// fillWeights computes the weights of all values and the sums before each value. Cost O(values · states²).
func (b *valueSum) fillWeights(ctx context.Context) error {
	total := b.states - 1 // all variables
	b.countsOf = make([][]int32, b.states)
	longest := 1
	for state := range b.countsOf {
		remainder := state
		for _, g := range b.groups {
			b.countsOf[state] = append(b.countsOf[state], int32(remainder%(len(g.variables)+1)))
			remainder /= len(g.variables) + 1
		}
	}
	for _, g := range b.groups {
		longest = max(longest, len(g.variables))
	}
	table := factorialsUpTo(longest)
	look := pace.New(ctx)
	b.sumsBefore = []box{make(box, b.states)}
	b.sumsBefore[0][0] = scaled.One
	for a := range b.functions {
		numbers := make([]scaled.Number, b.states)
		for state, counts := range b.countsOf {
			c, ln := b.fixedCount[a], logarithm{}
			for k, n := range counts {
				c += n
				ln = ln.plus(b.groups[k].field[a].times(float64(n))).minus(table[n])
			}
			numbers[state] = ln.plus(b.functions[a][c]).number()
		}
		next := make(box, b.states)
		for from, y := range b.sumsBefore[a] {
			if look.Over(int64(b.states - from)) {
				return look.Err()
			}
			if y.IsZero() {
				continue
			}
			for state := 0; from+state <= total; state++ {
				if !numbers[state].IsZero() && b.isJoinable(from, state) {
					next[from+state] = next[from+state].Add(y.Mul(numbers[state]))
				}
			}
		}
		b.weightsOf, b.sumsBefore = append(b.weightsOf, numbers), append(b.sumsBefore, next)
	}
	for _, g := range b.groups {
		b.constant = b.constant.plus(table[len(g.variables)])
	}
	b.roundings = float64(len(b.functions)) * float64(b.states+16)
	return nil
}

// isJoinable reports whether two states can be added: no group has more variables in both than it has.
func (b *valueSum) isJoinable(s, t int) bool {
	for k, n := range b.countsOf[s] {
		if int(n+b.countsOf[t][k]) > len(b.groups[k].variables) {
			return false
		}
	}
	return true
}

// sumOfTerms returns the sum of all terms, without the constant.
func (b *valueSum) sumOfTerms() scaled.Number { return b.sumsBefore[len(b.functions)][b.states-1] }

// lnZ returns ln Z.
func (b *valueSum) lnZ() logarithm {
	return logarithmOfNumber(b.sumOfTerms()).plus(b.constant)
}

// relativeError implements evaluation. No term is below 0, so that roundings of terms are those of the sum.
func (b *valueSum) relativeError() float64 { return math.Ldexp(b.roundings, -53) }

// groupMarginals returns P(value) of a variable of every group.
func (b *valueSum) groupMarginals(ctx context.Context) ([][]float64, error) {
	shares := make([][]float64, len(b.groups))
	for k := range shares {
		shares[k] = make([]float64, len(b.functions))
	}
	look := pace.New(ctx)
	backward := make(box, b.states) // of the states after a value
	backward[b.states-1] = scaled.One.Div(b.sumOfTerms())
	for a := len(b.functions) - 1; a >= 0; a-- {
		next := make(box, b.states)
		for from, y := range b.sumsBefore[a] {
			if look.Over(int64(b.states - from)) {
				return nil, look.Err()
			}
			for state := 0; from+state < b.states; state++ {
				if backward[from+state].IsZero() || !b.isJoinable(from, state) {
					continue
				}
				term := b.weightsOf[a][state].Mul(backward[from+state])
				next[from] = next[from].Add(term)
				if p := term.Mul(y).Float64(); p > 0 {
					for k, n := range b.countsOf[state] {
						shares[k][a] += p * float64(n) / float64(len(b.groups[k].variables))
					}
				}
			}
		}
		backward = next
	}
	for _, row := range shares {
		sum := 0.0
		for _, p := range row {
			sum += p
		}
		for a := range row {
			row[a] /= sum
		}
	}
	return shares, nil
}

// marginals returns P(x) by variable and value. Z is above 0.
func (b *valueSum) marginals(ctx context.Context) ([][]float64, error) {
	shares, err := b.groupMarginals(ctx)
	if err != nil {
		return nil, err
	}
	rows := make([][]float64, len(b.weights))
	put := func(v int32, share []float64) {
		rows[v] = make([]float64, len(share))
		for x := range rows[v] {
			rows[v][x] = share[b.partition.canonical(v, x)]
		}
	}
	for _, g := range b.fields.groups[0] {
		if len(g.support) == 1 {
			certain := make([]float64, len(b.functions))
			certain[g.support[0]] = 1
			for _, v := range g.variables {
				put(v, certain)
			}
		}
	}
	for k, g := range b.groups {
		for _, v := range g.variables {
			put(v, shares[k])
		}
	}
	return rows, b.leafMarginals(ctx, nil, rows)
}

// drawStates draws, by value, the state of the variables that have the value, with the probability of its terms.
func (b *valueSum) drawStates(stream *rand.Rand) [][]int32 {
	out := make([][]int32, len(b.functions))
	to := b.states - 1
	for a := len(b.functions) - 1; a >= 0; a-- {
		u, sum, chosen := stream.Float64(), 0.0, -1
		for state := 0; state <= to && sum <= u; state++ {
			from := to - state
			if b.weightsOf[a][state].IsZero() || b.sumsBefore[a][from].IsZero() || !b.isJoinable(from, state) {
				continue
			}
			chosen = state
			sum += b.weightsOf[a][state].Mul(b.sumsBefore[a][from]).Div(b.sumsBefore[a+1][to]).Float64()
		}
		out[a] = b.countsOf[chosen]
		to -= chosen
	}
	return out
}

// assign draws the values of all variables but the leaves.
func (b *valueSum) assign(stream *rand.Rand, values []int) {
	drawn := b.drawStates(stream)
	for _, g := range b.fields.groups[0] {
		if len(g.support) == 1 {
			counts := make([]int32, len(b.functions))
			counts[g.support[0]] = int32(len(g.variables))
			b.assignShuffled(stream, g.variables, counts, values)
		}
	}
	for k, g := range b.groups {
		counts := make([]int32, len(b.functions))
		for a, state := range drawn {
			counts[a] = state[k]
		}
		b.assignShuffled(stream, g.variables, counts, values)
	}
}

// draw draws assignments: the counts of all values, then the variables that have them, then the leaves. It returns nil if Z is 0.
func (b *valueSum) draw(ctx context.Context, want btn.Want) (*btn.Drawn, error) {
	n := len(b.weights)
	if err := query.CheckSamples(n, want.Samples); err != nil || b.lnZ().isImpossible() {
		return nil, err
	}
	drawn := &btn.Drawn{Weight: b.lnZ().number(), Values: make([]int, n*want.Samples)}
	for s := range want.Samples {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		stream := rand.New(rand.NewPCG(want.Seed, uint64(s)))
		values := drawn.Values[s*n : (s+1)*n]
		b.assign(stream, values)
		for v, l := range b.interactions.leafOf {
			if l != nil {
				values[v] = pick(stream, b.leafLogs(l, values))
			}
		}
	}
	return drawn, nil
}
