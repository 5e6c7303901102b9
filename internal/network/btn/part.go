package btn

// Parts: what a component of an estimate offers to all who handle it. The types are in internal/methods.

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/basetensor/basetensor/pkg/query"
)

// ErrPart says that a part does not fit the network: its levels, shapes or numbers are wrong.
var ErrPart = errors.New("btn: the part does not fit the network")

// Part is one component Q = C ∘ R of an estimate: a unit of contraction, independent of all others. Parts do not change once
// they are made. Several parts of a plan may share the data behind a pointer.
type Part interface {
	// Class names the class that the part is of.
	Class() Class
	// Fits checks the part against a network, so that a contraction can index without further checks. The error wraps ErrPart.
	// Time linear in the part's size.
	Fits(*Network) error
}

// Described is a part of estimates that grow.
type Described interface {
	Part
	// Describe fills the answer's fields about an estimate made of such parts.
	Describe(*query.EstimateResult)
}

// Describe returns what a part says of an estimate that it is of.
func Describe(p Part) (r query.EstimateResult) {
	if d, ok := p.(Described); ok {
		d.Describe(&r)
	}
	return r
}

// Sharer is a part that points at something that other parts of its plan point at, too.
type Sharer interface {
	Part
	// Common returns a pointer to the part's field for it.
	Common() any
}

// Shared returns what a part points at, nil where it is nothing.
func Shared(p Sharer) any {
	if v := reflect.ValueOf(p.Common()).Elem(); !v.IsNil() {
		return v.Interface()
	}
	return nil
}

// Share makes a part point at something. It reports whether that is of the part's kind.
func Share(p Sharer, common any) bool {
	field, v := reflect.ValueOf(p.Common()).Elem(), reflect.ValueOf(common)
	if !v.IsValid() || !v.Type().AssignableTo(field.Type()) {
		return false
	}
	field.Set(v)
	return true
}

// Varied is a Sharer whose parts point at things of several types, each with a name in its field "kind".
type Varied interface {
	Sharer
	// OfKind returns an empty one of a kind, nil for a kind of another version.
	OfKind(name string) any
}

// Class names the parametric class of a component Q = C ∘ R.
type Class string

// The classes of this version. Package families says what they compute, and their costs.
const (
	ClassRankOne         Class = "rank-one"
	ClassCP              Class = "cp"
	ClassSymmetric       Class = "symmetric"
	ClassSymmetryRankOne Class = "symmetry-rank-one"
	ClassCounts          Class = "counts"
	ClassProduct         Class = "product"
	ClassElimination     Class = "elimination"
	ClassJunction        Class = "junction"
	ClassSlices          Class = "slices"
	ClassGroups          Class = "groups"
	ClassAdjoints        Class = "adjoints"
	ClassCases           Class = "cases"
	ClassDescent         Class = "descent"
	ClassCircuit         Class = "circuit"
	ClassWeightedCount   Class = "weighted-count"
	ClassTruncated       Class = "truncated"
	ClassRegions         Class = "regions"
	ClassSampled         Class = "sampled"
	ClassBound           Class = "bound"
	ClassStructured      Class = "structured"
	ClassExchangeable    Class = "exchangeable"
	ClassParity          Class = "parity"
	ClassSearch          Class = "search"
)

// kinds are the classes that this process knows: how their parts are made, empty, to be read from bytes.
var kinds = map[Class]func() Part{}

// Register makes a class known. It is called while packages are initialised.
func Register(c Class, newPart func() Part) { kinds[c] = newPart }

// NewPart returns an empty part of a class, false for a class that nobody has registered.
func NewPart(c Class) (Part, bool) {
	make, ok := kinds[c]
	if !ok {
		return nil, false
	}
	return make(), true
}

// Misfit is an error of Part.Fits.
func Misfit(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrPart, fmt.Errorf(format, args...))
}
