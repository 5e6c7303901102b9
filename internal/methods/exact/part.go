package exact

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// Parts that are B itself, contracted exactly.

// Elimination is B itself, contracted along an elimination order.
type Elimination struct {
	// indices of the einsum form of the network, in the order in which they are summed
	Order []int   `msgpack:"order"`
	Flops float64 `msgpack:"flops"` // predicted, without evidence
}

// Class implements Part.
func (*Elimination) Class() btn.Class { return btn.ClassElimination }

// About implements btn.Part.
func (*Elimination) About() btn.About { return btn.About{KeepsRange: true} }

// Fits implements Part: it returns an error if the flops are no number of operations. The order is checked by the contraction.
func (p *Elimination) Fits(*btn.Network) error {
	if !(p.Flops >= 0) {
		return btn.Misfit("%v flops", p.Flops)
	}
	return nil
}

// Slices are some slices of B, contracted along a tree: the network, conditioned on the query's
// evidence, is simplified (package preprocess), and the result is contracted slice by slice. A
// slice fixes some indices to one value each: R is the indicator of those values, α = 1 (Lemma 5).
type Slices struct {
	Tree *Tree `msgpack:"-"`
	From int64 `msgpack:"from,omitempty"` // From ≤ slice < To
	To   int64 `msgpack:"to"`
}

// Tree is how slices are contracted: a contraction tree over a simplified network.
type Tree struct {
	// digest of the simplified network's hypergraph: the tree fits no other
	Shape  string `msgpack:"shape"`
	Tables int    `msgpack:"tables"` // leaves of the tree
	// two tables per merge; merge k makes table Tables+k
	Merges []int `msgpack:"merges"`
	Slices []int `msgpack:"slices,omitempty"` // indices fixed per slice
	Count  int64 `msgpack:"count"`            // number of slices, 1 without
	// with one more index over the cells of a joint marginal
	Joint bool `msgpack:"joint,omitempty"`
	// simplified so that every variable's marginal can be recovered
	Marginals bool `msgpack:"marginals,omitempty"`
}

// Class implements Part.
func (*Slices) Class() btn.Class { return btn.ClassSlices }

// About implements btn.Part.
func (p *Slices) About() btn.About {
	return btn.About{Slices: max(0, p.To-p.From), KeepsRange: true, Shared: &p.Tree}
}

// HasAllSlices reports whether the part is all slices of its tree.
func (p *Slices) HasAllSlices() bool { return p.From == 0 && p.To == p.Tree.Count }

// Fits implements Part: it returns an error if there is no tree, or if the slices From ≤ s < To are not among those of the tree. Whether
// the tree is over the simplified network is checked by the contraction.
func (p *Slices) Fits(*btn.Network) error {
	switch t := p.Tree; {
	case t == nil:
		return btn.Misfit("it has no tree")
	case t.Count < 1:
		return btn.Misfit("%d slices", t.Count)
	case p.From < 0 || p.To < p.From || p.To > t.Count:
		return btn.Misfit("slices %d to %d of %d", p.From, p.To, t.Count)
	}
	return nil
}

// Groups are marginals group by group, which may cost less than all of them in one pass. Each group is a contraction of the simplified
// network after a second simplification for the marginals of this group.
type Groups struct {
	Of   *MarginalGroups `msgpack:"-"`
	From int64           `msgpack:"from,omitempty"` // From ≤ group < To; the first group has Z
	To   int64           `msgpack:"to"`
}

// MarginalGroups are all groups of a simplified network.
type MarginalGroups struct {
	Shape  string          `msgpack:"shape"` // of the simplified network, as of Tree
	Groups []MarginalGroup `msgpack:"groups"`
}

// MarginalGroup is one contraction of a network that is simplified once more, with the indices whose marginals it gives.
type MarginalGroup struct {
	Keep    []int `msgpack:"keep"`    // indices that the second simplification keeps
	Indices []int `msgpack:"indices"` // those whose marginals are taken from it
	Tree    Tree  `msgpack:"tree"`    // over the simplified network
}

// Class implements Part.
func (*Groups) Class() btn.Class { return btn.ClassGroups }

// About implements btn.Part.
func (p *Groups) About() btn.About { return btn.About{KeepsRange: true, Shared: &p.Of} }

