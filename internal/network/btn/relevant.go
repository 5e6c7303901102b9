package btn

// The part of a directed network on which the answer to a query depends.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/tensor"
)

// Relevant returns the variables of a directed network on which the values of a demand depend, ascending: those that the demand names or
// observes, and their ancestors. Sums over the other variables are 1. isAll is true if the values depend on all variables, and then the
// list may be nil: the network is not directed, or the demand asks about all variables or numbers of the model. Cost O(legs + links).
func (n *Network) Relevant(d Demand) (variables []int, isAll bool) {
	named, isAll := d.variables()
	if isAll || !n.Directed {
		return nil, true
	}
	variableOfLeg, tableOf := n.tables()
	isRelevant := make([]bool, len(n.Variables))
	add := func(v int) {
		if !isRelevant[v] {
			isRelevant[v] = true
			variables = append(variables, v)
		}
	}
	for _, v := range named {
		if v < 0 || v >= len(isRelevant) {
			return nil, true // whoever conditions the network refuses the demand
		}
		add(v)
	}
	for k := 0; k < len(variables); k++ { // variables grows by the parents of each
		if c := tableOf[variables[k]]; c >= 0 {
			for _, leg := range n.Cores[c].Legs {
				add(variableOfLeg[leg])
			}
		}
	}
	slices.Sort(variables)
	return variables, len(variables) == len(isRelevant)
}

// tables returns, for a directed network, the variable of every leg, and for every variable the core that is its conditional probability
// table, −1 if it has none.
func (n *Network) tables() (variableOfLeg, tableOf []int) {
	variableOfLeg, tableOf = make([]int, len(n.Dims)), make([]int, len(n.Variables))
	for v, place := range n.Variables {
		tableOf[v] = -1
		for _, leg := range n.Links[place.Link].Legs {
			variableOfLeg[leg] = v
		}
	}
	for c, core := range n.Cores {
		tableOf[variableOfLeg[core.Legs[len(core.Legs)-1]]] = c
	}
	return variableOfLeg, tableOf
}

// Restrict returns the part of a directed network that consists of some variables and their tables, in the network's sequence. The
// variables are ascending, and every ancestor of one of them is among them. So Z under evidence on them, and all answers about them, are
// those of the whole network. Tensors are shared. Cost O(legs + links) of n.
func (n *Network) Restrict(variables []int) *Network {
	variableOfLeg, _ := n.tables()
	part := &Network{
		Scale: n.Scale, Choice: n.Choice, Warnings: n.Warnings, Directed: true,
		Numbers: make([]int, len(variables)), Variables: make([]Variable, len(variables)), Links: make([]Link, len(variables)),
	}
	isInPart := make([]bool, len(n.Variables))
	for i, v := range variables {
		isInPart[v] = true
		part.Numbers[i] = n.Number(v)
	}
	number := slices.Repeat([]int{-1}, len(n.Dims)) // by leg of n: its number in the part, −1 if it is not in the part
	for _, core := range n.Cores {
		if !isInPart[variableOfLeg[core.Legs[len(core.Legs)-1]]] {
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

// restrictLink returns the link of a variable with only the legs that have a number in the part, under these numbers.
func restrictLink(link *Link, number []int) Link {
	full := link.T.(*tensor.CP)
	cp := &tensor.CP{Weights: full.Weights}
	var legs []int
	for k, leg := range link.Legs {
		if number[leg] >= 0 {
			legs = append(legs, number[leg])
			cp.Shape = append(cp.Shape, full.Shape[k])
			cp.Vectors = append(cp.Vectors, full.Vectors[k])
		}
	}
	return Link{Legs: legs, T: cp}
}

// On returns the demand d on n with its variables renumbered for part, a part of n (Restrict) that has all variables that d names.
func (n *Network) On(part *Network, d Demand) Demand {
	return d.Renumber(func(v int) int {
		position, _ := slices.BinarySearch(part.Numbers, n.Number(v))
		return position
	})
}
