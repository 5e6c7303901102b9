package admission

import (
	"github.com/basetensor/basetensor/pkg/query"
)

// RequestCost describes the cost of a request as far as it is known before anything is computed.
type RequestCost struct {
	Bytes    int            // size of the decoded request
	Demands  float64        // number of values of Z that are asked for
	Numbers  float64        // least number of numbers in the answers
	Cases    float64        // number of cases times number of variables
	Settings query.Settings // as they were sent: zeros are defaults
}

// MinCost returns a lower bound of the cost of a request. It includes the cost that the request's settings declare: memory,
// the budget if the method spends it, and the number of components if a decomposition is learned. Settings that are not
// given count only with the cost that always arises.
func (a RequestCost) MinCost() Cost {
	s := a.Settings
	c := Cost{
		Flops: a.Numbers + a.Cases,                                   // one for each number and case at least
		Bytes: max(float64(a.Bytes), 8*a.Numbers, float64(s.Memory)), // a number has 8 bytes
		Parts: a.Demands,                                             // one component for each demand at least
	}
	switch s.Method { // these methods spend their budget
	case query.MethodSymmetryCP:
		c.Flops = max(c.Flops, s.Budget)
		if s.WithDefaults().Objective == query.ObjectiveFrobenius {
			c.Parts *= float64(max(1, s.Components))
		}
	case query.MethodTruncated, query.MethodRegions, query.MethodSampled:
		c.Flops = max(c.Flops, s.Budget)
	}
	return c
}