// HasAllGroups reports whether the part is all groups.
func (p *Groups) HasAllGroups() bool { return p.From == 0 && p.To == int64(len(p.Of.Groups)) }

// Fits implements btn.Part: it returns an error if p.Of, the plan of the groups, is missing, or if it lacks groups From ≤ g < To.
func (p *Groups) Fits(*btn.Network) error {
	if p.Of == nil {
		return btn.Misfit("it has no groups")
	}
	if n := int64(len(p.Of.Groups)); p.From < 0 || p.To < p.From || p.To > n {
		return btn.Misfit("groups %d to %d of %d", p.From, p.To, n)
	}
	return nil
}

// Product is B as the product of the connected parts of the network. Each factor has an exact estimate.
type Product struct {
	Factors []btn.ProductFactor
}

// Class implements Part.
func (*Product) Class() btn.Class { return btn.ClassProduct }

// About implements btn.Part. A product keeps its range if all of its factors do.
func (p *Product) About() btn.About {
	for _, factor := range p.Factors {
		if factor.Estimate == nil || !factor.Estimate.KeepsRange() {
			return btn.About{}
		}
	}
	return btn.About{KeepsRange: true}
}

// Fits implements Part. It returns an error unless every link is in exactly one factor, the legs of each core lead to links of one factor,
// and the parts of each factor fit its subnetwork. Cost O(legs + links) a factor.
func (p *Product) Fits(n *btn.Network) error {
	factorOfLink, err := p.factorOfLink(n)
	if err != nil {
		return err
	}
	linkOfLeg := n.LinkOfLeg()
	for c, core := range n.Cores {
		for _, leg := range core.Legs {
			if factorOfLink[linkOfLeg[leg]] != factorOfLink[linkOfLeg[core.Legs[0]]] {
				return btn.Misfit("core %d is in two factors", c)
			}
		}
	}
	for f := range p.Factors {
		if err := p.fitsFactor(n, f); err != nil {
			return err
		}
	}
	return nil
}

// factorOfLink returns, by link, 1 + the factor that has it. It returns an error unless every link is in exactly one factor.
func (p *Product) factorOfLink(n *btn.Network) ([]int, error) {
	factorOfLink := make([]int, len(n.Links)) // 0: none yet
	total := 0
	for f, factor := range p.Factors {
		for _, k := range factor.Links {
			if k < 0 || k >= len(factorOfLink) || factorOfLink[k] > 0 {
				return nil, btn.Misfit("factor %d has link %d, which does not exist or is in a factor "+
					"already", f, k)
			}
			factorOfLink[k] = f + 1
			total++
		}
	}
	if total != len(factorOfLink) {
		return nil, btn.Misfit("the factors have %d of %d links", total, len(factorOfLink))
	}
	return factorOfLink, nil
}

// fitsFactor returns an error unless factor f has an estimate whose parts fit the subnetwork of its links.
func (p *Product) fitsFactor(n *btn.Network, f int) error {
	factor := &p.Factors[f]
	e := factor.Estimate
	if e == nil || len(e.Parts) == 0 || e.Alpha != nil && len(e.Alpha) != len(e.Parts) { // Alpha: by part, its coefficient in the sum
		return btn.Misfit("factor %d has no estimate of its own", f)
	}

	sub, _ := n.Subnetwork(factor.Links) // the numbers of its variables in n are not needed
	for i, part := range e.Parts {
		if !mayBeInFactor(part) {
			return btn.Misfit("factor %d, part %d: it is of no class that an exact estimate has",
				f, i)
		}
		if err := part.Fits(sub); err != nil {
			return fmt.Errorf("factor %d, part %d: %w", f, i, err)
		}
	}
	return nil
}

// mayBeInFactor reports whether the estimate of a factor may have the part: it has to be exact and no product. Parts of the classes
// Truncated and Regions are not exact.
func mayBeInFactor(part btn.Part) bool {
	if part == nil {
		return false
	}
	switch part.Class() {
	case btn.ClassProduct, btn.ClassTruncated, btn.ClassRegions:
		return false
	}
	return true
}

// Pieces implements btn.Compound.
func (p *Product) Pieces() []btn.ProductFactor { return p.Factors }

// SetPieces implements btn.Compound.
func (p *Product) SetPieces(f []btn.ProductFactor) { p.Factors = f }
