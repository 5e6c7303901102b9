// Package structured finds base tensors with a structure that nobody declared: networks of plain tables of two variables whose logarithms,
// centred, are a symmetric matrix of low rank, up to a few pairs of variables.
//
// Such a base tensor is a function of K linear statistics s_k(x) = Σ_i v_k(i, x_i) times a few other factors C, the rest:
//
//	B(x) = e^c · Π_i e^{u_i(x_i)} · Π_k e^{½ λ_k s_k(x)²} · C(x)
//
// Each Gaussian e^{½ λ s²} is a sum of exponentials of s, by the trapezoidal rule (Lemma 2, with α > 0 if λ > 0):
//
//	e^{½ λ s²} = Σ_m α_m Π_i e^{√λ y_m v(i, x_i)} · (1 + ε),   y_m = h m,  α_m = h/√(2π) e^{−y_m²/2},  |ε| ≤ 2 e^{−2π²/h²}
//
// So B = Σ_m α_m C ∘ R_m with R_m of rank one, a component for each node m. The error is relative, entry by entry, and hence one of Z. If
// λ < 0 terms cancel, and the value states how many digits that leaves. Statistics that are integers need no quadrature: the histogram of
// their sums is a convolution of positive numbers.
package structured

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// WholeShare is the unit of Nodes.From and Nodes.To: the share with all nodes of a fit is from 0 to WholeShare.
const WholeShare = int64(1) << 20

// Nodes is a part: the sum over a share of a fit's components, which are the nodes of its quadrature that matter under the evidence.
type Nodes struct {
	Fit *Fit `msgpack:"-"`
	// From and To are a share of the nodes, in units of 1/WholeShare. The number of nodes is known under evidence only.
	From int64 `msgpack:"from"`
	To   int64 `msgpack:"to"`
	// Ask is empty if the part adds to Z. With AskSamples the part draws assignments and its Z is 0.
	Ask btn.Ask `msgpack:"ask,omitempty"`
}

// Fit is a base tensor as a function of few linear statistics. A list by value has the values of all variables, one variable after the
// other.
type Fit struct {
	// Variables are the network's variables that the fit has, by variable of the fit: all but the leaves. It is nil if there are no leaves.
	Variables []int   `msgpack:"variables,omitempty"`
	Leaves    []Leaf  `msgpack:"leaves,omitempty"`
	Domains   []int   `msgpack:"domains"`
	Ln        float64 `msgpack:"ln"` // c, nats
	// Field is u_i(x) − ½ Σ_k λ_k v_k(i, x)² by value, nats. The second term takes off the squares of single variables in ½ λ_k s_k².
	Field  []float64 `msgpack:"field"`
	Lambda []float64 `msgpack:"lambda"` // λ_k, of either sign
	// Vectors are v_k(i, x): statistic by statistic, and for each by value.
	Vectors []float64 `msgpack:"vectors"`
	Rest    []Table   `msgpack:"rest,omitempty"` // C
	// Order eliminates the variables of the rest.
	Order []int `msgpack:"order,omitempty"`
	// StatisticsAreVariables: Order eliminates the statistics, too, and statistic k is variable len(Domains) + k in it.
	StatisticsAreVariables bool `msgpack:"summed,omitempty"`
	// LnError bounds |ln B̃ − ln B| of every entry before the quadrature, nats.
	LnError float64 `msgpack:"error"`
	// Integers is not nil if the statistics are integers: the histogram of their sums replaces the quadrature. Lambda and Vectors are empty
	// then.
	Integers *Integers `msgpack:"integers,omitempty"`
}

// Table is a factor of the rest. Its entries are at least 0, and the last variable of its scope changes fastest.
type Table struct {
	Scope  []int     `msgpack:"scope"`
	Values []float64 `msgpack:"values"`
}

// Class implements btn.Part.
func (*Nodes) Class() btn.Class { return btn.ClassStructured }

// About implements btn.Part: the part answers p.Ask, and parts of one plan share a fit.
func (p *Nodes) About() btn.About { return btn.About{Finds: p.Ask, KeepsRange: true, Shared: &p.Fit} }

