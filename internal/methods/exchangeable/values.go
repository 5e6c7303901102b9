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

// separated is a function S of the counts c of one class as a product of functions of one count:
//
//	ln S(c) = Σ_a functions[a][c_a],   Σ_a c_a = n
//
// where c_a of the n variables have value a.
type separated struct{ functions [][]logarithm }

// separate returns the terms of a class of n variables of d values as a sum of functions of one count each. It returns nil if that is
// impossible. The interaction of values a and b must be a sum u_a + u_b: then Σ_{a<b} c_a c_b (u_a + u_b) = Σ_a u_a c_a (n − c_a). Cost
// O(d² + d n).
func separate(k *kinds, n, d int) *separated {
	s := &separated{functions: make([][]logarithm, d)}
	for a := range s.functions {
		s.functions[a] = make([]logarithm, n+1)
	}
	between, ok := s.addTerms(k.terms)
	if !ok || !s.forbidCounts(k.forbidden, n) {
		return nil
	}

	// The shares u_a have to add up to the terms of all pairs.
	shares := pairShares(between, d)
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

// addTerms divides terms by their number of values. A term is ln times the number of ways to choose its members, and each member is a
// number of variables (times) with one value. A term of one value is added to the function of that value's count. A term of one variable
// with value a and one with value b becomes between[a*d+b], for d values. ok is false for any other term.
func (s *separated) addTerms(terms []term) (between []logarithm, ok bool) {
	d := len(s.functions)
	between = make([]logarithm, d*d)
	for _, t := range terms {
		first := t.members[0]
		switch {
		case len(t.members) == 1:
			function := s.functions[first.value]
			for c := range function {
				function[c] = function[c].plus(t.ln.times(binomial(float64(c), first.times)))
			}
		case len(t.members) == 2 && first.times == 1 && t.members[1].times == 1:
			a, b := first.value, t.members[1].value
			between[a*d+b], between[b*d+a] = t.ln, t.ln
		default:
			return nil, false
		}
	}
	return between, true
}

// forbidCounts makes counts impossible by forbidden terms. A term of one member forbids that so many variables, member.times, have its
// value, so all counts of the value from there to n are impossible. It returns false if a term has several members.
func (s *separated) forbidCounts(forbidden []term, n int) bool {
	for _, t := range forbidden {
		if len(t.members) > 1 {
			return false
		}
		member := t.members[0]
		for c := member.times; c <= n; c++ {
			s.functions[member.value][c] = impossible
		}
	}
	return true
}

// pairShares returns the numbers u_a for which between(a, b) = u_a + u_b for all pairs of d values, if there are any: u_a = (between(a, b)
// + between(a, c) − between(b, c))/2 for any two other values b and c. With two values the shares are half of the one term.
func pairShares(between []logarithm, d int) []logarithm {
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
	return shares
}

// valueSum is a form of one class under evidence, summed value by value. A state is a number of variables of each group: of those with one
// value, or of those with any of the values so far. It is numbered in mixed radix, Σ_k count_k strides[k], so that states add up like
// their counts.
type valueSum struct {
	*form
	*separated
	groups     []group           // that have several values possible
	fixedCount []int32           // by value: the number of variables that have no other
	constant   logarithm         // what all terms have in common
	strides    []int             // by group
	states     int               // number of states
	countsOf   [][]int32         // by state and group
	weightsOf  [][]scaled.Number // by value and state: the weight of the variables with the value, over the factorials of their numbers
	sumsBefore []box             // by value and state: Σ over the values before it
	roundings  float64           // of a term
}

// valueByValue returns a form prepared for a sum value by value: its states, which count the variables of each group with several possible
// values. It returns nil if the form has several classes or leaves of two neighbours, if the values' interactions cannot be separated, or
// if the sum has more than maxStates states.
func (f *form) valueByValue() *valueSum {
	if len(f.fields.groups) != 1 || len(f.interactions.conditionals) > 0 {
		return nil
	}
	n, d := 0, f.values(0)
	for _, g := range f.fields.groups[0] {
		n += len(g.variables)
	}
	sum := &valueSum{form: f, fixedCount: make([]int32, d), states: 1, constant: f.fields.constant}
	sum.separated = separate(f.kinds, n, d)
	if sum.separated == nil {
		return nil
	}

	// Variables with one possible value have it; the states count all others.
	for _, g := range f.fields.groups[0] {
		if len(g.support) == 1 {
			x := g.support[0]
			sum.fixedCount[x] += int32(len(g.variables))
			sum.constant = sum.constant.plus(g.field[x].times(float64(len(g.variables))))
			continue
		}
		if len(g.support) == 0 { // Z is 0
			sum.constant = impossible
		}
		sum.groups = append(sum.groups, g)
		sum.strides = append(sum.strides, sum.states) // the group's number of variables is a digit of the state, with this stride
		sum.states *= len(g.variables) + 1
		if sum.states > maxStates {
			return nil
		}
	}
	return sum
}

// flops returns the flops of the sum and its marginals.
func (b *valueSum) flops() float64 {
	return 40 * float64(len(b.functions)) * float64(b.states) * float64(b.states) // 40 for each product of scaled numbers and its sum
}

// fillWeights computes weightsOf and sumsBefore. A state is a number of variables of each group, written as one number in mixed radix.
// weightsOf[a][state] is the weight of the variables with value a if they are those of the state. sumsBefore[a][state] is the sum over all
// ways in which the values before a have the variables of the state. So sumsBefore[a+1] is the product of sumsBefore[a] and weightsOf[a] as
// polynomials in the groups' numbers. Cost O(values · states²).
func (b *valueSum) fillWeights(ctx context.Context) error {
	b.listStates()
	largestGroup := 1
	for _, g := range b.groups {
		largestGroup = max(largestGroup, len(g.variables))
	}
	lnFactorials := factorialsUpTo(largestGroup)

	look := pace.New(ctx)              // counts operations, and is over once the context has ended
	noVariables := make(box, b.states) // before the first value: the sum is 1 at state 0
	noVariables[0] = scaled.One
	b.sumsBefore = []box{noVariables}
	for a := range b.functions {
		weights := b.valueWeights(a, lnFactorials)
		sums := b.multiplyStates(b.sumsBefore[a], weights, look)
		if sums == nil {
			return look.Err()
		}
		b.weightsOf, b.sumsBefore = append(b.weightsOf, weights), append(b.sumsBefore, sums)
	}
	for _, g := range b.groups { // the weights have the divisor Π_a c_a! of n!/Π_a c_a!, the number of ways to divide a group of n variables
		b.constant = b.constant.plus(lnFactorials[len(g.variables)])
	}
	b.roundings = float64(len(b.functions)) * float64(b.states+16) // for each value: the additions, and 16 for a weight
	return nil
}

// listStates fills countsOf: the digits of a state in mixed radix are the numbers of variables of the groups, the first group fastest.
func (b *valueSum) listStates() {
	b.countsOf = make([][]int32, b.states)
	for state := range b.countsOf {
		remainder := state
		for _, g := range b.groups {
			b.countsOf[state] = append(b.countsOf[state], int32(remainder%(len(g.variables)+1)))
			remainder /= len(g.variables) + 1
		}
	}
}

// valueWeights returns, by state, the weight of the variables with value a if they are those of the state, over the factorials of their
// numbers. It is a product of the weights of these variables (field) and of a function of their number (b.functions[a]), the interactions.
func (b *valueSum) valueWeights(a int, lnFactorials factorials) []scaled.Number {
	weights := make([]scaled.Number, b.states)
	for state, counts := range b.countsOf {
		count, ln := b.fixedCount[a], logarithm{} // count: of all variables with value a
		for k, n := range counts {
			count += n
			ln = ln.plus(b.groups[k].field[a].times(float64(n))).minus(lnFactorials[n])
		}
		weights[state] = ln.plus(b.functions[a][count]).number()
	}
	return weights
}

// multiplyStates multiplies the sums of the values before a value by the weights of that value. Both are by state, a number of variables of
// each group: product[s+t] += sums[s] · weights[t] for all states s and t that have no more variables of any group than there are
// (isJoinable). It returns nil if the context ends.
func (b *valueSum) multiplyStates(sums box, weights []scaled.Number, look *pace.Pace) box {
	product := make(box, b.states)
	for stateBefore, y := range sums {
		if look.Over(int64(b.states - stateBefore)) {
			return nil
		}
		if y.IsZero() {
			continue
		}
		for state := 0; stateBefore+state < b.states; state++ {
			if !weights[state].IsZero() && b.isJoinable(stateBefore, state) {
				product[stateBefore+state] = product[stateBefore+state].Add(y.Mul(weights[state]))
			}
		}
	}
	return product
}

// isJoinable reports whether two states can be added: no group has fewer variables than both states count.
func (b *valueSum) isJoinable(s, t int) bool {
	for k, n := range b.countsOf[s] {
		if int(n+b.countsOf[t][k]) > len(b.groups[k].variables) {
			return false
		}
	}
	return true
}

// sumOfTerms returns the sum of all terms, without the constant: the last sum, at the state of all variables.
func (b *valueSum) sumOfTerms() scaled.Number { return b.sumsBefore[len(b.functions)][b.states-1] }

// lnZ returns ln Z.
func (b *valueSum) lnZ() logarithm {
	return logarithmOfNumber(b.sumOfTerms()).plus(b.constant)
}

// relativeError implements evaluation. No term is below 0, so the relative error of a term bounds that of the sum.
func (b *valueSum) relativeError() float64 { return math.Ldexp(b.roundings, -53) }

// groupMarginals returns P(value) of a variable of every group, by group and value. A state is a number of variables of each group. A term
// in which the variables of state s have value a, and those of stateBefore all values before a, has the probability
// sumsBefore[a][stateBefore] · weightsOf[a][s] · backward[stateBefore+s]. It goes back over the values and computes backward on the way.
func (b *valueSum) groupMarginals(ctx context.Context) ([][]float64, error) {
	marginals := make([][]float64, len(b.groups))
	for k := range marginals {
		marginals[k] = make([]float64, len(b.functions))
	}
	look := pace.New(ctx)           // counts operations, and is over once the context has ended
	backward := make(box, b.states) // by state before a value: the sum over all later values, over the sum of all terms
	backward[b.states-1] = scaled.One.Div(b.sumOfTerms())
	for a := len(b.functions) - 1; a >= 0; a-- {
		next := make(box, b.states)
		for stateBefore, y := range b.sumsBefore[a] {
			if look.Over(int64(b.states - stateBefore)) {
				return nil, look.Err()
			}
			for state := 0; stateBefore+state < b.states; state++ {
				if backward[stateBefore+state].IsZero() || !b.isJoinable(stateBefore, state) {
					continue
				}
				term := b.weightsOf[a][state].Mul(backward[stateBefore+state])
				next[stateBefore] = next[stateBefore].Add(term)
				if p := term.Mul(y).Float64(); p > 0 {
					for k, n := range b.countsOf[state] {
						marginals[k][a] += p * float64(n) / float64(len(b.groups[k].variables))
					}
				}
			}
		}
		backward = next
	}

	normaliseRows(marginals) // their sums are 1 up to rounding
	return marginals, nil
}

// marginals returns P(x) by variable and value. Z is above 0.
func (b *valueSum) marginals(ctx context.Context) ([][]float64, error) {
	groupRows, err := b.groupMarginals(ctx)
	if err != nil {
		return nil, err
	}
	rows := make([][]float64, len(b.weights))
	setRow := func(v int32, groupRow []float64) { // groupRow is by the class's value, which canonical gives for the variable's own
		rows[v] = make([]float64, len(groupRow))
		for x := range rows[v] {
			rows[v][x] = groupRow[b.partition.canonical(v, x)]
		}
	}
	for _, g := range b.fields.groups[0] { // of the one class
		if len(g.support) == 1 { // one possible value: b.groups has only the other groups
			certain := make([]float64, len(b.functions))
			certain[g.support[0]] = 1
			for _, v := range g.variables {
				setRow(v, certain)
			}
		}
	}
	for k, g := range b.groups {
		for _, v := range g.variables {
			setRow(v, groupRows[k])
		}
	}
	return rows, b.leafMarginals(ctx, nil, rows)
}

// drawStates draws, by value, how many variables of each group have the value, with the probability of the terms. A state is such numbers,
// one for each group, written as one number in mixed radix. It goes back from the last value. stateSoFar is the state of all values up to
// the present one: the sum of state, that of the present value, and stateBefore, that of the values before it.
func (b *valueSum) drawStates(stream *rand.Rand) [][]int32 {
	countsByValue := make([][]int32, len(b.functions))
	stateSoFar := b.states - 1
	for a := len(b.functions) - 1; a >= 0; a-- {
		u, sum, chosen := stream.Float64(), 0.0, -1 // −1: none yet; if roundings keep the sum below u, the last possible state is chosen
		for state := 0; state <= stateSoFar && sum <= u; state++ {
			stateBefore := stateSoFar - state
			if b.weightsOf[a][state].IsZero() || b.sumsBefore[a][stateBefore].IsZero() || !b.isJoinable(stateBefore, state) {
				continue
			}
			chosen = state // its probability given stateSoFar is its part of the sum over all states
			sum += b.weightsOf[a][state].Mul(b.sumsBefore[a][stateBefore]).Div(b.sumsBefore[a+1][stateSoFar]).Float64()
		}
		countsByValue[a] = b.countsOf[chosen]
		stateSoFar -= chosen
	}
	return countsByValue
}

// drawMembers draws the values of all variables but the leaves: first how many variables of each group have each value, then which ones.
// Groups of the one class with a single possible value have nothing to draw. b.groups are all other groups.
func (b *valueSum) drawMembers(stream *rand.Rand, values []int) {
	countsByValue := b.drawStates(stream)
	for _, g := range b.fields.groups[0] {
		if len(g.support) == 1 {
			counts := make([]int32, len(b.functions))
			counts[g.support[0]] = int32(len(g.variables))
			b.assignShuffled(stream, g.variables, counts, values)
		}
	}
	for k, g := range b.groups {
		counts := make([]int32, len(b.functions))
		for a, state := range countsByValue {
			counts[a] = state[k]
		}
		b.assignShuffled(stream, g.variables, counts, values)
	}
}

// draw draws want.Samples assignments, each with a random stream of its own: first the members of the class, then the leaves, the variables
// that were summed out, given the members. It returns nil if Z is 0.
func (b *valueSum) draw(ctx context.Context, want btn.Want) (*btn.Drawn, error) {
	n := len(b.weights)
	if err := query.CheckSamples(n, want.Samples); err != nil || b.lnZ().isImpossible() {
		return nil, err
	}
	samples := &btn.Drawn{Weight: b.lnZ().number(), Values: make([]int, n*want.Samples)}
	for s := range want.Samples {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		stream := rand.New(rand.NewPCG(want.Seed, uint64(s)))
		values := samples.Values[s*n : (s+1)*n]
		b.drawMembers(stream, values)
		for v, l := range b.interactions.leafOf {
			if l != nil {
				values[v] = drawByLn(stream, b.leafLogs(l, values))
			}
		}
	}
	return samples, nil
}
