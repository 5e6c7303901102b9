// Polishing the nodes of a Prony decomposition.

package tensor

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/linalg"
)

// polishSteps is the number of Gauss–Newton steps for nodes;
// from roots good to 1e-10 two reach rounding.
const polishSteps = 2

// polished moves nodes and weights together to the least squares fit of s: the roots of a
// recurrence that was found from nearly parallel rows lose digits that the values still have. Nodes
// at 0, ±1 and infinity stay where they are.
func polished(s []float64, nodes []node, weights []float64) ([]node, bool) {
	nodes = append([]node(nil), nodes...)
	weights = append([]float64(nil), weights...)
	n := len(s) - 1
	for range polishSteps {
		var moving []int
		for i, x := range nodes {
			if x.free() {
				moving = append(moving, i)
			}
		}

		if len(moving) == 0 || len(nodes)+len(moving) > len(s) {
			return nodes, true
		}

		columns := len(nodes) + len(moving)
		jacobian := make([]float64, len(s)*columns)
		gap := make([]float64, len(s))

		// The residual of s, and its derivatives by the weights and by the nodes that move.
		for c, want := range s {
			for i, x := range nodes {
				v := x.value(n, c)
				want -= weights[i] * v
				jacobian[c*columns+i] = v
			}
			for k, i := range moving {
				jacobian[c*columns+len(nodes)+k] = weights[i] * nodes[i].slope(n, c)
			}
			gap[c] = want
		}

		step, err := linalg.Solve(jacobian, len(s), columns, gap, 1)
		if err != nil {
			return nil, false
		}

		for i := range weights {
			weights[i] += step[i]
		}
		for k, i := range moving {
			nodes[i] = nodes[i].moved(step[len(nodes)+k])
		}
	}
	return nodes, true
}

// free reports whether a node is at none of the places that are exact.
func (n node) free() bool {
	x := math.Abs(n.a * n.b) // one of the two is 1
	return x != 0 && x != 1
}

// slope is the derivative of the node's value by its coordinate other than 1.
func (n node) slope(legs, c int) float64 {
	if n.a == 1 {
		return float64(c) * node{1, n.b}.value(legs-1, c-1)
	}
	return float64(legs-c) * node{n.a, 1}.value(legs-1, c)
}

// moved adds to the coordinate other than 1.
func (n node) moved(by float64) node {
	if n.a == 1 {
		return node{1, n.b + by}
	}
	return node{n.a + by, 1}
}
