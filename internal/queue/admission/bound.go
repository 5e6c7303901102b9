package admission

import (
	"github.com/basetensor/basetensor/pkg/query"
)

// Asked describes the cost of a request as far as it is known before anything is computed.
type Asked struct {
	Bytes    int            // of the request, decoded
	Demands  float64        // how many values of Z are asked for
	Numbers  float64        // that the answers have, at least
	Cases    float64        // cases times variables
	Settings query.Settings // as they were sent: zeros are defaults
}

// AtLeast returns a lower bound of the cost of a request, and the cost that it declares: memory,
// the budget of a method that spends one, components of a decomposition that is learned. A
// request of the default settings is taken to declare only the cost that always arises.
func (a Asked) AtLeast() Cost {
	s := a.Settings
	c := Cost{
		Flops: a.Numbers + a.Cases,
		Bytes: max(float64(a.Bytes), 8*a.Numbers, float64(s.Memory)),
		Parts: a.Demands,
	}
	switch s.Method {
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
