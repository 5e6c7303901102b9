package btn

// Parts: one type per class of component. A new class is a type here and a line of classes.

import (
	"errors"
	"fmt"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// ErrPart says that a part does not fit the network: its levels, shapes or numbers are wrong.
var ErrPart = errors.New("btn: the part does not fit the network")

// Part is one component Q = C ∘ R of an estimate: what an engine contracts, independently of all
// others. Parts do not change once they are made, and may share what their pointers point at with
// others of their plan.
type Part interface {
	// Class names the class that the part is of.
	Class() Class
	// Fits says what of the part does not fit a network, so that what is contracted can
	// be indexed without fear. The error wraps ErrPart. Time linear in the part's size.
	Fits(*Network) error
	// Describe fills what an answer says of an estimate that is made of such parts.
	Describe(*EstimateResult)

	part()
}

// Sharer is a part that points at something that other parts of its plan point at, too.
type Sharer interface {
	Part
	// Common returns that pointer.
	Common() any
	// Share sets it. It reports whether it is of the part's kind.
	Share(common any) bool
}

// Class names the parametric class of a component Q = C ∘ R.
type Class string

// The classes of this version.
const (
	ClassRankOne Class = "rank-one" // C = 1 (Lemma 2)
	// A sum of rank-one terms contracted together (Lemma 2).
	ClassCP              Class = "cp"
	ClassSymmetric       Class = "symmetric"         // C = S, R = 1 (Lemma 3)
	ClassSymmetryRankOne Class = "symmetry-rank-one" // C = S (Lemma 4)
	// C = B in count space: symmetric cores by their counts, all else as polynomials in these.
	ClassCounts Class = "counts"
	// C = B, a product over the connected parts of the network.
	ClassProduct Class = "product"
	// C = B, contracted exactly along an elimination order.
	ClassElimination Class = "elimination"
	// C = B, R the indicator of some slices of a contraction tree.
	ClassSlices Class = "slices"
	ClassGroups Class = "groups" // C = B, marginals group by group
	// C = B, derivatives by the entries of its cores.
	ClassAdjoints Class = "adjoints"
	// C = B, no share of Z: assignments that are found or drawn on the way back through its tables.
	ClassDescent Class = "descent"
	// C = B as an arithmetic circuit over the values of variables, R their weights.
	ClassCircuit Class = "circuit"
	// C = B under a partial assignment, one of those that a search is split into.
	ClassCube Class = "cube"
	// C = B, R a mask on learned maps: one slice with truncated legs.
	ClassTruncated Class = "truncated"
	// C = B, R a mask in the BP gauge: some regions of a slice.
	ClassRegions Class = "regions"
	// C = B, R the indicators of states that were drawn, one a component.
	ClassSampled Class = "sampled"
	// C = B, no share of Z: what bounds it.
	ClassBound Class = "bound"
)

// classes are how parts of a class are made, empty, to be read from bytes.
var classes = map[Class]func() Part{
	ClassRankOne:         func() Part { return new(RankOne) },
	ClassCP:              func() Part { return new(CP) },
	ClassSymmetric:       func() Part { return new(SymmetryRankOne) },
	ClassSymmetryRankOne: func() Part { return new(SymmetryRankOne) },
	ClassCounts:          func() Part { return new(Counts) },
	ClassDescent:         func() Part { return new(Descent) },
	ClassCircuit:         func() Part { return new(Circuit) },
	ClassCube:            func() Part { return new(Cube) },
	ClassProduct:         func() Part { return new(Product) },
	ClassElimination:     func() Part { return new(Elimination) },
	ClassSlices:          func() Part { return new(Slices) },
	ClassGroups:          func() Part { return new(Groups) },
	ClassAdjoints:        func() Part { return new(Adjoints) },
	ClassTruncated:       func() Part { return new(Truncated) },
	ClassRegions:         func() Part { return new(Regions) },
	ClassSampled:         func() Part { return new(Sampled) },
	ClassBound:           func() Part { return new(Bound) },
}

// NewPart returns an empty part of a class, false for a class that this version does not know.
func NewPart(c Class) (Part, bool) {
	make, ok := classes[c]
	if !ok {
		return nil, false
	}
	return make(), true
}

// misfit is an error of Fits.
func misfit(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrPart, fmt.Errorf(format, args...))
}

