// Package costs reads and writes cost function networks, the problems of toulbar2: WCSP and CFN. The cost of an assignment is a sum of
// functions, and an assignment of least cost is sought.
//
// A function of costs becomes the factor e^(−cost/U), 0 for a forbidden combination of values. So the most probable assignment has the
// least cost, −U times its ln weight. The unit U is 1 as long as no cost of a function is beyond 700, else the smallest power of ten for
// which none is beyond 700 U: e^−700 is among the least numbers that a float64 holds with all digits. Where a CFN asks for the largest
// value, the factor is e^(value/U).
//
// A problem's bound applies to single entries: one that is at least the bound, even if all other functions were at their least negative
// costs, is forbidden. A sum of entries below the bound may reach it; an optimum there says that the problem has no solution.
package costs

import (
	"cmp"
	"io"
	"math"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/internal/models/words"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// network is a cost function network as far as it is read.
type network struct {
	*words.Scanner
	limits    uai.Limits
	domains   []int      // per variable, the number of its values
	names     []string   // per variable; nil: variables have no names
	states    [][]string // per variable, the names of its values; nil: values have no names
	functions []function
	top       float64 // the bound: costs from it on are forbidden
	entries   int     // of all tables together
	legs      int     // variables in all scopes, each counted in each scope
}

// function is a table of costs: +∞ for a forbidden combination of values.
type function struct {
	scope []int
	table *tensor.Dense
}

// spare bounds the entries of tables beyond the bytes of their file.
const spare = 1 << 20

// mostNats is the largest cost of an entry, in units. leastNats is the least cost, in units, that is not lost in rounding: its factor is
// 1 − 10^-12, which has digits enough for a sum with thousands of others.
const (
	mostNats  = 700
	leastNats = 1e-12
)

// newNetwork returns an empty network that reads from r. Limits that are 0 have their defaults.
func newNetwork(format string, r io.Reader, l uai.Limits) *network {
	l.Bytes = cmp.Or(l.Bytes, 256<<20)
	l.Variables = cmp.Or(l.Variables, 1<<22)
	l.Factors = cmp.Or(l.Factors, 1<<23)
	l.Domain = cmp.Or(l.Domain, 1<<20)
	l.Legs = cmp.Or(l.Legs, 1<<26)
	l.Entries = cmp.Or(l.Entries, 1<<27)
	return &network{Scanner: words.New(format, r, l.Bytes), limits: l, top: math.Inf(1)} // top: no cost is forbidden by the bound yet
}

// addVariable adds a variable of this many values; title names it in errors.
func (n *network) addVariable(title string, size int) {
	switch {
	case n.Err != nil:
	case size < 1:
		n.FailInput(uai.ErrModel, "variable %s has %d values, at least 1 is needed", title, size)
	case size > n.limits.Domain:
		n.FailInput(uai.ErrLimit, "variable %s has %d values, at most %d are read", title, size, n.limits.Domain)
	case len(n.domains) == n.limits.Variables:
		n.FailInput(uai.ErrLimit, "more than %d variables", n.limits.Variables)
	default:
		n.domains = append(n.domains, size)
	}
}

// checkScope returns false, after an error, if a scope has a variable twice or all scopes together are beyond the
// limit.
func (n *network) checkScope(title string, scope []int) bool {
	if n.legs += len(scope); n.legs > n.limits.Legs {
		n.FailInput(uai.ErrLimit, "%s: more than %d variables in all scopes together", title, n.limits.Legs)
	}
	inScope := make(map[int]bool, len(scope))
	for _, v := range scope {
		if inScope[v] {
			n.FailInput(uai.ErrModel, "%s: variable %s is twice in the scope", title, n.nameOf(v))
		}
		inScope[v] = true
	}
	return n.Err == nil
}

// nameOf returns the name of variable v for errors.
func (n *network) nameOf(v int) string {
	labels := factorgraph.Model{Domains: n.domains, Names: n.names}
	if l, err := labels.Labels(); err == nil {
		return l.OfVariable(v)
	}
	return ""
}

// addFunction adds a function and returns its table, with all entries at the cost. It returns nil, after an error, if
// the table is too large.
func (n *network) addFunction(title string, scope []int, cost float64) *tensor.Dense {
	shape := make([]int, len(scope))
	for k, v := range scope {
		shape[k] = n.domains[v]
	}
	size := decimal.Entries(shape)
	mostEntries := min(int64(n.limits.Entries), n.BytesRead+spare) // a short file may declare huge tables with a default cost
	if int64(size) > mostEntries-int64(n.entries) {
		n.FailInput(uai.ErrLimit, "%s: its table needs %s entries, this file may have %d in all tables together", title,
			decimal.EntriesText(size), mostEntries)
		return nil
	}
	n.entries += size
	t := &tensor.Dense{Shape: shape, Data: make([]float64, size)}
	for i := range t.Data {
		t.Data[i] = cost
	}
	n.functions = append(n.functions, function{scope, t})
	return t
}

// indexOf returns the index of a combination of values in a table of the shape, the last variable fastest.
func indexOf(shape, values []int) (index int) {
	for k, x := range values {
		index = index*shape[k] + x
	}
	return index
}

// model returns the network as a factor graph, each table of costs c as exp(−c/unit). The unit is 1 unless float64 has no room for the
// exponentials. A cost that makes the total reach the upper bound becomes infinite before, and its entry 0.
func (n *network) model() (*factorgraph.Model, error) {
	m := &factorgraph.Model{Domains: n.domains, Names: n.names, States: n.states}
	if values, limit := m.Values(n.BytesRead); values > limit {
		n.FailInput(uai.ErrLimit, "the variables have %d values together, at most the file's bytes and 2^20 are read: %d", values, limit)
	}
	if n.Err != nil {
		return nil, n.Err
	}
	n.forbidAboveBound()
	unit := n.unit()
	if n.Err != nil {
		return nil, n.Err
	}
	for _, f := range n.functions {
		for i, c := range f.table.Data {
			f.table.Data[i] = math.Exp(-c / unit)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: f.scope, Table: f.table})
	}
	return m, nil
}

