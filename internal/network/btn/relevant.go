package btn

// The part of a directed network on which the answer to a query depends.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Relevant returns the variables of a directed network on which the answer to a query depends, ascending: those that it asks about or
// observes, and their ancestors. Sums over all others are 1. All says that there are no others: because the network is not directed, or
// because the query asks about all variables or by numbers of the model. Cost O(legs + links).
func (n *Network) Relevant(q query.Query) (variables []int, all bool) {
	asked, isAll := variablesOf(q)
	if isAll || !n.Directed {
		return nil, true
	}
	variable, table := n.tables()
	relevant := make([]bool, len(n.Variables))
	visit := func(v int) {
		if !relevant[v] {
			relevant[v] = true
			variables = append(variables, v)
		}
	}
	for _, v := range asked {
		if v < 0 || v >= len(relevant) {
			return nil, true // whoever conditions the network refuses the query
		}
		visit(v)
	}
	for k := 0; k < len(variables); k++ {
		if c := table[variables[k]]; c >= 0 {
			for _, leg := range n.Cores[c].Legs {
				visit(variable[leg])
			}
		}
	}
	slices.Sort(variables)
	return variables, len(variables) == len(relevant)
}

// variablesOf lists the variables that a query asks about or observes; isAll says that it is about all of them.
func variablesOf(q query.Query) (asked []int, isAll bool) {
	if q.Marginals && len(q.Targets) == 0 || q.MPE || q.Samples > 0 || Parametric(q) {
		return nil, true
	}
	asked = slices.Concat(q.Targets, q.Joint, q.Map)
	for _, o := range q.Evidence.Hard {
		asked = append(asked, o.Var)
	}
	for _, s := range q.Evidence.Soft {
		asked = append(asked, s.Var)
	}
	return asked, false
}

// tables returns, by leg, its variable, and by variable, the core that is its table, −1 for none, of a directed network.
func (n *Network) tables() (of, table []int) {
	of, table = make([]int, len(n.Dims)), make([]int, len(n.Variables))
	for v, place := range n.Variables {
		table[v] = -1
		for _, leg := range n.Links[place.Link].Legs {
			of[leg] = v
		}
	}
	for c, core := range n.Cores {
		table[of[core.Legs[len(core.Legs)-1]]] = c
	}
	return of, table
}

// Restrict returns the part of a directed network that some variables make up, which have all their ancestors among them, ascending:
// the tables of these variables, in the network's sequence. Z under evidence on them, and what it says of them, are the network's.
// Tensors are shared. Cost O(legs + links) of n.
func (n *Network) Restrict(variables []int) *Network {
	of, _ := n.tables()
	part := &Network{
		Scale: n.Scale, Choice: n.Choice, Warnings: n.Warnings, Directed: true,
		Numbers: make([]int, len(variables)), Variables: make([]Variable, len(variables)), Links: make([]Link, len(variables)),
	}
	within := make([]bool, len(n.Variables))
	for i, v := range variables {
		within[v] = true
		part.Numbers[i] = n.Number(v)
	}
	number := slices.Repeat([]int{-1}, len(n.Dims)) // of the legs in the part
	for _, core := range n.Cores {
		if !within[of[core.Legs[len(core.Legs)-1]]] {
			continue
		}
		legs := make([]int, len(core.Legs))
		for k, leg := range core.Legs {
			legs[k] = len(part.Dims)
			number[leg] = legs[k]
			part.Dims = append(part.Dims, n.Dims[leg])
			if n.Maps != nil {
				part.Maps = append(part.Maps, n.Maps[leg])
			}
		}
		part.Cores = append(part.Cores, Core{Legs: legs, T: core.T})
	}
	for i, v := range variables {
		part.Links[i] = restricted(&n.Links[n.Variables[v].Link], number)
		part.Variables[i] = Variable{Domain: n.Variables[v].Domain, Link: i}
	}
	return part
}

// restricted is the tensor of a variable on the legs that have a number in a part.
func restricted(link *Link, number []int) Link {
	whole := link.T.(*tensor.CP)
	cp := &tensor.CP{Weights: whole.Weights}
	var legs []int
	for k, leg := range link.Legs {
		if number[leg] >= 0 {
			legs = append(legs, number[leg])
			cp.Shape = append(cp.Shape, whole.Shape[k])
			cp.Vectors = append(cp.Vectors, whole.Vectors[k])
		}
	}
	return Link{Legs: legs, T: cp}
}

// On returns a query about a network as the same query about a part of it, which has all variables that the query is about.
func (n *Network) On(part *Network, q query.Query) query.Query {
	place := func(v int) int {
		at, _ := slices.BinarySearch(part.Numbers, n.Number(v))
		return at
	}
	places := func(list []int) []int {
		if list == nil {
			return nil
		}
		out := make([]int, len(list))
		for k, v := range list {
			out[k] = place(v)
		}
		return out
	}
	q.Targets, q.Joint, q.Map = places(q.Targets), places(q.Joint), places(q.Map)
	evidence := factorgraph.Evidence{}
	for _, o := range q.Evidence.Hard {
		evidence.Hard = append(evidence.Hard, factorgraph.Observation{Var: place(o.Var), Value: o.Value})
	}
	for _, s := range q.Evidence.Soft {
		evidence.Soft = append(evidence.Soft, factorgraph.Likelihood{Var: place(s.Var), Weights: s.Weights})
	}
	q.Evidence = evidence
	return q
}
