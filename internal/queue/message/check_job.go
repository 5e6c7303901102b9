package message

import (
	"cmp"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// CheckAssignments checks decoded assignments against the network they belong to, so that no index of a contraction is
// out of range. An assignment is the plan that answers one demand (evidence with what is wanted under it), or an error.
// The error of CheckAssignments wraps ErrInvalid or btn.ErrPart and has the code bad_input. It skips plans for the
// relevant part of the network, what a question depends on: the caller checks those by CheckPlan against that part. It
// takes time linear in the size of the plans.
func CheckAssignments(n *btn.Network, assignments []btn.Assignment) error {
	isChecked := map[*btn.Plan]bool{}
	domains := domainsOf(n)
	if queries, _ := asked(assignments); len(queries) > 0 {
		if err := query.Check(domains, queries); err != nil {
			return fault.Wrap(fault.BadInput, invalid("assignments", "%v", err))
		}
	}
	for i, a := range assignments {
		place := fmt.Sprintf("assignments[%d]", i)
		if a.Error == nil && a.Plan == nil {
			return fault.Wrap(fault.BadInput, invalid(place, "it has neither a plan nor an error"))
		}
		if err := a.Want.Check(domains); err != nil {
			return fault.Wrap(fault.BadInput, under(place, invalid("want", "%v", err)))
		}

		if a.Plan == nil || a.Relevant || isChecked[a.Plan] {
			continue
		}
		isChecked[a.Plan] = true
		if err := CheckPlan(n, a.Plan); err != nil {
			return fault.Wrap(fault.BadInput, under(place+".plan", err))
		}
	}
	return nil
}

// domainsOf returns the number of values of each variable of a network.
func domainsOf(n *btn.Network) []int {
	domains := make([]int, len(n.Variables))
	for v := range domains {
		domains[v] = n.Variables[v].Domain
	}
	return domains
}

// CheckPlan checks one plan against a network, as CheckAssignments does. If a plan has several estimates, they are a
// sequence by which they are judged. Such a sequence does not begin with an estimate whose quality, its fit to the network,
// is known before contraction: that estimate would be the only one.
func CheckPlan(n *btn.Network, p *btn.Plan) error {
	if !(p.Accuracy >= 0) || math.IsInf(p.Accuracy, 1) {
		return invalid("accuracy", "%v nats", p.Accuracy)
	}
	if len(p.Estimates) == 0 {
		return invalid("estimates", "there is none")
	}

	for k := range p.Estimates {
		e := &p.Estimates[k]
		if e.Quality != nil && k == 0 && len(p.Estimates) > 1 {
			return invalid(fmt.Sprintf("estimates[%d]", k), "one whose quality is known is alone, or not the first")
		}
		if err := checkEstimate(n, e); err != nil {
			return under(fmt.Sprintf("estimates[%d]", k), err)
		}
	}
	return nil
}

// checkEstimate checks an estimate: its fields, that its parts fit the network, and that they are of a class whose values
// are combined by the estimate's rule. A class that names no rule is for the linear one. The parts may be slices, so there
// are at least as many parts as slices.
func checkEstimate(n *btn.Network, e *btn.Estimate) error {
	switch {
	case e.Rule != btn.Linear && e.Rule != btn.LogLinear && e.Rule != btn.Pooled && e.Rule != btn.Bounding:
		return invalid("rule", "%.40q is no rule of this version", e.Rule)
	case len(e.Parts) == 0:
		return invalid("parts", "there is none")
	case e.Alpha != nil && len(e.Alpha) != len(e.Parts):
		return invalid("alpha_m", "%d for %d parts", len(e.Alpha), len(e.Parts))
	case e.Slices < 1 || e.Slices > int64(len(e.Parts)):
		return invalid("slices", "%d for %d parts", e.Slices, len(e.Parts))
	case !(e.Cost.Flops >= 0) || !(e.Cost.Bytes >= 0):
		return invalid("cost", "%v flops, %v bytes", e.Cost.Flops, e.Cost.Bytes)
	case math.IsNaN(e.Level):
		return invalid("level", "%v", e.Level)
	}

	for i, part := range e.Parts {
		if part == nil {
			return invalid(fmt.Sprintf("parts[%d]", i), "there is none")
		}
		if err := part.Fits(n); err != nil {
			return invalid(fmt.Sprintf("parts[%d]", i), "%v", err)
		}

		if cmp.Or(part.About().Rule, btn.Linear) != e.Rule {
			return invalid(
				fmt.Sprintf("parts[%d]", i), "class %s under the rule %s", part.Class(), e.Rule,
			)
		}
	}
	return nil
}