// Frame is what the components of one closed form or learned decomposition have in common.
type Frame struct {
	// Closed says that they are B itself, in closed form:
	// what cancels among terms of both signs is counted then.
	Closed bool
	// Levels are those of all symmetric parts; the zero value if there are none.
	Levels countspace.Levels
	// Rotations are learned orthogonal maps O_ℓ relative to the network's, Dims[ℓ]² row-major;
	// a nil entry is the identity.
	Rotations [][]float64
}

// fits checks the learned maps.
func (f *Frame) fits(n *Network) error {
	if f == nil {
		return misfit("it has no frame")
	}
	if len(f.Rotations) != 0 && len(f.Rotations) != len(n.Dims) {
		return misfit("%d learned maps for %d legs", len(f.Rotations), len(n.Dims))
	}
	for l, o := range f.Rotations {
		if d := n.Dims[l]; o != nil && len(o) != d*d {
			return misfit("learned map of leg %d has %d entries, dimension %d needs its square",
				l, len(o), d)
		}
	}
	return nil
}

// RankOne is Q = ⊗_ℓ v_ℓ (Lemma 2).
type RankOne struct {
	Frame *Frame
	R     [][]float64 // R[ℓ] has Dims[ℓ] entries; nil means all ones
}

// Class implements Part.
func (*RankOne) Class() Class { return ClassRankOne }

// Fits implements Part.
func (p *RankOne) Fits(n *Network) error {
	if err := p.Frame.fits(n); err != nil {
		return err
	}
	return vectorsFit(p.R, n)
}

// vectorsFit checks a vector per leg, nil for all ones.
func vectorsFit(r [][]float64, n *Network) error {
	if len(r) != 0 && len(r) != len(n.Dims) {
		return misfit("vectors for %d legs, the network has %d", len(r), len(n.Dims))
	}
	for l, v := range r {
		if v != nil && len(v) != n.Dims[l] {
			return misfit("vector of leg %d has %d entries, the leg has dimension %d",
				l, len(v), n.Dims[l])
		}
	}
	return nil
}

// Common implements Sharer.
func (p *RankOne) Common() any { return p.Frame }

// Share implements Sharer.
func (p *RankOne) Share(common any) (ok bool) {
	p.Frame, ok = common.(*Frame)
	return ok
}

// CP is a sum of rank-one terms, contracted together (Lemma 2).
type CP struct {
	Frame  *Frame
	Tensor *tensor.CP // over all legs, in leg order
}

// Class implements Part.
func (*CP) Class() Class { return ClassCP }

// Fits implements Part.
func (p *CP) Fits(n *Network) error {
	if err := p.Frame.fits(n); err != nil {
		return err
	}
	if p.Tensor == nil || len(p.Tensor.Shape) != len(n.Dims) ||
		len(p.Tensor.Vectors) != len(n.Dims) {
		return misfit("a CP tensor over all %d legs is needed", len(n.Dims))
	}

	rank := len(p.Tensor.Weights)
	for l, d := range n.Dims {
		switch v := p.Tensor.Vectors[l]; {
		case p.Tensor.Shape[l] != d:
			return misfit("the CP tensor has dimension %d on leg %d, the leg has %d",
				p.Tensor.Shape[l], l, d)
		case v == nil && rank != d:
			return misfit("identity vectors on leg %d need rank %d, the rank is %d", l, d, rank)
		case v != nil && len(v) != d*rank:
			return misfit("vectors of leg %d have %d entries, %d terms of dimension %d are needed",
				l, len(v), rank, d)
		}
	}
	return nil
}

// Common implements Sharer.
func (p *CP) Common() any { return p.Frame }

// Share implements Sharer.
func (p *CP) Share(common any) (ok bool) {
	p.Frame, ok = common.(*Frame)
	return ok
}

// SymmetryRankOne is Q = S ∘ R (Lemma 4), or Q = S without R (Lemma 3).
type SymmetryRankOne struct {
	Frame *Frame
	S     countspace.Poly // over the frame's levels
	R     [][]float64     // as of RankOne; nil: class symmetric, R = 1
}

