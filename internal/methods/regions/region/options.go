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
	Balls   = "balls"   // all indices within Size steps of an index
)

// Options choose a family of regions. If a family costs more than the bounds allow, Plan returns fault.OverBudget.
type Options struct {
	Kind string // Windows or Balls
	Size int    // points along a side of a window, or the radius of a ball in steps
	// MaxWidth bounds log2 of the entries of the largest table of a region's contraction. A wider ball gets a smaller radius, and is
	// dropped if it is too wide at radius 1. Default 20.
	MaxWidth   int
	MaxRegions int     // bounds the regions of balls, which are kept in a list; windows are not; default 200 000
	Flops      float64 // bounds the work of all regions together; default 10^12
	Moves      int64   // bounds the work of planning, in moves of some nanoseconds; default policy.RegionMoves
	Marginals  bool    // whether the marginals of all indices are computed, too, for about three times the flops
}

// largestMaxWidth bounds Options.MaxWidth, since offsets into tables are int32.
const largestMaxWidth = 30

// Defaults of Options: defaultWidth of MaxWidth, defaultRegions of MaxRegions, defaultFlops of Flops.
// Measured: a quarter of the table makes 4 of 4 dense models worse, four times 1 of 2 better at
// 3.3 times the flops. A quarter and four times of defaultRegions change nothing on 15. defaultFlops
// is a bound; no model takes a fiftieth of it. Decision 20.
const (
	defaultWidth   = 20
	defaultRegions = 200_000
	defaultFlops   = 1e12
)

// withDefaults returns o with defaults for fields that are 0, and checks it. Errors: fault.BadInput for invalid options.
func (o Options) withDefaults() (Options, error) {
	minSize, isKind := map[string]int{Windows: 2, Balls: 1}[o.Kind]
	o.MaxWidth = cmp.Or(o.MaxWidth, defaultWidth)
	o.MaxRegions = cmp.Or(o.MaxRegions, defaultRegions)
	o.Moves = cmp.Or(o.Moves, policy.RegionMoves)
	o.Flops = cmp.Or(o.Flops, defaultFlops)
	if !isKind {
		return o, fault.New(fault.BadInput, "region: kind %q is neither windows nor balls", o.Kind)
	}
	if o.Size < minSize {
		return o, fault.New(fault.BadInput, "region: %s of size %d, at least %d", o.Kind, o.Size, minSize)
	}
	if o.MaxWidth < 1 || o.MaxWidth > largestMaxWidth {
		return o, fault.New(fault.BadInput, "region: width %d, 1 to %d are possible", o.MaxWidth, largestMaxWidth)
	}
	return o, nil
}
