// Package factorgraph holds discrete factor graphs: variables, factors in four forms, evidence, and their validation.
package factorgraph

import (
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Model is a factor graph: P(x) ∝ Π_j φ_j(x_j). Its partition function is Z = Σ_x Π_j φ_j(x_j).
type Model struct {
	Domains []int    // Domains[i] ≥ 1 is the number of values of variable i
	Names   []string // optional: a name per variable, empty for none, or nil; see Labels
	// States are optional: per variable a name per value, or nil for a variable whose values have none.
	States [][]string
	// Aliases are optional: per variable a second name under which it is found, as the display name of its file; empty for none, or nil.
	Aliases []string
	// Layout is optional: of every variable x, to the right, and y, downwards, where its file draws it; or nil. Only drawings read it.
	Layout  []float64
	Factors []Factor
	// Bayes says that the file called the factors conditional probability tables. It is never relied on for correctness;
	// WrongRow says where it is not so.
	Bayes bool
	// Lines are optional: per factor the line of the file on which its table begins, 0 for none. Only warnings and errors read them.
	Lines []int
	// RowLines are optional: per factor the lines of the file on which the rows of its last variable begin, or nil; the last factors may
	// have no entry. Only warnings read them. See SetRowLines.
	RowLines [][]int
}

// Factor is a function of the variables in Scope, in that order.
type Factor struct {
	Scope []int
	Table tensor.Tensor // its modes are Scope's variables
}

// Evidence holds a query's observations and likelihoods. Both lists are in increasing order of Var, a Var
// at most once in each.
type Evidence struct {
	Hard []Observation `msgpack:"h,omitempty" json:"hard,omitempty"`
	Soft []Likelihood  `msgpack:"s,omitempty" json:"soft,omitempty"`
}

// Observation says that Var has Value.
type Observation struct {
	Var   int `msgpack:"v" json:"var"`
	Value int `msgpack:"x" json:"value"`
}

// Likelihood multiplies the weight of every value of Var: soft evidence.
type Likelihood struct {
	Var     int       `msgpack:"v" json:"var"`
	Weights []float64 `msgpack:"w" json:"weights"`
}
