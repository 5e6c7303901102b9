package btn

// Parts: what a component of an estimate offers to all who handle it. The types are in internal/methods.

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/basetensor/basetensor/pkg/query"
)

// ErrPart states that a part does not fit the network: its levels, shapes or numbers are wrong.
var ErrPart = errors.New("btn: the part does not fit the network")

// Part is one component Q = C ∘ R of an estimate: a unit of contraction, independent of all others. Parts do not change once
// they are made. Several parts of a plan may share the data behind a pointer. contraction.Contractor is a part that contracts itself.
type Part interface {
	// Class names the class that the part is of.
	Class() Class
	// Fits checks the part against a network, so that a contraction can index without further checks. The error wraps ErrPart.
	// Time linear in the part's size.
	Fits(*Network) error
	// About describes the part to all who handle it. A part that nobody has checked may be asked. Constant time.
	About() About
}

// About describes a part to those who plan, write, cut and add up. The zero value is that of a part with a share of Z, which is added to
// those of the other parts, and shares no data with them.
type About struct {
	// Rule is the rule by which the values of such parts become an estimate; "" is Linear.
	Rule Rule
	// Result has the fields of the answer about an estimate that is made of such parts.
	Result query.EstimateResult
	// Finds names the kind of assignments that the part finds in place of a share of Z; "" if it has a share of Z.
	Finds Ask
	// IsInterim reports whether the part's value is an answer of its own if the deadline comes before the other parts.
	IsInterim bool
	// Sample describes components that are drawn at random. It is zero if none are.
	Sample Sample
	// Slices is the number of slices of a contraction tree that the part consists of; 0 if it is not made of slices.
	Slices int64
	// KeepsRange reports whether the contraction keeps every term in the range of numbers by exponents, or detects the terms that it lost.
	KeepsRange bool
	// Differentiates reports whether the part has derivatives by the parameters of the network.
	Differentiates bool
	// Shared points to the part's field for data that other parts of its plan point at, too; nil if it has no such field.
	Shared any
	// SharedKind returns empty data of a kind, if parts of this class share data of several types, each with a name in its field "kind".
	// It returns nil for a kind that this version does not know.
	SharedKind func(kind string) any
}

// SharedData returns the data that a part shares with other parts of its plan, which its field About().Shared points at. It returns
// nil if the part has no such field, or if the field is nil.
func SharedData(p Part) any {
	field := p.About().Shared
	if field == nil {
		return nil
	}
	value := reflect.ValueOf(field).Elem() // field is a pointer to the part's field
	if value.IsNil() {
		return nil
	}
	return value.Interface()
}

// SetSharedData sets the part's field for shared data, which About().Shared points at, to data of other parts. It returns false, and
// changes nothing, if the part has no such field or the field is of another type.
func SetSharedData(p Part, data any) (isSet bool) {
	pointer := p.About().Shared
	if pointer == nil {
		return false
	}
	field, value := reflect.ValueOf(pointer).Elem(), reflect.ValueOf(data)
	if !value.IsValid() || !value.Type().AssignableTo(field.Type()) {
		return false
	}
	field.Set(value)
	return true
}

// Class names the parametric class of a component Q = C ∘ R.
type Class string

// The classes of this version. Package methods explains what they compute, and at what cost.
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

// newPartOf has, for every class that this process knows, a function that returns an empty part of it, to be read from bytes.
var newPartOf = map[Class]func() Part{}

// Register makes a class known: newPart returns an empty part of it. It is called while packages are initialised.
func Register(c Class, newPart func() Part) { newPartOf[c] = newPart }

// NewPart returns an empty part of a class. ok is false if nobody has registered the class.
func NewPart(c Class) (part Part, ok bool) {
	newPart, ok := newPartOf[c]
	if !ok {
		return nil, false
	}
	return newPart(), true
}

// Misfit returns an error that says why a part does not fit a network. Its text is made as by fmt.Errorf, and it wraps ErrPart.
func Misfit(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrPart, fmt.Errorf(format, args...))
}
