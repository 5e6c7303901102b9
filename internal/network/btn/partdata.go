package btn

// Data of parts: what several have in common, what they are made of, and how their values become an estimate.

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Frame is the data shared by the components of one closed form or learned decomposition.
type Frame struct {
	// Closed reports whether the components are B itself, in closed form. Then cancellation among terms of both signs is counted.
	Closed bool
	// Levels are the levels of all symmetric parts; the zero value if there are none.
	Levels countspace.Levels
	// Rotations are learned orthogonal maps O_ℓ relative to the network's, Dims[ℓ]² row-major;
	// a nil entry is the identity.
	Rotations [][]float64
}

// Fits checks that the learned maps are square matrices of the legs' dimensions. The error wraps ErrPart.
func (f *Frame) Fits(n *Network) error {
	if f == nil {
		return Misfit("it has no frame")
	}
	if len(f.Rotations) != 0 && len(f.Rotations) != len(n.Dims) {
		return Misfit("%d learned maps for %d legs", len(f.Rotations), len(n.Dims))
	}
	for l, o := range f.Rotations {
		if d := n.Dims[l]; o != nil && len(o) != d*d {
			return Misfit("learned map of leg %d has %d entries, dimension %d needs its square",
				l, len(o), d)
		}
	}
	return nil
}

// Tensorial is a part that is made of tensors, which messages and caches write as bytes in a form of their own.
type Tensorial interface {
	Part
	Tensors() Tensors
	SetTensors(Tensors)
}

// Tensors are the tensors of a Tensorial part. A tensor that the part does not have is nil.
type Tensors struct {
	CP *tensor.CP
	S  *countspace.Poly
	R  [][]float64 // vectors by leg; nil: all ones
}

// Compound is a part that is made of estimates of other parts.
type Compound interface {
	Part
	Pieces() []ProductFactor
	SetPieces([]ProductFactor)
}

// ProductFactor is the exact estimate of one or more connected parts of the network, in the numbering of Network.Sub(Links). The parts
// (components) of that estimate are no products, have no truncated legs and are not of regions.
type ProductFactor struct {
	Links    []int
	Estimate *Estimate
}

// KindBethe is the kind of an estimate by regions without regions:
// the value and the beliefs of belief propagation.
const KindBethe = "bethe"
