// Package structured is the family of base tensors whose factors nobody declared to have structure, and that have it: plain tables of two
// variables whose logarithms, centred, are a symmetric matrix of low rank but for few pairs.
//
// Such a base tensor is a function of K linear statistics s_k(x) = Σ_i v_k(i, x_i) times the few other factors C:
//
//	B(x) = e^c · Π_i e^{u_i(x_i)} · Π_k e^{½ λ_k s_k(x)²} · C(x)
//
// and each Gaussian e^{½ λ s²} is a sum of exponentials of s, by the trapezoidal rule (Lemma 2 with α > 0 where λ > 0):
//
//	e^{½ λ s²} = Σ_m α_m Π_i e^{√λ y_m v(i, x_i)} · (1 + ε),   y_m = h m,  α_m = h/√(2π) e^{−y_m²/2},  |ε| ≤ 2 e^{−2π²/h²}
//
// So B = Σ_m α_m C ∘ R_m with R_m of rank one. The error is relative, entry by entry, and hence one of Z. Where λ < 0 terms cancel, and
// the sum says what that leaves. Statistics that are integers need no quadrature: the histogram of their sums is a convolution of
// positive numbers.
package structured

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// WholeShare is all nodes of a fit.
const WholeShare = int64(1) << 20

// Nodes is a share of the components of a fit: the nodes of its quadrature that matter under the evidence.
type Nodes struct {
	Of *Fit `msgpack:"-"`
	// From and To are a share of the nodes, in units of 1/WholeShare: their number is known under evidence only.
	From int64 `msgpack:"from"`
	To   int64 `msgpack:"to"`
	// Ask is empty for a part that Z is the sum of, AskSamples for one that draws assignments; its Z is 0 then.
	Ask btn.Ask `msgpack:"ask,omitempty"`
}

// Fit is a base tensor as a function of few linear statistics. Values are those of all variables, one variable after the other.
type Fit struct {
	// Variables are the network's, leaves aside; nil: all, there are no leaves.
	Variables []int   `msgpack:"variables,omitempty"`
	Leaves    []Leaf  `msgpack:"leaves,omitempty"`
	Domains   []int   `msgpack:"domains"`
	Ln        float64 `msgpack:"ln"` // c, nats
	// Field is u_i(x) − ½ Σ_k λ_k v_k(i, x)² by value, nats: what completes the squares is taken off.
	Field  []float64 `msgpack:"field"`
	Lambda []float64 `msgpack:"lambda"` // λ_k, of either sign
	// Vectors are v_k(i, x): statistic by statistic, value by value.
	Vectors []float64 `msgpack:"vectors"`
	Rest    []Table   `msgpack:"rest,omitempty"` // C
	// Order eliminates the variables of the rest.
	Order []int `msgpack:"order,omitempty"`
	// Summed: the statistics are summed one by one along Order, in which statistic k is variable len(Domains) + k.
	Summed bool `msgpack:"summed,omitempty"`
	// LnError bounds |ln B̃ − ln B| of every entry before the quadrature, nats.
	LnError float64 `msgpack:"error"`
	// Integers are there if the statistics are: their sums have a histogram, and no quadrature is needed. Lambda and Vectors are empty then.
	Integers *Integers `msgpack:"integers,omitempty"`
}

// Table is a factor of the rest: its entries are not below 0, the last variable changes fastest.
type Table struct {
	Scope  []int     `msgpack:"scope"`
	Values []float64 `msgpack:"values"`
}

// Class implements btn.Part.
func (*Nodes) Class() btn.Class { return btn.ClassStructured }

// About implements btn.Part.
func (p *Nodes) About() btn.About { return btn.About{Finds: p.Ask, KeepsRange: true, Shared: &p.Of} }

// Fits implements btn.Part.
func (p *Nodes) Fits(n *btn.Network) error {
	f := p.Of
	switch {
	case f == nil:
		return btn.Misfit("it has no fit")
	case p.From < 0 || p.To < p.From || p.To > WholeShare:
		return btn.Misfit("nodes from %d to %d of %d", p.From, p.To, WholeShare)
	case p.Ask != "" && p.Ask != btn.AskSamples:
		return btn.Misfit("it asks for %.40q", p.Ask)
	case n.Variables == nil || len(f.Domains)+len(f.Leaves) != len(n.Variables) || f.Variables != nil && len(f.Variables) != len(f.Domains):
		return btn.Misfit("a fit of %d variables and %d leaves, the network has %d", len(f.Domains), len(f.Leaves), len(n.Variables))
	}
	values := 0
	seen := make([]bool, len(n.Variables))
	match := func(v, d int) error {
		if v < 0 || v >= len(seen) || seen[v] || d != n.Variables[v].Domain {
			return btn.Misfit("variable %d comes twice, or has another domain than the %d values in the fit", v, d)
		}
		seen[v] = true
		return nil
	}
	for u, v := range f.variables() {
		if err := match(v, f.Domains[u]); err != nil {
			return err
		}
		values += f.Domains[u]
	}
	for k := range f.Leaves {
		l := &f.Leaves[k]
		if err := match(l.Variable, len(l.Weights)); err != nil {
			return err
		}
		if err := l.fits(f); err != nil {
			return err
		}
	}
	if f.Integers != nil {
		if p.From != 0 || p.To != WholeShare || len(f.Field) != values || !(f.LnError >= 0) {
			return btn.Misfit("a share of a histogram, or %d fields for %d values", len(f.Field), values)
		}
		return f.Integers.fits(f)
	}
	k := len(f.Lambda)
	if k == 0 || k > MostStatistics || len(f.Field) != values || len(f.Vectors) != k*values {
		return btn.Misfit("%d statistics, %d numbers of fields and %d of vectors for %d values", k, len(f.Field), len(f.Vectors), values)
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
	if f.Summed {
		var err error
		if f, err = f.summed(); err != nil {
			return err
		}
	}
	return f.restFits()
}

// restFits checks the tables of the rest and the order of their variables.
func (f *Fit) restFits() error {
	used := make([]int, len(f.Domains))
	for t, table := range f.Rest {
		size := 1
		for _, v := range table.Scope {
			if v < 0 || v >= len(f.Domains) || used[v] == t+1 {
				return btn.Misfit("table %d of the rest has variable %d of %d, or has it twice", t, v, len(f.Domains))
			}
			used[v] = t + 1
			if size *= f.Domains[v]; size > len(table.Values) {
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
	}
	for _, v := range f.Order {
		if v < 0 || v >= len(used) || used[v] <= 0 {
			return btn.Misfit("the order of the rest has variable %d, which is not there or comes twice", v)
		}
		used[v] = -1
	}
	for v, t := range used {
		if t > 0 {
			return btn.Misfit("variable %d of the rest is not in its order", v)
		}
	}
	return nil
}
