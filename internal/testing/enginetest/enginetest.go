// Package enginetest holds the duties of every engine: one suite, run by the tests of each.
package enginetest

import (
	"context"
	"errors"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"

	"math/rand/v2"
)

// Engine is an engine as the suite sees it: functions that answer a Problem.
type Engine struct {
	// Contract returns Z and what else is wanted, by any plan that it makes from Problem.Seed.
	Contract func(ctx context.Context, p *Problem, w Want) (Value, error)
	// Assign finds the most probable assignment of a problem's variables and ln of its weight, and draws some; nil: it finds none.
	Assign func(ctx context.Context, p *Problem, samples int, w Want) (Assigned, error)
	// Differentiate returns the derivatives of Z by all numbers of all factors, in the sequence of
	// each factor's numbers; nil: it has none.
	Differentiate func(ctx context.Context, p *Problem, w Want) ([]scaled.Number, error)
	// Draw returns a random model that the engine is for; nil: any.
	Draw func(rng *rand.Rand, signs, zeros bool) *factorgraph.Model
	// Tolerance is the largest error of Z relative to the sum of the absolute values of its terms; 0: 1e-12. Probabilities may have ten
	// times that.
	Tolerance float64
	// Lacks has the properties that the engine lacks, or cannot be tested for, with the reason.
	Lacks map[Property]string
}

// Property is something that engines do.
type Property string

// The properties, in the sequence in which Exercise looks at them.
const (
	Enumeration Property = "enumeration" // Z equals enumeration
	Marginals   Property = "marginals"   // so are the probabilities of the values of all variables
	Joint       Property = "joint"       // and of the values of several variables together
	Signs       Property = "signs"       // entries below 0, too
	Zeros       Property = "zeros"       // entries that are 0, too
	Expressions Property = "expressions" // tables of any scope: none, of indices of dimension 1, the same twice; indices in no table
	Maps        Property = "maps"        // invertible maps between tensors leave Z alone
	Relabelling Property = "relabelling" // so do other numbers of variables, of their values and of factors
	Slices      Property = "slices"      // slices add up, wherever they are cut
	Threads     Property = "threads"     // any number of threads gives the same bits
	OverBudget  Property = "over budget" // more memory than allowed is refused before it is allocated
	ZeroZ       Property = "zero"        // Z = 0 is an answer, and has no probabilities
	Range       Property = "range"       // entries and totals beyond float64
	Assignments Property = "assignments" // the most probable assignment equals enumeration, and draws are of the model
	Derivatives Property = "derivatives" // by numbers of tables, zeros too, they are the differences of enumerations
	Cancelled   Property = "cancelled"   // a context that ends is an error, and no wrong answer
)

// Want is a request to an engine.
type Want struct {
	Marginals bool
	Joint     []int // variables; nil: none
	Threads   int   // 0: any number
	Memory    int64 // bytes; 0: the engine's default
	Sliced    bool  // with slices, where there can be some
	From, To  int64 // slices From ≤ s < To; To = 0: all
}

// Value is an engine's answer.
type Value struct {
	Z         scaled.Number
	Marginals [][]float64 // by variable: the probabilities of its values; nil where Z is 0
	Joint     []float64   // of the values of Want.Joint, the last variable fastest; nil where Z is 0
	Slices    int64       // their number
}

// Assigned is what an engine's Assign returns.
type Assigned struct {
	Best  []int   // the most probable assignment, a value for each variable; nil if Z is 0
	Ln    float64 // ln of the weight of Best
	Drawn [][]int // assignments drawn from the distribution of the model
}

// ErrDeclined is returned by an engine that leaves a problem to others. It must not be the rule.
var ErrDeclined = errors.New("left to another engine")

// Exercise tests all properties of an engine, each as a subtest of its name. A property that the engine lacks is skipped with the reason.
func Exercise(t *testing.T, e Engine) {
	if e.Tolerance == 0 {
		e.Tolerance = 1e-12
	}
	for _, p := range []struct {
		name Property
		run  func(*testing.T, Engine)
	}{
		{Enumeration, enumeration}, {Marginals, marginals}, {Joint, joint}, {Signs, signs}, {Zeros, zeros}, {Expressions, expressions},
		{Maps, maps}, {Relabelling, relabelling}, {Slices, slicesAddUp}, {Threads, threads}, {OverBudget, overBudget}, {ZeroZ, zeroZ},
		{Range, wideRange}, {Assignments, assignments}, {Derivatives, derivatives}, {Cancelled, cancelled},
	} {
		t.Run(string(p.name), func(t *testing.T) {
			if reason := e.Lacks[p.name]; reason != "" {
				t.Skip(reason)
			}
			p.run(t, e)
		})
	}
}

// has reports whether the engine has a property.
func (e Engine) has(p Property) bool { return e.Lacks[p] == "" }
