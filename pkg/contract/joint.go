package contract

// The joint marginal of a set of variables, unnormalised.

import (
	"fmt"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// checkJoint says whether this component can have the joint marginal of a set.
func (j job) checkJoint(set []int) error {
	domains := make([]int, len(j.net.Variables))
	for v := range domains {
		domains[v] = j.net.Variables[v].Domain
	}
	if err := btn.CheckJoint(domains, set); err != nil {
		return err
	}
	if j.q.Class != btn.ClassBase || j.q.Order != nil || j.dec.Contraction == nil {
		return fault.Wrap(fault.Unsupported, fmt.Errorf("%w: a joint marginal needs a contraction tree", ErrComponent))
	}
	return nil
}

// jointValue returns probabilities times Z over the domains of the set; nil probabilities are zeros.
func (j job) jointValue(p []float64, z scaled.Number) *btn.Marginals {
	domains, size := make([]int, len(j.joint)), 1
	for k, v := range j.joint {
		domains[k] = j.net.Variables[v].Domain
		size *= domains[k]
	}
	c := &collected{at: make([]scaled.Number, size)}
	for x, q := range p {
		c.at[x] = scaled.FromFloat(q).Mul(z)
	}
	m := c.result(scaled.One)
	m.Domains = domains
	return m
}
