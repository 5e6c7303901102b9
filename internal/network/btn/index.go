package btn

// The index table from legs to the links that have them.

// LegLink returns, for every leg, the index of the link that has it. The network must be valid.
func (n *Network) LegLink() []int {
	table := make([]int, len(n.Dims))
	for j, link := range n.Links {
		for _, l := range link.Legs {
			table[l] = j
		}
	}
	return table
}
