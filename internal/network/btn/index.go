package btn

// The index table from legs to the links that have them.

// LinkOfLeg returns, for every leg, the number of the link that has it. The network must be valid.
func (n *Network) LinkOfLeg() []int {
	linkOf := make([]int, len(n.Dims))
	for j, link := range n.Links {
		for _, leg := range link.Legs {
			linkOf[leg] = j
		}
	}
	return linkOf
}
