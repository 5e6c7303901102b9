package btn

// Index tables from legs to the tensors that have them.

// LegLink returns, per leg, the index of the link that has it. The network must be valid.
func (n *Network) LegLink() []int {
	table := make([]int, len(n.Dims))
	for j, link := range n.Links {
		for _, l := range link.Legs {
			table[l] = j
		}
	}
	return table
}

// LegCore returns, per leg, the index of the core that has it. The network must be valid.
func (n *Network) LegCore() []int {
	table := make([]int, len(n.Dims))
	for c, core := range n.Cores {
		for _, l := range core.Legs {
			table[l] = c
		}
	}
	return table
}
