package structured

// Integer statistics: what a fit has of them.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// mostCoordinate bounds the coordinates of a sum.
const mostCoordinate = 1 << 40

// Integers are statistics whose values are integers, N_k(i, x): the base tensor is
//
//	B(x) = e^c · Π_i e^{u_i(x_i)} · e^{½ S(x)ᵀ G S(x)},   S(x) = Σ_i (N(i, x_i) − mean of N(i, ·))
//
// for a symmetric G of any sign. All numbers are pairs, high and low. The value of Fit.Field and Fit.Ln is not used.
type Integers struct {
	Values   []int64   `msgpack:"values"` // N: statistic by statistic, value by value; 0 for the first value of a variable
	Form     []float64 `msgpack:"form"`   // G: entries high and low, row by row
	Field    []float64 `msgpack:"field"`  // u_i(x), nats
	FieldLow []float64 `msgpack:"low"`
	Ln       []float64 `msgpack:"ln"` // c, high and low
	// Sequence are the variables in the sequence in which they are added.
	Sequence []int `msgpack:"sequence"`
	// States is the number of values of all partial sums in that sequence, Widest that of one of them.
	States float64 `msgpack:"states"`
	Widest float64 `msgpack:"widest"`
}

// statistics is the number of statistics.
func (n *Integers) statistics(values int) int { return len(n.Values) / max(1, values) }

// fits checks integers of a fit.
func (n *Integers) fits(f *Fit) error {
	values := len(f.Field)
	k := n.statistics(values)
	if k == 0 || k > MostStatistics || len(n.Values) != k*values || len(n.Form) != 2*k*k || len(n.Field) != values ||
		len(n.FieldLow) != values || len(n.Ln) != 2 || len(n.Sequence) != len(f.Domains) {
		return btn.Misfit("%d integers, %d numbers of a form, %d fields for %d values", len(n.Values), len(n.Form), len(n.Field), values)
	}
	seen := make([]bool, len(f.Domains))
	for _, v := range n.Sequence {
		if v < 0 || v >= len(seen) || seen[v] {
			return btn.Misfit("variable %d comes twice in a sequence, or is not there", v)
		}
		seen[v] = true
	}
	for _, list := range [][]float64{n.Form, n.FieldLow, n.Ln} {
		for _, x := range list {
			if x-x != 0 {
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

// counted is the fit of an approximation whose statistics are integers; nil where they are none, their sums have too many values, or
// there are other tables.
func (m *interactions) counted(ctx context.Context, net *btn.Network, s *spectrum, memory int64) (*Fit, error) {
	if len(m.leaves)+len(m.hard)+len(m.apart) > 0 {
		return nil, nil
	}
	n := m.lattice(s)
	if n == nil {
		return nil, nil
	}
	keys, err := n.keys(m.domains)
	if err != nil {
		return nil, nil
	}
	n.order(m.domains)
	if within, err := n.count(ctx, m.domains, keys); !within || err != nil || n.bytes() > float64(memory) {
		return nil, err
	}
	worst, err := m.refine(ctx, net, n, memory)
	if err != nil || !(worst <= exactError) {
		return nil, err
	}
	return &Fit{Domains: m.domains, Field: m.fields(), Integers: n, LnError: worst}, nil
}

// order chooses the sequence in which variables are added: equal ones together, and short ones first, so that partial sums have few
// values.
func (n *Integers) order(domains []int) {
	values := 0
	place := make([]int, len(domains))
	for v, d := range domains {
		place[v] = values
		values += d
	}
	k := n.statistics(values)
	row := func(v int) (out []int64) {
		for x := place[v]; x < place[v]+domains[v]; x++ {
			for c := range k {
				out = append(out, n.Values[c*values+x])
			}
		}
		sign := int64(1)
		for _, y := range out {
			if y != 0 {
				sign = y / abs(y)
				break
			}
		}
		for c := range out {
			out[c] *= sign
		}
		return out
	}
	rows, length := make([][]int64, len(domains)), make([]int64, len(domains))
	for v := range domains {
		rows[v] = row(v)
		for _, y := range rows[v] {
			length[v] += abs(y)
		}
		n.Sequence = append(n.Sequence, v)
	}
	slices.SortStableFunc(n.Sequence, func(a, b int) int {
		if length[a] != length[b] {
			return int(length[a] - length[b])
		}
		return slices.Compare(rows[a], rows[b])
	})
}

// keys returns the difference that a variable's value makes to the number of a sum, by value: one number for each sum. Errors: misfit for
// sums beyond the range of such numbers.
func (n *Integers) keys(domains []int) ([]int64, error) {
	values := 0
	for _, d := range domains {
		values += d
	}
	k := n.statistics(values)
	out := make([]int64, values)
	stride := 1.0
	for c := range k {
		own, span, at := n.Values[c*values:][:values], 1.0, 0
		for _, d := range domains {
			low, high := own[at], own[at]
			for _, y := range own[at : at+d] {
				low, high = min(low, y), max(high, y)
			}
			if abs(low) > mostCoordinate || abs(high) > mostCoordinate || low == math.MinInt64 {
				return nil, btn.Misfit("an integer of a statistic is %d", low)
			}
			span += float64(high - low)
			at += d
		}
		if span > mostCoordinate {
			return nil, btn.Misfit("statistic %d has %.3g values", c, span)
		}
		for x, y := range own {
			out[x] += y * int64(stride)
		}
		if stride *= span; stride > 1<<61 {
			return nil, btn.Misfit("sums of integers have %.3g values", stride)
		}
	}
	return out, nil
}
