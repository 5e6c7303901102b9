// Package exchangeable contracts base tensors that depend on counts alone: variables of few classes, in which swapping two
// variables changes nothing (Lemmas 3 and 4, found in plain tables).
//
// With c_v of the variables of a class at value v, and a function u_S for every set S of variables that is the same for all sets of as
// many variables of each class,
//
//	Z = Σ_c Π_classes (Σ_{x: counts c} Π_i w_i(x_i)) · exp Σ_patterns u(pattern) · ways(pattern, c)
//
// where a pattern is a multiset of values of classes and ways is the number of sets that have it among the counts: c(c−1)/2 pairs with
// twice the same value, c·c' with two values. All terms are positive for tables of any sign of coupling: nothing cancels. Logarithms of
// terms are sums in twice the digits of float64, so that the error of Z is a few roundings.
//
//   - Relabellings may be relabelled from variable to variable.
//   - Variables of tables with at most two others, which are no such variables, are summed out first: hidden variables of pairs.
//   - Weights of single variables and evidence are not part of the structure. Variables of a class with the same weights are a group;
//     groups are multiplied as polynomials in the counts, or their counts are kept apart.
//   - Variables that some evidence tells apart, and those asked about together, are classes of their own.
//
// Cost: the number of count vectors, C(n+d−1, d−1) for a class of n variables of d values, times that of all classes.
package exchangeable

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// WholeShare is the unit of Sum.From and Sum.To: the share with all count vectors is from 0 to WholeShare.
const WholeShare = int64(1) << 20

// Sum is B as a function of the counts of classes: the sum over a share of the count vectors. If the counts are summed in another way,
// value by value or class by class, the share that begins at 0 has the whole sum.
type Sum struct {
	Classes *Classes `msgpack:"-"`
	// From and To are a share of the count vectors, in units of 1/WholeShare: their number is known under evidence only.
	From int64 `msgpack:"from"`
	To   int64 `msgpack:"to"`
	// Ask is empty for a part that Z is the sum of. Otherwise it says which assignments are to be found, MPE or samples.
	Ask btn.Ask `msgpack:"ask,omitempty"`
}

// Classes is the structure of a network: which of its variables may be swapped. That its tables are the same is checked when they are
// summed.
type Classes struct {
	Count   int     `msgpack:"count"`
	ClassOf []int32 `msgpack:"of"` // the class of each variable; −1 for those that are summed out
	// RelabellingOf is the place in Relabellings of each variable's relabelling; nil: 0 for all. Relabellings[k][x] is the class's value of
	// a variable's value x.
	RelabellingOf []int32   `msgpack:"value,omitempty"`
	Relabellings  [][]uint8 `msgpack:"values,omitempty"` // the first one is nil: no relabelling
}

// Class implements btn.Part.
func (*Sum) Class() btn.Class { return btn.ClassExchangeable }

// About implements btn.Part: the part answers p.Ask, and the parts of one plan share their classes.
func (p *Sum) About() btn.About { return btn.About{Finds: p.Ask, KeepsRange: true, Shared: &p.Classes} }

// Fits implements btn.Part: it returns an error unless the part's share of the count vectors, From to To, is within 0 and WholeShare, each
// variable of the network has a class or none, the variables of a class have equal domains, and every relabelling is a permutation of the
// values.
func (p *Sum) Fits(n *btn.Network) error {
	c := p.Classes
	if c == nil {
		return btn.Misfit("it has no classes")
	}
	hasAllVariables := len(c.ClassOf) == len(n.Variables) && (c.RelabellingOf == nil || len(c.RelabellingOf) == len(c.ClassOf))
	isFirstIdentity := len(c.Relabellings) == 0 || len(c.Relabellings[0]) == 0 // the first relabelling changes nothing
	switch {
	case p.From < 0 || p.To < p.From || p.To > WholeShare:
		return btn.Misfit("count vectors from %d to %d of %d", p.From, p.To, WholeShare)
	case p.Ask != "" && p.Ask != btn.AskMPE && p.Ask != btn.AskSamples:
		return btn.Misfit("it asks for %.40q", p.Ask)
	case !hasAllVariables:
		return btn.Misfit("classes of %d variables and %d relabellings, the network has %d", len(c.ClassOf), len(c.RelabellingOf),
			len(n.Variables))
	case c.Count < 1 || c.Count > maxClasses || len(c.Relabellings) > len(c.ClassOf)+1 || !isFirstIdentity:
		return btn.Misfit("%d classes, %d relabellings", c.Count, len(c.Relabellings))
	}

	return c.fitVariables(n)
}

// fitVariables returns an error unless each variable of the network has a class or none, each class has variables, those of a class have
// equal domains, and every relabelling is a permutation of the values. Each variable has an entry in the lists of c.
func (c *Classes) fitVariables(n *btn.Network) error {
	domain := make([]int, c.Count) // by class; 0: no variable of it was seen
	for v, class := range c.ClassOf {
		if class < -1 || int(class) >= c.Count {
			return btn.Misfit("variable %d is of class %d of %d", v, class, c.Count)
		}
		if class < 0 { // a leaf
			continue
		}
		if d := n.Variables[v].Domain; domain[class] == 0 {
			domain[class] = d
		} else if domain[class] != d {
			return btn.Misfit("class %d has variables of %d and of %d values", class, domain[class], d)
		}
		if c.RelabellingOf == nil || c.RelabellingOf[v] == 0 { // no relabelling
			continue
		}
		k := int(c.RelabellingOf[v])
		if k < 0 || k >= len(c.Relabellings) || len(c.Relabellings[k]) != domain[class] || !isPermutation(c.Relabellings[k]) {
			return btn.Misfit("variable %d has relabelling %d of %d", v, k, len(c.Relabellings))
		}
	}
	if slices.Contains(domain, 0) {
		return btn.Misfit("class %d has no variable", slices.Index(domain, 0))
	}
	return nil
}

// isPermutation reports whether a list of n numbers has each number from 0 to n−1 once.
func isPermutation(list []uint8) bool {
	seen := make([]bool, len(list))
	for _, x := range list {
		if int(x) >= len(list) || seen[x] {
			return false
		}
		seen[x] = true
	}
	return true
}

// partition returns the classes as a partition of the variables. It returns nil if the variables without a class are not the leaves of f,
// the variables that are summed out.
func (c *Classes) partition(f *factors) *partition {
	p := &partition{count: c.Count, classOf: c.ClassOf, relabellingOf: c.RelabellingOf, relabellings: c.Relabellings}
	if p.relabellingOf == nil {
		p.relabellingOf = make([]int32, len(c.ClassOf))
	}
	if len(p.relabellings) == 0 || p.relabellings[0] != nil { // the first one, no relabelling, is missing, or an empty list
		p.relabellings = append([][]uint8{nil}, p.relabellings[min(1, len(p.relabellings)):]...)
	}
	for v, class := range c.ClassOf {
		if (class < 0) != (f.leafOf[v] != nil) {
			return nil
		}
	}
	return p
}
