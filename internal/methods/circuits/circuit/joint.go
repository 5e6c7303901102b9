package circuit

// Joint marginals: some variables clamped, and one differentiated by.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Joint returns the shares of Z that all combinations of values of some different variables have, row-major, the last variable fastest. The
// variable of the largest domain has its values from the pass down, and the others are clamped to their values: one pass up and one down
// for each combination of these. Errors wrap ErrCircuit for a variable that does not exist, otherwise as of Evaluate.
func (c *Circuit) Joint(ctx context.Context, w Weights, set []int) ([]scaled.Number, error) {
	if err := c.checkWeights(w); err != nil {
		return nil, err
	}
	cells, free := 1, -1 // free is the position in set of the variable that is not clamped
	for k, v := range set {
		if v < 0 || v >= len(c.domains) || slices.Contains(set[:k], v) {
			return nil, fmt.Errorf("%w: a joint marginal of the variables %v", ErrCircuit, set)
		}
		if free < 0 || c.domains[v] > c.domains[set[free]] {
			free = k
		}
		cells *= c.domains[v]
	}
	if free < 0 {
		return nil, errors.New("circuit: a joint marginal of no variables")
	}

	terms := make([]scaled.Number, cells)
	values := make([]int, len(set)) // values[free] stays 0
	for {
		if err := c.fillRow(ctx, w, set, values, free, terms); err != nil {
			return nil, err
		}
		if !c.advance(set, values, free) {
			break
		}
	}
	return terms, nil
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

// fillRow computes the terms of all values of variable set[free], with the other variables of the set clamped to values.
func (c *Circuit) fillRow(ctx context.Context, w Weights, set, values []int, free int, terms []scaled.Number) error {
	clamped := slices.Clone(w)
	for k, v := range set {
		for a := range c.domains[v] {
			if k != free && a != values[k] {
				clamped[c.Offset(v)+a] = scaled.Number{}
			}
		}
	}
	p, err := c.passUpAndDown(ctx, clamped)
	if err != nil {
		return err
	}
	defer p.release()

	cell := 0 // of the values, with 0 for set[free]
	for k := range set {
		cell += values[k] * c.cells(set[k+1:])
	}
	stride := c.cells(set[free+1:])
	for a := range c.domains[set[free]] {
		leaf := c.Offset(set[free]) + a
		terms[cell+a*stride] = p.values[leaf].times(p.down[leaf]).scaled()
	}
	return nil
}

// cells returns the number of combinations of values of some variables.
func (c *Circuit) cells(set []int) int {
	n := 1
	for _, v := range set {
		n *= c.domains[v]
	}
	return n
}
