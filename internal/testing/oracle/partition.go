// Z and marginals by enumeration.

package oracle

import (
	"math"
	"math/big"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Z returns Σ_x Π_j φ_j(x_j) Π_i w_i(x_i), w the evidence. It panics above MaxStates assignments (the
// observed variables are not enumerated and do not count).
func Z(m *factorgraph.Model, ev factorgraph.Evidence) *big.Float {
	sum := newFloat()
	enumerate(m, ev, func(_ []int, p *big.Float) { sum.Add(sum, p) })
	return sum
}

// LogZ returns ln |Z| in nats, −Inf for 0, and the sign of Z.
func LogZ(m *factorgraph.Model, ev factorgraph.Evidence) (float64, int) {
	z := Z(m, ev)
	return Ln(z), z.Sign()
}

// Marginals returns P(X_i = x | evidence) for all i and x, or nil when Z is 0.
func Marginals(m *factorgraph.Model, ev factorgraph.Evidence) [][]float64 {
	sums := make([][]*big.Float, len(m.Domains))
	for i, d := range m.Domains {
		sums[i] = make([]*big.Float, d)
		for x := range sums[i] {
			sums[i][x] = newFloat()
		}
	}
	z := newFloat()
	enumerate(m, ev, func(x []int, p *big.Float) {
		z.Add(z, p)
		for i, v := range x {
			sums[i][v].Add(sums[i][v], p)
		}
	})
	if z.Sign() == 0 {
		return nil
	}
	out := make([][]float64, len(sums))
	for i := range sums {
		out[i] = make([]float64, len(sums[i]))
		for x, s := range sums[i] {
			out[i][x], _ = newFloat().Quo(s, z).Float64()
		}
	}
	return out
}

// Ln returns ln |f| in nats of a number of any range, −Inf for 0.
func Ln(f *big.Float) float64 {
	if f.Sign() == 0 {
		return math.Inf(-1)
	}
	mant := new(big.Float)
	exp := f.MantExp(mant)
	m, _ := mant.Float64()
	return math.Log(math.Abs(m)) + float64(exp)*math.Ln2
}

// RelativeError returns |got − want| / |want|; |got| for want 0. A mantissa and an exponent of 2
// are available from every scaled number.
func RelativeError(mant float64, exp int64, want *big.Float) float64 {
	got := fromFloat(mant)
	got.SetMantExp(got, int(exp))
	diff := newFloat().Sub(got, want)
	if want.Sign() != 0 {
		diff.Quo(diff, want)
	}
	e, _ := diff.Float64()
	return math.Abs(e)
}

// enumerate visits every assignment of non-zero weight, variable by variable: a factor is multiplied in as soon as the
// last variable of its scope has its value, and a product of zero ends its branch. p is valid during the visit only.
func enumerate(m *factorgraph.Model, ev factorgraph.Evidence, visit func(x []int, p *big.Float)) {
	allowed := make([][]int, len(m.Domains))
	free := make([]int, len(m.Domains))
	for i, d := range m.Domains {
		for x := range d {
			allowed[i] = append(allowed[i], x)
		}
	}
	for _, o := range ev.Hard {
		allowed[o.Var] = []int{o.Value}
	}
	for i := range allowed {
		free[i] = len(allowed[i])
	}
	states(free)
	soft := make([][]float64, len(m.Domains))
	for _, l := range ev.Soft {
		soft[l.Var] = l.Weights
	}
	start := fromFloat(1)
	ready := make([][]*entries, len(m.Domains))
	for _, f := range m.Factors {
		last := -1
		for _, v := range f.Scope {
			last = max(last, v)
		}
		if last < 0 {
			start.Mul(start, Entry(f.Table, nil))
			continue
		}
		ready[last] = append(ready[last], newEntries(f, m.Domains))
	}
	x := make([]int, len(m.Domains))
	products := make([]*big.Float, len(x))
	for i := range products {
		products[i] = newFloat()
	}
	var descend func(i int, p *big.Float)
	descend = func(i int, p *big.Float) {
		if p.Sign() == 0 {
			return
		}
		if i == len(x) {
			visit(x, p)
			return
		}
		q := products[i]
		for _, v := range allowed[i] {
			x[i] = v
			q.Set(p)
			if soft[i] != nil {
				q.Mul(q, fromFloat(soft[i][v]))
			}
			for _, f := range ready[i] {
				q.Mul(q, f.at(x))
			}
			descend(i+1, q)
		}
	}
	descend(0, start)
}

// entries are the entries of a factor, each worked out once.
type entries struct {
	of      factorgraph.Factor
	domains []int        // of all variables
	known   []*big.Float // by position, row-major; nil: not yet. Empty for a factor above mostKnown.
}

// mostKnown bounds the entries that are kept of a factor.
const mostKnown = 1 << 16

func newEntries(of factorgraph.Factor, domains []int) *entries {
	size := 1
	for _, v := range of.Scope {
		if size *= domains[v]; size > mostKnown {
			return &entries{of: of}
		}
	}
	return &entries{of, domains, make([]*big.Float, size)}
}

// at returns an entry, which is not to be changed.
func (e *entries) at(assignment []int) *big.Float {
	position := 0
	if len(e.known) > 0 {
		for _, v := range e.of.Scope {
			position = position*e.domains[v] + assignment[v]
		}
		if known := e.known[position]; known != nil {
			return known
		}
	}
	local := make([]int, len(e.of.Scope))
	for place, v := range e.of.Scope {
		local[place] = assignment[v]
	}
	entry := Entry(e.of.Table, local)
	if len(e.known) > 0 {
		e.known[position] = entry
	}
	return entry
}
