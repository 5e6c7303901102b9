package circuit

// Joint marginals: some variables clamped, and one differentiated by.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Joint returns the shares of Z that the combinations of values of the variables in set have, row-major, the last variable fastest.
//
// All variables of the set but that of the largest domain are clamped: weights of 0 exclude all values of a variable but one. For each
// combination of their values, one pass up and one down give the shares of all values of the variable that is not clamped.
//
// Errors wrap ErrCircuit for a variable that does not exist or comes twice; otherwise they are those of Evaluate.
func (c *Circuit) Joint(ctx context.Context, w Weights, set []int) ([]scaled.Number, error) {
	if err := c.checkWeights(w); err != nil {
		return nil, err
	}
	cells, free := 1, -1 // free is the position in set of the variable that is not clamped
	for k, v := range set {
		if v < 0 || v >= len(c.domains) || slices.Contains(set[:k], v) {
			return nil, fmt.Errorf("%w: a joint marginal of the variables %v", ErrCircuit, set)
		}
		if isLargest := free < 0 || c.domains[v] > c.domains[set[free]]; isLargest {
			free = k
		}
		cells *= c.domains[v]
	}
	if free < 0 {
		return nil, errors.New("circuit: a joint marginal of no variables")
	}

	shares := make([]scaled.Number, cells)
	values := make([]int, len(set)) // values[free] stays 0
	for {
		if err := c.fillRow(ctx, w, set, values, free, shares); err != nil {
			return nil, err
		}
		if !c.advance(set, values, free) {
			break
		}
	}
	return shares, nil
}

// advance moves the values of the variables of a set to the next combination, the last variable fastest. The variable set[free] keeps its
// value. It returns false after the last combination.
func (c *Circuit) advance(set, values []int, free int) bool {
	for k := len(set) - 1; k >= 0; k-- {
		if k == free {
			continue
		}
		if values[k]++; values[k] < c.domains[set[k]] {
			return true
		}
		values[k] = 0
	}
	return false
}

// fillRow writes to shares the shares of Z of all values of variable set[free], with the other variables of the set clamped to values.
// shares is row-major over the variables of the set, the last one fastest.
func (c *Circuit) fillRow(ctx context.Context, w Weights, set, values []int, free int, shares []scaled.Number) error {
	clamped := slices.Clone(w) // with weights of 0 for the other values of the clamped variables
	for k, v := range set {
		for a := range c.domains[v] {
			if k != free && a != values[k] {
				clamped[c.FirstWeight(v)+a] = scaled.Number{}
			}
		}
	}
	p, err := c.passUpAndDown(ctx, clamped)
	if err != nil {
		return err
	}
	defer p.release()

	cell := 0 // index of values in shares, where values[free] is 0
	for k := range set {
		cell += values[k] * c.combinations(set[k+1:])
	}
	stride := c.combinations(set[free+1:])
	for a := range c.domains[set[free]] {
		leaf := c.FirstWeight(set[free]) + a
		shares[cell+a*stride] = p.values[leaf].times(p.down[leaf]).scaled() // w·∂Z/∂w
	}
	return nil
}

// combinations returns the number of combinations of values of some variables.
func (c *Circuit) combinations(variables []int) int {
	n := 1
	for _, v := range variables {
		n *= c.domains[v]
	}
	return n
}
