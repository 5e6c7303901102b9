package circuit

// Joint marginals: some variables clamped, and one differentiated by.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Joint returns the shares of Z that all values of some different variables together have, row-major, the last one fastest. The
// variable of the largest domain has its values from the pass down, the others are clamped: one pass up and one
// down for each of their cells. Errors wrap ErrCircuit for a variable that is not there, else as of Evaluate.
func (c *Circuit) Joint(ctx context.Context, w Weights, set []int) ([]scaled.Number, error) {
	if err := c.fits(w); err != nil {
		return nil, err
	}
	cells, by := 1, -1
	for k, v := range set {
		if v < 0 || v >= len(c.domains) || slices.Contains(set[:k], v) {
			return nil, fmt.Errorf("%w: a joint marginal of the variables %v", ErrCircuit, set)
		}
		if by < 0 || c.domains[v] > c.domains[set[by]] {
			by = k
		}
		cells *= c.domains[v]
	}
	if by < 0 {
		return nil, errors.New("circuit: a joint marginal of no variables")
	}

	terms := make([]scaled.Number, cells)
	at := make([]int, len(set)) // the values; at[by] stays 0
	for {
		if err := c.row(ctx, w, set, at, by, terms); err != nil {
			return nil, err
		}
		if !c.next(set, at, by) {
			break
		}
	}
	return terms, nil
}

// next moves the values of all variables of a set but one on, the last one first. It returns false after the last cell.
func (c *Circuit) next(set, at []int, but int) bool {
	for k := len(set) - 1; k >= 0; k-- {
		if k == but {
			continue
		}
		if at[k]++; at[k] < c.domains[set[k]] {
			return true
		}
		at[k] = 0
	}
	return false
}

// row computes the terms of all values of variable set[by], the others at the given ones.
func (c *Circuit) row(ctx context.Context, w Weights, set, at []int, by int, terms []scaled.Number) error {
	clamped := slices.Clone(w)
	for k, v := range set {
		for a := range c.domains[v] {
			if k != by && a != at[k] {
				clamped[c.Offset(v)+a] = scaled.Number{}
			}
		}
	}
	p, err := c.upAndDown(ctx, clamped)
	if err != nil {
		return err
	}
	defer p.done()

	cell, stride := 0, 1
	for k := len(set) - 1; k >= 0; k-- {
		cell += at[k] * c.stride(set[k+1:])
		if k == by {
			stride = c.stride(set[k+1:])
		}
	}
	for a := range c.domains[set[by]] {
		leaf := c.Offset(set[by]) + a
		terms[cell+a*stride] = p.values[leaf].times(p.down[leaf]).scaled()
	}
	return nil
}

// stride is the number of cells of some variables.
func (c *Circuit) stride(set []int) int {
	n := 1
	for _, v := range set {
		n *= c.domains[v]
	}
	return n
}
