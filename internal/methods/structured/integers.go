package structured

// Integer statistics: what a fit has of them.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// maxCoordinate bounds the coordinates of a sum.
const maxCoordinate = 1 << 40

// Integers are statistics whose values are integers, N_k(i, x). The base tensor is
//
//	B(x) = e^c · Π_i e^{u_i(x_i)} · e^{½ S(x)ᵀ G S(x)},   S(x) = Σ_i (N(i, x_i) − mean of N(i, ·))
//
// for a symmetric G of any sign. c, u and G are pairs, high and low. Fit.Field and Fit.Ln are not used.
type Integers struct {
	Values   []int64   `msgpack:"values"` // N: statistic by statistic, and for each by value; 0 for the first value of a variable
	Form     []float64 `msgpack:"form"`   // G: entries high and low, row by row
	Field    []float64 `msgpack:"field"`  // u_i(x) by value, nats, high
	FieldLow []float64 `msgpack:"low"`    // low
	Ln       []float64 `msgpack:"ln"`     // c, high and low
	// Sequence are the variables in the sequence in which they are added.
	Sequence []int `msgpack:"sequence"`
	// States is the work of all partial sums in that sequence, in states that are merged. Widest is the largest number of states of one.
	States float64 `msgpack:"states"`
	Widest float64 `msgpack:"widest"`
}

// statisticCount returns the number of statistics. valueCount is the number of values of all variables together: Values has that
// many integers for each statistic.
func (n *Integers) statisticCount(valueCount int) int { return len(n.Values) / max(1, valueCount) }

// check returns an error if the integers are not valid for fit f. All lists have to have the lengths that f needs, and all numbers have to
// be finite, but a field may be −Inf. The sequence has to have each variable once, and f neither tables in Rest nor leaves.
func (n *Integers) check(f *Fit) error {
	values := len(f.Field)
	k := n.statisticCount(values)
	hasStatistics := k > 0 && k <= MaxStatistics && len(n.Values) == k*values && len(n.Form) == 2*k*k
	hasFields := len(n.Field) == values && len(n.FieldLow) == values && len(n.Ln) == 2
	if !hasStatistics || !hasFields || len(n.Sequence) != len(f.Domains) {
		return btn.Misfit("%d integers, %d numbers of a form, %d fields for %d values", len(n.Values), len(n.Form), len(n.Field), values)
	}
	isInSequence := make([]bool, len(f.Domains))
	for _, v := range n.Sequence {
		if v < 0 || v >= len(isInSequence) || isInSequence[v] {
			return btn.Misfit("variable %d comes twice in a sequence, or is not there", v)
		}
		isInSequence[v] = true
	}
	for _, list := range [][]float64{n.Form, n.FieldLow, n.Ln} {
		for _, x := range list {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return btn.Misfit("a number of a form is %v", x)
			}
		}
	}
	for _, x := range n.Field {
		if math.IsNaN(x) || math.IsInf(x, 1) {
			return btn.Misfit("a field is %v", x)
		}
	}
	if len(f.Rest)+len(f.Leaves) > 0 {
		return btn.Misfit("integers beside %d tables and %d leaves", len(f.Rest), len(f.Leaves))
	}
	if _, err := n.keys(f.Domains); err != nil {
		return err
	}
	return nil
}

// integerFit returns the fit for a histogram if the statistics of an approximation are integers in some basis. It returns nil if they are
// not, if their sums have too many states, if the network has tables with zeros, or leaves, or if the fit is not exact.
func (m *interactions) integerFit(ctx context.Context, net *btn.Network, approximation *lowRank, memory int64) (*Fit, error) {
	if len(m.leaves)+len(m.otherTables)+len(m.zeroPairs) > 0 { // a histogram has statistics only, and no further tables
		return nil, nil
	}
	integers := m.findLattice(approximation)
	if integers == nil {
		return nil, nil
	}
	keys, err := integers.keys(m.domains)
	if err != nil { // a misfit: the sums have too many values
		return nil, nil
	}
	integers.chooseSequence(m.domains)
	if isWithin, err := integers.countStates(ctx, m.domains, keys); !isWithin || err != nil || integers.bytes() > float64(memory) {
		return nil, err // nil if it is not within the bounds, or does not fit the memory
	}
	worst, err := m.fitForm(ctx, net, integers, memory) // +Inf if it fails
	if err != nil || !(worst <= exactError) {
		return nil, err
	}
	return &Fit{Domains: m.domains, Field: m.roundedFields(), Integers: integers, LnError: worst}, nil
}

