// Package region corrects belief propagation by regions: sets of legs that are contracted exactly
// while every leg outside is projected on its message (components Q = B ∘ R in the gauge of belief
// propagation).
//
//	ln Z ≈ ln Z_BP + Σ_r α_r ln (Z_r / Z_BP),   Z ≈ Z_BP (1 + Σ_r α_r (Z_r / Z_BP − 1))
//
// over a family of regions closed under intersection, with the counting numbers α_r = 1 − Σ_{s ⊋ r}
// α_s. Regions are cut to the connected parts of their 2-core, which at a fixed point loses nothing:
// a leg on a dangling tree has ratio 1. Regions are independent of each other, and both sums are
// taken in a fixed order: the work can be split anywhere.
//
// The weights are the Frobenius-optimal ones for plain leg sets in this gauge; see
// TestGramMatrixGivesMoebiusWeights.
// Sources: J. Yedidia, W. Freeman, Y. Weiss, Constructing free energy approximations and generalized
// belief propagation algorithms, IEEE Trans. Inf. Theory 51 (2005), for counting numbers; cluster
// expansions around belief propagation: Midha and Zhang, arXiv:2510.02290.
package region

import (
	"cmp"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Kinds of families.
const (
	Windows = "windows" // Size × Size windows of a lattice
	Balls   = "balls"   // all within Size steps of an index
)

// Options choose a family of regions. Sizes that cost more than the bounds are fault.OverBudget.
type Options struct {
	Kind string
	Size int // of the regions
	// log2 of the largest table of a region's contraction; larger balls shrink, else they go;
	// default 20
	MaxWidth   int
	MaxRegions int     // kept in a list (windows are not); default 200 000
	Flops      float64 // of all regions together; default 10^12
	// of planning: legs and sets of a list's closure looked at; default policy.RegionMoves
	Moves     int64
	Marginals bool // the marginals of all indices too: about three times the flops
}

// maxWidth bounds Options.MaxWidth: offsets are int32.
const maxWidth = 30

// regionWidth is log2 of the largest table of a region's contraction, regionCount the maximum
// number of regions of a list, regionFlops the bound of the work of all regions of one family.
// Measured: a quarter of the table makes 4 of 4 dense models worse, four times 1 of 2 better at
// 3.3 times the flops. A quarter and four times of regionCount change nothing on 15. regionFlops
// is a bound; no model takes a fiftieth of it. Decision 20.
const (
	regionWidth = 20
	regionCount = 200_000
	regionFlops = 1e12
)

// withDefaults fills in defaults and refuses invalid options.
func (o Options) withDefaults() (Options, error) {
	smallest, isKind := map[string]int{Windows: 2, Balls: 1}[o.Kind]
	o.MaxWidth = cmp.Or(o.MaxWidth, regionWidth)
	o.MaxRegions = cmp.Or(o.MaxRegions, regionCount)
	o.Moves = cmp.Or(o.Moves, policy.RegionMoves)
	o.Flops = cmp.Or(o.Flops, regionFlops)
	if !isKind {
		return o, fault.New(fault.BadInput, "region: kind %q is neither windows nor balls", o.Kind)
	}
	if o.Size < smallest {
		return o, fault.New(fault.BadInput, "region: %s of size %d, at least %d", o.Kind, o.Size, smallest)
	}
	if o.MaxWidth < 1 || o.MaxWidth > maxWidth {
		return o, fault.New(fault.BadInput, "region: width %d, 1 to %d are possible", o.MaxWidth, maxWidth)
	}
	return o, nil
}
