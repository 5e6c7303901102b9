package proposal

import "github.com/basetensor/basetensor/pkg/query"

// Method is how a family answers the method of a request that it is asked for by name.
type Method struct {
	Name    query.Method
	Propose Proposer // nil, nil: the exact way is as cheap
	// Parametric is the proposal for derivatives by the numbers of a model. A method with it is exact: it answers joint marginals and finds
	// assignments, too.
	Parametric Proposer
	Maps       bool // the network has maps on its legs
	Grows      bool // plans are estimates that judge each other
	Weighs     bool // samples have weights
}

// Exact reports whether a method answers exactly.
func (m *Method) Exact() bool { return m.Parametric != nil }
