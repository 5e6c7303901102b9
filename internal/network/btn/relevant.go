package btn

// The part of a directed network on which the answer to a query depends.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/tensor"
)

// Relevant returns the variables of a directed network on which the values of a demand depend, ascending. A demand is evidence, and what is
// wanted under it. Relevant are the variables that it names or observes, and their ancestors: sums over all other variables are 1. isAll is
// true if the values depend on all variables, and then the list may be nil: the network is not directed, or the demand asks about all
// variables or numbers of the model. Cost O(legs + links).
func (n *Network) Relevant(d Demand) (variables []int, isAll bool) {
	named, isAll := d.variables()
	if isAll || !n.Directed {
		return nil, true
	}
	variableOfLeg, tableOf := n.probabilityTables() // tableOf: the core that is the conditional probability table of a variable
	isRelevant := make([]bool, len(n.Variables))
	addVariable := func(v int) {
		if !isRelevant[v] {
			isRelevant[v] = true
			variables = append(variables, v)
		}
	}
	for _, v := range named {
		if v < 0 || v >= len(isRelevant) {
			return nil, true // the demand is invalid, and refused when the network is conditioned
		}
		addVariable(v)
	}

	// Add the parents of each variable in the list, which grows by them.
	for k := 0; k < len(variables); k++ {
		table := tableOf[variables[k]]
		if table < 0 { // only weights, and so no parents
			continue
		}
		for _, leg := range n.Cores[table].Legs {
			addVariable(variableOfLeg[leg])
		}
	}
	slices.Sort(variables)
	return variables, len(variables) == len(isRelevant)
}

// probabilityTables returns, for a directed network, the variable of every leg, and for every variable the core that is its conditional
// probability table, −1 if it has none. The last leg of a core is that of the variable whose table it is.
func (n *Network) probabilityTables() (variableOfLeg, tableOf []int) {
	variableOfLeg, tableOf = make([]int, len(n.Dims)), make([]int, len(n.Variables))
	for v, variable := range n.Variables {
		tableOf[v] = -1
		for _, leg := range n.Links[variable.Link].Legs {
			variableOfLeg[leg] = v
		}
	}
	for c, core := range n.Cores {
		lastLeg := core.Legs[len(core.Legs)-1]
		tableOf[variableOfLeg[lastLeg]] = c
	}
	return variableOfLeg, tableOf
}

// Restrict returns the part of a directed network that consists of some variables and their tables, in the network's sequence. The
// variables are ascending, and every ancestor of one of them is among them. So Z under evidence on them, and all answers about them, are
// those of the whole network. Tensors are shared. Cost O(legs + links) of n.
func (n *Network) Restrict(variables []int) *Network {
	variableOfLeg, _ := n.probabilityTables()
	part := &Network{
		Scale: n.Scale, Choice: n.Choice, Warnings: n.Warnings, Directed: true,
		Numbers: make([]int, len(variables)), Variables: make([]Variable, len(variables)), Links: make([]Link, len(variables)),
	}
	isInPart := make([]bool, len(n.Variables))
	for i, v := range variables {
		isInPart[v] = true
		part.Numbers[i] = n.Number(v)
	}

	// Keep the tables of these variables, and number their legs.
	number := slices.Repeat([]int{-1}, len(n.Dims)) // by leg of n: its number in the part, −1 if it is not in the part
	for _, core := range n.Cores {
		lastLeg := core.Legs[len(core.Legs)-1] // that of the variable whose table the core is
		if !isInPart[variableOfLeg[lastLeg]] {
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
		part.Links[i] = restrictLink(&n.Links[n.Variables[v].Link], number)
		part.Variables[i] = Variable{Domain: n.Variables[v].Domain, Link: i}
	}
	return part
}

// restrictLink returns the link of a variable with only those legs that are in a part of the network. number has the number of every leg in
// the part, −1 for a leg that is not in it.
func restrictLink(link *Link, number []int) Link {
	whole := link.T.(*tensor.CP)
	restricted := &tensor.CP{Weights: whole.Weights}
	var legs []int
	for k, leg := range link.Legs {
		if number[leg] >= 0 {
			legs = append(legs, number[leg])
			restricted.Shape = append(restricted.Shape, whole.Shape[k])
			restricted.Vectors = append(restricted.Vectors, whole.Vectors[k])
		}
	}
	return Link{Legs: legs, T: restricted}
}

// RenumberDemand returns the demand d on n with its variables renumbered for part: a network that Restrict has cut from n, and that has
// all variables that d names.
func (n *Network) RenumberDemand(part *Network, d Demand) Demand {
	return d.Renumber(func(v int) int {
		position, _ := slices.BinarySearch(part.Numbers, n.Number(v))
		return position
	})
}
