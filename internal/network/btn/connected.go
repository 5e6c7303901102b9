package btn

// Connected parts of a network, and each as a network of its own.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Connected lists the links of every connected part, ascending, parts in the order of their first
// links: two links are connected that a core joins. Links without legs, which are numbers, make one
// part together, the last one. Cost O(legs + links).
func (n *Network) Connected() [][]int {
	of := n.LegLink()
	parent := make([]int, len(n.Links))
	for k := range parent {
		parent[k] = k
	}

	// find returns the root of a link's set, halving paths (union-find).
	find := func(k int) int {
		for parent[k] != k {
			parent[k] = parent[parent[k]]
			k = parent[k]
		}
		return k
	}

	for _, core := range n.Cores {
		for _, leg := range core.Legs {
			parent[find(of[leg])] = find(of[core.Legs[0]])
		}
	}

	var parts [][]int
	var numbers []int
	place := make(map[int]int)

	for k, link := range n.Links {
		if len(link.Legs) == 0 {
			numbers = append(numbers, k)
			continue
		}
		at, known := place[find(k)]
		if !known {
			at = len(parts)
			place[find(k)] = at
			parts = append(parts, nil)
		}
		parts[at] = append(parts[at], k)
	}

	if numbers != nil {
		parts = append(parts, numbers)
	}
	return parts
}

// Sub returns the part of n made up of some links and the cores between them, and its variables'
// numbers in n. The links are all links of some connected parts (see Connected), ascending; links,
// legs, cores and variables keep their sequence. Cores without legs and the scale stay with n: the
// scale of the part is 1. Tensors are shared. Cost O(legs + links) of n.
func (n *Network) Sub(links []int) (part *Network, variables []int) {
	part = &Network{Scale: scaled.One, Choice: n.Choice, Links: make([]Link, len(links))}
	of := n.LegLink()
	within := make([]int, len(n.Links)) // 1 + its number in the part
	for k, link := range links {
		within[link] = k + 1
	}

	number := make([]int, len(n.Dims))
	for leg, d := range n.Dims {
		if within[of[leg]] == 0 {
			continue
		}
		number[leg] = len(part.Dims)
		part.Dims = append(part.Dims, d)
		if n.Maps != nil {
			part.Maps = append(part.Maps, n.Maps[leg])
		}
	}

	renumber := func(legs []int) []int {
		out := make([]int, len(legs))
		for k, leg := range legs {
			out[k] = number[leg]
		}
		return out
	}

	for k, link := range links {
		part.Links[k] = Link{Legs: renumber(n.Links[link].Legs), T: n.Links[link].T}
	}
	for _, core := range n.Cores {
		if len(core.Legs) > 0 && within[of[core.Legs[0]]] > 0 {
			part.Cores = append(part.Cores, Core{Legs: renumber(core.Legs), T: core.T})
		}
	}

	if n.Variables == nil {
		return part, nil
	}
	part.Variables = []Variable{}
	for v, place := range n.Variables {
		if k := within[place.Link]; k > 0 {
			part.Variables = append(part.Variables, Variable{Domain: place.Domain, Link: k - 1})
			variables = append(variables, v)
		}
	}
	return part, slices.Clip(variables)
}