// Fits returns an error unless the part is valid for network n: a share of the nodes within 0 and WholeShare, and a fit with the variables
// of the network and valid numbers.
func (p *Nodes) Fits(n *btn.Network) error {
	f := p.Fit
	if f == nil {
		return btn.Misfit("it has no fit")
	}
	hasAllVariables := n.Variables != nil && len(f.Domains)+len(f.Leaves) == len(n.Variables)
	isListComplete := f.Variables == nil || len(f.Variables) == len(f.Domains)
	switch {
	case p.From < 0 || p.To < p.From || p.To > WholeShare:
		return btn.Misfit("nodes from %d to %d of %d", p.From, p.To, WholeShare)
	case p.Ask != "" && p.Ask != btn.AskSamples:
		return btn.Misfit("it asks for %.40q", p.Ask)
	case !hasAllVariables || !isListComplete:
		return btn.Misfit("a fit of %d variables and %d leaves, the network has %d", len(f.Domains), len(f.Leaves), len(n.Variables))
	}
	if err := f.checkVariables(n); err != nil {
		return err
	}
	valueCount := 0 // of all variables together
	for _, d := range f.Domains {
		valueCount += d
	}

	// A histogram is one part, and its fit has no rest.
	if f.Integers != nil {
		if p.From != 0 || p.To != WholeShare || len(f.Field) != valueCount || !(f.LnError >= 0) {
			return btn.Misfit("a share of a histogram, or %d fields for %d values", len(f.Field), valueCount)
		}
		return f.Integers.check(f)
	}

	if err := f.checkNumbers(valueCount); err != nil {
		return err
	}
	if f.StatisticsAreVariables {
		var err error
		if f, err = f.expandStatistics(); err != nil {
			return err
		}
	}
	return f.checkRest()
}

// checkVariables returns an error unless the variables and leaves of the fit are distinct variables of the network with the same domains,
// and every leaf is valid. The caller has checked that the fit has as many variables and leaves as the network has variables.
func (f *Fit) checkVariables(n *btn.Network) error {
	isMatched := make([]bool, len(n.Variables))
	matchOnce := func(v, d int) error { // checks that v is a variable of the network with d values that was not seen before
		if v < 0 || v >= len(isMatched) || isMatched[v] || d != n.Variables[v].Domain {
			return btn.Misfit("variable %d comes twice, or has another domain than the %d values in the fit", v, d)
		}
		isMatched[v] = true
		return nil
	}
	for u, v := range f.networkVariables() { // variable u of the fit is variable v of the network
		if err := matchOnce(v, f.Domains[u]); err != nil {
			return err
		}
	}
	for k := range f.Leaves {
		l := &f.Leaves[k]
		if err := matchOnce(l.Variable, len(l.Weights)); err != nil {
			return err
		}
		if err := l.check(f); err != nil {
			return err
		}
	}
	return nil
}

// checkNumbers returns an error if a list of the fit has a wrong length or a number that is not finite. Only fields may be −Inf. valueCount
// is the number of values of all variables together.
func (f *Fit) checkNumbers(valueCount int) error {
	statistics := len(f.Lambda)
	if statistics == 0 || statistics > MaxStatistics || len(f.Field) != valueCount || len(f.Vectors) != statistics*valueCount {
		return btn.Misfit("%d statistics, %d numbers of fields and %d of vectors for %d values",
			statistics, len(f.Field), len(f.Vectors), valueCount)
	}
	for _, list := range [][]float64{f.Lambda, f.Vectors, {f.Ln, f.LnError}} {
		for _, x := range list {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return btn.Misfit("a number of the fit is %v", x)
			}
		}
	}
	for _, x := range f.Field {
		if math.IsNaN(x) || math.IsInf(x, 1) {
			return btn.Misfit("a field is %v", x)
		}
	}
	return nil
}

// checkRest returns an error unless the tables of the rest (Fit.Rest) have variables, the sizes of their scopes and finite entries of at
// least 0, and Fit.Order has each of their variables once and no other.
func (f *Fit) checkRest() error {
	isMissing := make([]bool, len(f.Domains)) // by variable: it is in the rest, and not in the order so far
	for t := range f.Rest {
		if err := f.checkTable(t); err != nil {
			return err
		}
		for _, v := range f.Rest[t].Scope {
			isMissing[v] = true
		}
	}
	for _, v := range f.Order {
		if v < 0 || v >= len(isMissing) || !isMissing[v] {
			return btn.Misfit("the order of the rest has variable %d, which is not there or comes twice", v)
		}
		isMissing[v] = false
	}
	if v := slices.Index(isMissing, true); v >= 0 {
		return btn.Misfit("variable %d of the rest is not in its order", v)
	}
	return nil
}

// checkTable checks table t of f.Rest. It returns an error unless the table has variables, each of them once, as many entries as its
// variables have combinations of values, and only finite entries of at least 0.
func (f *Fit) checkTable(t int) error {
	table := &f.Rest[t]
	if len(table.Scope) == 0 { // no clique would multiply it
		return btn.Misfit("table %d of the rest has no variable", t)
	}
	size := 1
	for k, v := range table.Scope {
		if v < 0 || v >= len(f.Domains) || slices.Contains(table.Scope[:k], v) {
			return btn.Misfit("table %d of the rest has variable %d of %d, or has it twice", t, v, len(f.Domains))
		}
		size *= f.Domains[v]
		if size > len(table.Values) { // before it overflows
			break
		}
	}
	if size != len(table.Values) {
		return btn.Misfit("table %d of the rest has %d entries", t, len(table.Values))
	}
	for _, x := range table.Values {
		if !(x >= 0) || math.IsInf(x, 1) {
			return btn.Misfit("table %d of the rest has entry %v", t, x)
		}
	}
	return nil
}
