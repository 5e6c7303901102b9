package plan

// The exact way of small networks: by a program, see einsum.Compile.

import (
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/families/exact"
	"github.com/basetensor/basetensor/internal/policy"
)

// compiled fills the assignment of a query that the network's program answers along the order of base, and
// says why Z is 0 where the program finds that. It says no where there is no such program, or where it is
// seen not to serve the query: package contract then sees the same.
func (a *assigner) compiled(
	assignment *btn.Assignment, base *exact.Elimination, conditioned *btn.Network, marginals bool,
) (bool, error) {
	if base.Flops > policy.ProgramFlops {
		return false, nil
	}
	p, ok := a.facts.programs.Of(a.net, base.Order)
	if !ok {
		return false, nil
	}

	cost := p.Plan(marginals)
	if cost.Bytes > float64(a.settings.Memory) {
		return false, nil
	}
	if !p.Above(conditioned) {
		z, ok := p.Z(conditioned)
		if !ok {
			return false, nil
		}
		if z.IsZero() {
			var err error
			if assignment.Warnings, err = a.whyZero(conditioned); err != nil {
				return false, err
			}
		}
	}

	assignment.Cost = &cost
	return true, nil
}
