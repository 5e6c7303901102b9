package btn

// The index table from legs to the links that have them.

// LegLink returns, for every leg, the number of the link that has it. The network must be valid.
func (n *Network) LegLink() []int {
	linkOf := make([]int, len(n.Dims))
	for j, link := range n.Links {
		for _, leg := range link.Legs {
			linkOf[leg] = j
		}
	}
	return linkOf
}