// chooseSequence chooses the sequence in which variables are added, so that partial sums have few states: variables with small integers
// come first, and variables with equal integers, up to the sign, are neighbours.
func (n *Integers) chooseSequence(domains []int) {
	values := 0
	offset := make([]int, len(domains))
	for v, d := range domains {
		offset[v] = values
		values += d
	}

	k := n.statisticCount(values)
	// rows[v] has the integers of variable v, which are by statistic and value in Values, and size[v] is the sum of their |N|.
	rows, size := make([][]int64, len(domains)), make([]int64, len(domains))
	for v, d := range domains {
		for x := offset[v]; x < offset[v]+d; x++ {
			for c := range k {
				rows[v] = append(rows[v], n.Values[c*values+x])
			}
		}
		makeFirstPositive(rows[v])
		for _, y := range rows[v] {
			size[v] += abs(y)
		}
		n.Sequence = append(n.Sequence, v)
	}
	slices.SortStableFunc(n.Sequence, func(a, b int) int {
		if size[a] != size[b] {
			return int(size[a] - size[b])
		}
		return slices.Compare(rows[a], rows[b])
	})
}

// makeFirstPositive negates a row if its first entry other than 0 is negative, so that rows that differ in sign become equal.
func makeFirstPositive(row []int64) {
	for _, y := range row {
		if y > 0 {
			return
		}
		if y < 0 {
			for c := range row {
				row[c] = -row[c]
			}
			return
		}
	}
}

// keys returns, by value, what a variable's value adds to the key of a sum. The key is one number for the sums of all statistics: Σ_k
// stride_k · sum_k, where stride_k is the product of the spans of the statistics before k. The span of a statistic is the number of
// integers from the smallest sum that it can have to the largest. keys returns a misfit if keys would be too large for an int64.
func (n *Integers) keys(domains []int) ([]int64, error) {
	values := 0
	for _, d := range domains {
		values += d
	}
	k := n.statisticCount(values)
	keys := make([]int64, values)
	stride := 1.0
	for c := range k {
		integers := n.Values[c*values:][:values]
		span, err := spanOf(integers, domains)
		if err != nil {
			return nil, err
		}
		if span > maxCoordinate {
			return nil, btn.Misfit("statistic %d has %.3g values", c, span)
		}
		for x, y := range integers {
			keys[x] += y * int64(stride)
		}
		stride *= span      // a float64, so that it cannot overflow before it is compared
		if stride > 1<<61 { // chosen: a margin to the 2⁶³ of an int64
			return nil, btn.Misfit("sums of integers have %.3g values", stride)
		}
	}
	return keys, nil
}

// spanOf returns the span of a statistic, whose integers are by value of one variable after the other: 1 plus the sum over the variables of
// the largest integer less the smallest. It returns a misfit if an integer is larger than maxCoordinate.
func spanOf(integers []int64, domains []int) (span float64, err error) {
	span = 1
	offset := 0
	for _, d := range domains {
		lowest, highest := integers[offset], integers[offset]
		for _, y := range integers[offset : offset+d] {
			lowest, highest = min(lowest, y), max(highest, y)
		}
		// abs(math.MinInt64) overflows to a negative number, which is not above maxCoordinate.
		if abs(lowest) > maxCoordinate || abs(highest) > maxCoordinate || lowest == math.MinInt64 {
			return 0, btn.Misfit("an integer of a statistic is %d", lowest)
		}
		span += float64(highest - lowest)
		offset += d
	}
	return span, nil
}