// Class implements Part.
func (p *SymmetryRankOne) Class() Class {
	if p.R == nil {
		return ClassSymmetric
	}
	return ClassSymmetryRankOne
}

// Fits implements Part.
func (p *SymmetryRankOne) Fits(n *Network) error {
	if err := p.Frame.fits(n); err != nil {
		return err
	}
	if err := vectorsFit(p.R, n); err != nil {
		return err
	}

	levels := p.Frame.Levels
	if err := levels.Validate(n.Dims); err != nil {
		return misfit("%w", err)
	}

	shape := levels.Shape()
	if len(p.S.Shape) != len(shape) {
		return misfit("S has %d count variables, the levels have %d", len(p.S.Shape), len(shape))
	}

	entries, err := levels.Size()
	if err != nil {
		return misfit("%w", err)
	}

	for a, side := range shape {
		if p.S.Shape[a] != side {
			return misfit("S has %d counts at level %d, the levels have %d",
				p.S.Shape[a], a+1, side)
		}
	}
	if p.S.Coef.Len() != entries || (p.S.Coef.Exp != nil && len(p.S.Coef.Exp) != entries) {
		return misfit("S has %d coefficients, its shape %v needs %d",
			p.S.Coef.Len(), shape, entries)
	}
	if !p.S.Coef.IsFinite() {
		return misfit("S has an entry that is not finite")
	}
	return nil
}

// Common implements Sharer.
func (p *SymmetryRankOne) Common() any { return p.Frame }

// Share implements Sharer.
func (p *SymmetryRankOne) Share(common any) (ok bool) {
	p.Frame, ok = common.(*Frame)
	return ok
}

// Elimination is B itself, contracted along an elimination order.
type Elimination struct {
	// indices of the einsum form of the network, in the order in which they are summed
	Order []int   `msgpack:"order"`
	Flops float64 `msgpack:"flops"` // predicted, without evidence: small networks are compiled
}

// Class implements Part.
func (*Elimination) Class() Class { return ClassElimination }

// Fits implements Part. Whether the order is one of the
// network's expression is for the contraction to say.
func (p *Elimination) Fits(*Network) error {
	if !(p.Flops >= 0) {
		return misfit("%v flops", p.Flops)
	}
	return nil
}

// Slices are some slices of B, contracted along a tree: the network, conditioned on the query's
// evidence, is simplified (package preprocess) unless Tree.Whole, and what is left is contracted slice by slice. A
// slice fixes some indices to one value each: R is the indicator of those values, α = 1 (Lemma 5).
type Slices struct {
	Tree *Tree `msgpack:"-"`
	From int64 `msgpack:"from,omitempty"` // From ≤ slice < To
	To   int64 `msgpack:"to"`
}

// Tree is how slices are contracted: a contraction tree over a simplified network, or, where that
// costs more than it saves, over the network as it is.
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
	// over the network as it is, not simplified
	Whole bool `msgpack:"whole,omitempty"`
}

// Class implements Part.
func (*Slices) Class() Class { return ClassSlices }

// Whole reports whether the part is all slices of its tree.
func (p *Slices) Whole() bool { return p.From == 0 && p.To == p.Tree.Count }

// Common implements Sharer.
func (p *Slices) Common() any { return p.Tree }

// Share implements Sharer.
func (p *Slices) Share(common any) (ok bool) {
	p.Tree, ok = common.(*Tree)
	return ok
}

// Fits implements Part. Whether the tree is one over
// the simplified network is for the contraction to say.
func (p *Slices) Fits(*Network) error {
	switch t := p.Tree; {
	case t == nil:
		return misfit("it has no tree")
	case t.Count < 1:
		return misfit("%d slices", t.Count)
	case p.From < 0 || p.To < p.From || p.To > t.Count:
		return misfit("slices %d to %d of %d", p.From, p.To, t.Count)
	}
	return nil
}

// Groups are marginals group by group, where that costs less than all of them in one pass:
// each group is a contraction of the simplified network that has been simplified once more.
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