// forbidAboveBound sets a cost to infinity if it reaches the bound n.top even beside the least costs of all other functions. Only least
// costs below 0 count: another function may cost nothing.
func (n *network) forbidAboveBound() {
	negative := make([]float64, len(n.functions)) // per function, its least cost, or 0 if that is positive
	sum := 0.0
	for j, f := range n.functions {
		for _, c := range f.table.Data {
			negative[j] = min(negative[j], c)
		}
		sum += negative[j]
	}
	for j, f := range n.functions {
		leastOfOthers := sum - negative[j]
		for i, c := range f.table.Data {
			if c+leastOfOthers >= n.top {
				f.table.Data[i] = math.Inf(1)
			}
		}
	}
}

// unit returns the unit of costs: the least power of ten, from 1, of which no finite cost has more than 700, so that exp(−cost/unit) is
// within float64. If the unit is not 1, a cost below leastNats units, which rounding would lose, is an error.
func (n *network) unit() float64 {
	highest, lowest := 0.0, math.Inf(1) // absolute values of finite costs other than 0
	for _, f := range n.functions {
		for _, c := range f.table.Data {
			if c = math.Abs(c); c > 0 && !math.IsInf(c, 0) {
				highest, lowest = max(highest, c), min(lowest, c)
			}
		}
	}
	unit := 1.0
	for highest/unit > mostNats {
		unit *= 10
	}
	if unit > 1 && lowest < leastNats*unit {
		n.FailInput(uai.ErrLimit,
			"costs of %g and of %g need more digits together than a float64 has: what is forbidden costs inf or the upper bound",
			lowest, highest)
	}
	return unit
}

// failKind notes the error for a function of a kind that is not read.
func (n *network) failKind(title, kind string) {
	n.Fail(fault.Unsupported, uai.ErrModel, "%s is %.40q, a cost function without a table: tables of costs are read, and the binary %s",
		title, kind, formulaNames)
}
