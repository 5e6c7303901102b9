package frobenius

// Kinds and numbers of components, and the effort of learning.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/query"
)

// Options extend a request's settings for users of the library. The zero value of every field is its
// default.
type Options struct {
	query.Settings
	// Classes are the classes of the dictionary: component i is of class Classes[i mod len].
	// Rank-one, symmetric and symmetry-rank-one can be learned. Default: symmetry-rank-one only.
	Classes []btn.Class
	// Levels of the symmetric parts. Default: the network's, NetworkLevels.
	Levels *countspace.Levels
	// Tolerance ends the sweeps when one of them improves the explained fraction by less than this
	// fraction of itself, and ρ by less than this fraction of ρ. Default 1e-5.
	Tolerance float64
	// Progress, if not nil, is called after every sweep, from the goroutine that learns.
	Progress func(Progress)
}

// Progress is the state after a sweep. Within one start LnExplained never falls.
type Progress struct {
	Start, Components, Sweep int
	Residual                 float64
	LnExplained              float64
}

const defaultTolerance = 1e-5

// Settings returns the settings that symmetry-cp is learned with, for every requested method:
// defaults in the place of zeros.
func Settings(s query.Settings) query.Settings {
	s.Method, s.Objective = query.MethodSymmetryCP, query.ObjectiveFrobenius
	return s.WithDefaults()
}

// withDefaults fills in defaults and refuses invalid options.
func (o Options) withDefaults() (Options, error) {
	o.Settings = Settings(o.Settings)
	if o.Components < 1 || o.Sweeps < 1 || o.Starts < 1 {
		return o, fmt.Errorf("frobenius: %d components, %d sweeps, %d starts: at least 1 each",
			o.Components, o.Sweeps, o.Starts)
	}
	if len(o.Classes) == 0 {
		o.Classes = []btn.Class{btn.ClassSymmetryRankOne}
	}
	for _, c := range o.Classes {
		switch c {
		case btn.ClassRankOne, btn.ClassSymmetric, btn.ClassSymmetryRankOne:
		default:
			return o, fmt.Errorf("frobenius: components of class %q cannot be learned", c)
		}
	}

	if o.Tolerance == 0 {
		o.Tolerance = defaultTolerance
	}
	if !(o.Tolerance > 0) {
		return o, fmt.Errorf("frobenius: tolerance %v, a positive number is needed", o.Tolerance)
	}
	return o, nil
}

const (
	// maxIdentityBox bounds the count space of the paper's levels, in coefficients.
	maxIdentityBox = 100_000
	// maxIdentityWork bounds legs × coefficients, the cost of one backward pass.
	maxIdentityWork = 1e7
)

// DefaultLevels returns the paper's levels (D = d, the identity) when all dimensions are equal, the
// count space has at most 10^5 coefficients and a backward pass over it costs at most 10^7
// multiply-adds; else two levels, {0, the rest}. For binary legs both are the same.
func DefaultLevels(dims []int) countspace.Levels {
	two := countspace.TwoLevels(dims)
	if len(dims) == 0 {
		return two
	}
	box := math.Pow(float64(len(dims)+1), float64(dims[0]-1))
	if box > maxIdentityBox || box*float64(len(dims)*dims[0]) > maxIdentityWork {
		return two
	}
	identity, err := countspace.Identity(dims)
	if err != nil {
		return two
	}
	return identity
}

// NetworkLevels returns the levels that a network's symmetric parts have by default: two, {0,
// excited}, where maps are the gauge of belief propagation, for value 0 is the message there and the
// other values of a leg are a basis without a meaning of their own; else DefaultLevels.
func NetworkLevels(net *btn.Network) countspace.Levels {
	for _, m := range net.Maps {
		if m.Kind == query.MapBP {
			return countspace.TwoLevels(net.Dims)
		}
	}
	return DefaultLevels(net.Dims)
}
