package btn

// The part of a directed network on which the answer to a query depends.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/tensor"
)

// Relevant returns the variables of a directed network on which the values of a demand depend, ascending: those that it names or
// observes, and their ancestors. Sums over all others are 1. All says that there are no others: because the network is not directed, or
// because all variables or numbers of the model are asked about. Cost O(legs + links).
func (n *Network) Relevant(d Demand) (variables []int, all bool) {
	asked, isAll := d.variables()
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
			return nil, true // whoever conditions the network refuses the demand
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

// On returns a demand on a network as the same demand on a part of it, which has all variables that the demand names.
func (n *Network) On(part *Network, d Demand) Demand {
	return d.Renumber(func(v int) int {
		place, _ := slices.BinarySearch(part.Numbers, n.Number(v))
		return place
	})
}
