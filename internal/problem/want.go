package problem

import (
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Want says what a contraction shall give beside Z.
type Want struct {
	// Marginals asks for Value.Marginals, at about three times the cost.
	Marginals bool
	// Joint asks for Value.Joint, of these variables.
	Joint []int
	// Derivatives asks for Value.Derivatives, and Target for Value.Target: of classes that have them.
	Derivatives bool
	Target      *factorgraph.Observation
}