// MarginalGroup is one of them.
type MarginalGroup struct {
	Keep    []int `msgpack:"keep"`    // indices that the second simplification keeps
	Indices []int `msgpack:"indices"` // those whose marginals are taken from it
	Tree    Tree  `msgpack:"tree"`    // over what is left
}

// Class implements Part.
func (*Groups) Class() Class { return ClassGroups }

// Whole reports whether the part is all groups.
func (p *Groups) Whole() bool { return p.From == 0 && p.To == int64(len(p.Of.Groups)) }

// Common implements Sharer.
func (p *Groups) Common() any { return p.Of }

// Share implements Sharer.
func (p *Groups) Share(common any) (ok bool) {
	p.Of, ok = common.(*MarginalGroups)
	return ok
}

// Fits implements Part.
func (p *Groups) Fits(*Network) error {
	if p.Of == nil {
		return misfit("it has no groups")
	}
	if n := int64(len(p.Of.Groups)); p.From < 0 || p.To < p.From || p.To > n {
		return misfit("groups %d to %d of %d", p.From, p.To, n)
	}
	return nil
}

// Product is B as the product of connected parts of the network,
// each by an exact estimate of its own.
type Product struct {
	Factors []ProductFactor
}

// ProductFactor is the exact estimate of one or more connected parts, in the numbering of
// Network.Sub(Links). None of its own parts is a product, has truncated legs or is of regions.
type ProductFactor struct {
	Links    []int
	Estimate *Estimate
}

// Class implements Part.
func (*Product) Class() Class { return ClassProduct }

// Fits implements Part: every link is in one of the factors,
// no core between two, and each factor's parts fit what is its own.
// Cost O(legs + links) a factor.
func (p *Product) Fits(n *Network) error {
	owner := make([]int, len(n.Links)) // 1 + the factor
	total := 0
	for f, factor := range p.Factors {
		for _, k := range factor.Links {
			if k < 0 || k >= len(owner) || owner[k] > 0 {
				return misfit("factor %d has link %d, which does not exist or is in a factor "+
					"already", f, k)
			}
			owner[k] = f + 1
			total++
		}
	}
	if total != len(owner) {
		return misfit("the factors have %d of %d links", total, len(owner))
	}

	of := n.LegLink()
	for c, core := range n.Cores {
		for _, leg := range core.Legs {
			if owner[of[leg]] != owner[of[core.Legs[0]]] {
				return misfit("core %d is in two factors", c)
			}
		}
	}

	for f, factor := range p.Factors {
		e := factor.Estimate
		if e == nil || len(e.Parts) == 0 || e.Alpha != nil && len(e.Alpha) != len(e.Parts) {
			return misfit("factor %d has no estimate of its own", f)
		}

		sub, _ := n.Sub(factor.Links)
		for i, part := range e.Parts {
			switch part.(type) {
			case nil, *Product, *Truncated, *Regions:
				return misfit("factor %d, part %d: it is of no class that an exact estimate has",
					f, i)
			}
			if err := part.Fits(sub); err != nil {
				return fmt.Errorf("factor %d, part %d: %w", f, i, err)
			}
		}
	}
	return nil
}

// Describe implements Part:
// closed forms and exact contractions say nothing that a sequence of estimates needs.
func (*RankOne) Describe(*EstimateResult)         {}
func (*CP) Describe(*EstimateResult)              {}
func (*SymmetryRankOne) Describe(*EstimateResult) {}
func (*Counts) Describe(*EstimateResult)          {}
func (*Elimination) Describe(*EstimateResult)     {}
func (*Slices) Describe(*EstimateResult)          {}
func (*Groups) Describe(*EstimateResult)          {}
func (*Adjoints) Describe(*EstimateResult)        {}
func (*Descent) Describe(*EstimateResult)         {}
func (*Product) Describe(*EstimateResult)         {}

func (*RankOne) part()         {}
func (*CP) part()              {}
func (*SymmetryRankOne) part() {}
func (*Counts) part()          {}
func (*Elimination) part()     {}
func (*Slices) part()          {}
func (*Groups) part()          {}
func (*Adjoints) part()        {}
func (*Descent) part()         {}
func (*Product) part()         {}
