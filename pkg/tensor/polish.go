// Polishing the nodes of a Prony decomposition.

package tensor

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/linalg"
)

// polishSteps is the number of Gauss–Newton steps for nodes;
// from roots good to 1e-10 two reach rounding.
const polishSteps = 2

// polish returns the nodes (a_i, b_i) after polishSteps Gauss–Newton steps to the least squares fit s_c ≈ Σ_i weights_i a_i^{n−c} b_i^c, in
// which nodes and weights move together. Of a node one coordinate is 1, and only the other one moves. Nodes whose ratio b/a is 0, ±1 or
// infinite stay where they are. ok is false if a step cannot be solved for. Neither nodes nor weights are changed in place.
//
// It is for nodes that are roots of a recurrence: found from nearly parallel rows, they have lost digits that the values s still have.
func polish(s []float64, nodes []node, weights []float64) (polished []node, ok bool) {
	nodes = append([]node(nil), nodes...)
	weights = append([]float64(nil), weights...)
	for range polishSteps {
		var moving []int // the nodes that may move
		for i, x := range nodes {
			if !x.isSpecial() {
				moving = append(moving, i)
			}
		}

		columns := len(nodes) + len(moving) // a weight of each node, and the coordinate of each moving one
		isUnderdetermined := columns > len(s)
		if len(moving) == 0 || isUnderdetermined { // nothing moves, or the values do not say where
			return nodes, true
		}

		jacobian, residual := linearised(s, nodes, weights, moving)
		step, err := linalg.Solve(jacobian, len(s), columns, residual, 1)
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

// linearised returns the residual s_c − Σ_i weights_i a_i^{n−c} b_i^c of each value s_c, and the derivatives of the sum: a row for each
// value, with a column for each weight and then one for each moving node.
func linearised(s []float64, nodes []node, weights []float64, moving []int) (jacobian, residual []float64) {
	n := len(s) - 1
	columns := len(nodes) + len(moving)
	jacobian = make([]float64, len(s)*columns)
	residual = make([]float64, len(s))
	for c, value := range s {
		difference := value
		for i, x := range nodes {
			v := x.value(n, c)
			difference -= weights[i] * v
			jacobian[c*columns+i] = v
		}
		for k, i := range moving {
			jacobian[c*columns+len(nodes)+k] = weights[i] * nodes[i].derivative(n, c)
		}
		residual[c] = difference
	}
	return jacobian, residual
}

// isSpecial reports whether the ratio b/a of a node is 0, ±1 or infinite, which is then taken as exact.
func (n node) isSpecial() bool {
	x := math.Abs(n.a * n.b) // the size of the coordinate that is not 1
	return x == 0 || x == 1
}

// derivative returns the derivative of a^{legs−c} b^c by that of the coordinates a and b which is not 1.
func (n node) derivative(legs, c int) float64 {
	if n.a == 1 {
		return float64(c) * node{1, n.b}.value(legs-1, c-1)
	}
	return float64(legs-c) * node{n.a, 1}.value(legs-1, c)
}

// moved returns the node with step added to that of its coordinates which is not 1.
func (n node) moved(step float64) node {
	if n.a == 1 {
		return node{1, n.b + step}
	}
	return node{n.a + step, 1}
}
