package problem

import (
	"time"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Want says what a contraction shall give beside Z.
type Want struct {
	// Marginals asks for Value.Marginals, at about three times the cost.
	Marginals bool
	// Targets are the variables whose marginals are asked for, nil: all. Others may be there, too.
	Targets []int
	// Joint asks for Value.Joint, of these variables.
	Joint []int
	// Derivatives asks for Value.Derivatives, and Target for Value.Target: of classes that have them.
	Derivatives bool
	Target      *factorgraph.Observation
	// Cases asks for Value.Cases, and Derivatives for those of the sum: of the class that has them.
	Cases *query.Cases
	// Best is the number of most probable assignments, 0 for one.
	Best int
	// Map lists the variables of a marginal MAP assignment, Samples is how many are drawn, Seed that
	// of the draws: for parts that ask for them.
	Map     []int
	Samples int
	Seed    uint64
	// Until is when a part ends that has an answer at any time; zero: its work alone ends it.
	Until time.Time
}
