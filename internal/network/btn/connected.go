package btn

// Connected parts of a network, and each as a network of its own.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// ConnectedParts returns the connected parts of the network, each as the ascending list of its links. Two links are connected if a core
// joins them. The parts are in the order of their first links. Links without legs, which are numbers, make up one further part, the last
// one. Cost O(legs + links).
func (n *Network) ConnectedParts() [][]int {
	root := n.rootsOfLinks()
	var parts [][]int
	var withoutLegs []int
	partOfRoot := make(map[int]int) // by root: the position in parts
	for k, link := range n.Links {
		if len(link.Legs) == 0 {
			withoutLegs = append(withoutLegs, k)
			continue
		}
		part, isListed := partOfRoot[root[k]]
		if !isListed {
			part = len(parts)
			partOfRoot[root[k]] = part
			parts = append(parts, nil)
		}
		parts[part] = append(parts[part], k)
	}

	if withoutLegs != nil {
		parts = append(parts, withoutLegs)
	}
	return parts
}

// rootsOfLinks returns for every link its root: one link that stands for all links that cores connect with it.
func (n *Network) rootsOfLinks() []int {
	parent := make([]int, len(n.Links)) // union-find: another link of the same part, or the link itself if it is the root
	for k := range parent {
		parent[k] = k
	}
	root := func(k int) int {
		for parent[k] != k {
			parent[k] = parent[parent[k]]
			k = parent[k]
		}
		return k
	}

	legLink := n.LinkOfLeg()
	for _, core := range n.Cores {
		for _, leg := range core.Legs {
			parent[root(legLink[leg])] = root(legLink[core.Legs[0]])
		}
	}

	roots := make([]int, len(n.Links))
	for k := range roots {
		roots[k] = root(k)
	}
	return roots
}

// Subnetwork returns the part of n that consists of the given links and the cores between them, and for each variable of that part its
// number in n. A leg is an index that joins a link with a core. links has all links of one or more connected parts (see ConnectedParts),
// ascending. Links, legs, cores and variables keep their sequence. Cores without legs and the scale stay with n: the scale of the part is
// 1. Tensors are shared. Cost O(legs + links) of n.
func (n *Network) Subnetwork(links []int) (part *Network, variables []int) {
	part = &Network{Scale: scaled.One, Choice: n.Choice, Links: make([]Link, len(links))}
	legLink := n.LinkOfLeg()
	linkNumber := slices.Repeat([]int{-1}, len(n.Links)) // by link of n: its number in the part, −1 if it is not in the part
	for k, link := range links {
		linkNumber[link] = k
	}

	legNumber := n.copyLegs(part, func(leg int) bool { return linkNumber[legLink[leg]] >= 0 })
	renumber := func(legs []int) []int {
		numbers := make([]int, len(legs))
		for k, leg := range legs {
			numbers[k] = legNumber[leg]
		}
		return numbers
	}

	// Links and cores. All legs of a core are in the same connected part, so its first leg decides.
	for k, link := range links {
		part.Links[k] = Link{Legs: renumber(n.Links[link].Legs), T: n.Links[link].T}
	}
	for _, core := range n.Cores {
		if len(core.Legs) > 0 && linkNumber[legLink[core.Legs[0]]] >= 0 {
			part.Cores = append(part.Cores, Core{Legs: renumber(core.Legs), T: core.T})
		}
	}

	// Variables.
	if n.Variables == nil {
		return part, nil
	}
	part.Variables = []Variable{} // not nil, which stands for a network that was built directly
	for v, variable := range n.Variables {
		if link := linkNumber[variable.Link]; link >= 0 {
			part.Variables = append(part.Variables, Variable{Domain: variable.Domain, Link: link})
			variables = append(variables, v)
		}
	}
	return part, slices.Clip(variables)
}

// copyLegs adds the legs of n for which isInPart is true to part, with their dimensions and maps, and returns by leg of n its number in
// part.
func (n *Network) copyLegs(part *Network, isInPart func(leg int) bool) (legNumber []int) {
	legNumber = make([]int, len(n.Dims))
	for leg, d := range n.Dims {
		if !isInPart(leg) {
			continue
		}
		legNumber[leg] = len(part.Dims)
		part.Dims = append(part.Dims, d)
		if n.Maps != nil {
			part.Maps = append(part.Maps, n.Maps[leg])
		}
	}
	return legNumber
}
