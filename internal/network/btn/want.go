package btn

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Demand is evidence, and what is wanted under it. Its variables are numbered as in the network that it is about.
type Demand struct {
	Evidence factorgraph.Evidence `msgpack:"evidence,omitempty"`
	Want
}

// Want is what a plan has to provide in addition to Z: the union of what the questions of a query need.
type Want struct {
	// Marginals asks for the marginals of Targets, or of all variables if there are no Targets, at about three times the cost of Z.
	Marginals bool  `msgpack:"marginals,omitempty"`
	Targets   []int `msgpack:"targets,omitempty"`
	// Joint lists the variables of a joint marginal.
	Joint []int `msgpack:"joint,omitempty"`
	// Derivatives asks for ∂Z/∂θ of every number θ of the model. With Target it also asks for Z and its derivatives with the target
	// observed.
	Derivatives bool                     `msgpack:"derivatives,omitempty"`
	Target      *factorgraph.Observation `msgpack:"target,omitempty"`
	// Cases take the place of evidence: Value.Cases is asked for, and derivatives are those of the sum over the cases.
	Cases *query.Cases `msgpack:"cases,omitempty"`
	// Best is the number of most probable assignments of all variables that are asked for.
	Best int `msgpack:"best,omitempty"`
	// Map lists the variables whose most probable assignment is asked for, the others summed out.
	Map []int `msgpack:"map,omitempty"`
	// Samples is the number of assignments that are to be drawn, with Seed.
	Samples int    `msgpack:"samples,omitempty"`
	Seed    uint64 `msgpack:"seed,omitempty"`
	// Conflict asks which observations contradict each other, if Z is 0.
	Conflict bool `msgpack:"conflict,omitempty"`
	// Until is the time at which a part ends that has an answer at any time. If it is zero, such a part ends with its work. Whoever
	// contracts sets it.
	Until time.Time `msgpack:"-"`
}

// IsParametric reports whether derivatives by the numbers of the model, or cases, are wanted. Every factor is a core of its own then.
func (w *Want) IsParametric() bool { return w.Derivatives || w.Cases != nil }

// WantsAssignments reports whether assignments of values are wanted: the most probable ones, or samples.
func (w *Want) WantsAssignments() bool { return w.Best > 0 || len(w.Map) > 0 || w.Samples > 0 }

// IsTotal reports whether nothing but Z is wanted.
func (w *Want) IsTotal() bool {
	return !w.Marginals && len(w.Joint) == 0 && !w.WantsAssignments() && !w.IsParametric()
}

// WantsOnlyBest reports whether the most probable assignment is wanted, either of all variables or of some, and nothing else but Z and
// marginals.
func (w *Want) WantsOnlyBest() bool {
	isOneKind := (w.Best > 0) != (len(w.Map) > 0)
	return isOneKind && w.Samples == 0 && len(w.Joint) == 0 && !w.IsParametric()
}

// Asks returns the kinds of assignments that are wanted.
func (w *Want) Asks() (kinds []Ask) {
	if w.Best > 0 {
		kinds = append(kinds, AskMPE)
	}
	if len(w.Map) > 0 {
		kinds = append(kinds, AskMap)
	}
	if w.Samples > 0 {
		kinds = append(kinds, AskSamples)
	}
	return kinds
}

// variables returns the variables that a demand names or observes. If isAll is true, the demand depends on all variables, and named is nil.
func (d *Demand) variables() (named []int, isAll bool) {
	wantsAllMarginals := d.Marginals && len(d.Targets) == 0
	if wantsAllMarginals || d.Best > 0 || d.Samples > 0 || d.IsParametric() {
		return nil, true
	}
	named = slices.Concat(d.Targets, d.Joint, d.Map)
	for _, observation := range d.Evidence.Hard {
		named = append(named, observation.Var)
	}
	for _, likelihood := range d.Evidence.Soft {
		named = append(named, likelihood.Var)
	}
	return named, false
}

// Renumber returns the demand with every variable v that it names or observes replaced by number(v). Lists that are nil stay nil. It is
// for demands that name all variables on which they depend, and not for one that asks about all variables by a nil list.
func (d Demand) Renumber(number func(v int) int) Demand {
	renumberAll := func(variables []int) []int {
		if variables == nil {
			return nil
		}
		numbers := make([]int, len(variables))
		for k, v := range variables {
			numbers[k] = number(v)
		}
		return numbers
	}
	d.Targets, d.Joint, d.Map = renumberAll(d.Targets), renumberAll(d.Joint), renumberAll(d.Map)
	evidence := factorgraph.Evidence{}
	for _, o := range d.Evidence.Hard {
		evidence.Hard = append(evidence.Hard, factorgraph.Observation{Var: number(o.Var), Value: o.Value})
	}
	for _, s := range d.Evidence.Soft {
		evidence.Soft = append(evidence.Soft, factorgraph.Likelihood{Var: number(s.Var), Weights: s.Weights})
	}
	d.Evidence = evidence
	return d
}

// CountNumbers returns a lower bound of the number of numbers in the answer to a demand, for a model whose variables have these domains.
// Derivatives count as one number per value of a variable. Variables out of range count 0.
func (w *Want) CountNumbers(domains []int) float64 {
	numbers := 1.0 // Z
	switch {
	case len(w.Targets) > 0:
		for _, v := range w.Targets {
			numbers += domainOf(domains, v)
		}
	case w.Marginals:
		numbers += valueCount(domains)
	}
	if len(w.Joint) > 0 {
		cells := 1.0
		for _, v := range w.Joint {
			cells *= max(1, domainOf(domains, v))
		}
		numbers += cells
	}
	if w.IsParametric() {
		numbers += valueCount(domains)
	}
	variables := float64(len(domains))
	// An assignment has a value for each variable.
	return numbers + float64(w.Best)*variables + float64(len(w.Map)) + float64(w.Samples)*max(1, variables)
}

// domainOf returns the number of values of variable v, or 0 if v is out of range.
func domainOf(domains []int, v int) float64 {
	if v < 0 || v >= len(domains) {
		return 0
	}
	return float64(domains[v])
}

// valueCount returns the number of values of all variables together.
func valueCount(domains []int) (total float64) {
	for _, d := range domains {
		total += float64(d)
	}
	return total
}

// Check returns an error if w does not fit a model whose variables have these domains: a variable or a value does not exist, or a number is
// beyond the bounds of package query.
func (w *Want) Check(domains []int) error {
	for _, v := range w.Targets {
		if v < 0 || v >= len(domains) {
			return fmt.Errorf("targets: variable %d of %d", v, len(domains))
		}
	}
	if t := w.Target; t != nil {
		isVariable := t.Var >= 0 && t.Var < len(domains)
		if !isVariable || t.Value < 0 || t.Value >= domains[t.Var] {
			return fmt.Errorf("target: variable %d = %d", t.Var, t.Value)
		}
	}
	if w.Best < 0 || w.Best > query.MaxBest || w.Samples < 0 || w.Samples > math.MaxInt32 {
		return fmt.Errorf("best: %d assignments, %d samples", w.Best, w.Samples)
	}
	if err := query.CheckJoint(domains, w.Joint); err != nil {
		return fmt.Errorf("joint: %w", err)
	}
	if err := query.CheckSet(domains, w.Map); err != nil {
		return fmt.Errorf("map: %w", err)
	}
	if err := query.CheckSamples(len(domains), w.Samples); err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	return nil
}
