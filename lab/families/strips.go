package families

// Truths of strips: transfer matrices, spin by spin.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// transfer is ln Z of spins on a grid with a boundary and fields. Spins enter one after the other; the weights are those of all states of
// the last spins, as many as a row has. It takes 2^(width+3) bytes. There are no marginals. Errors: fault.BadInput for other graphs,
// fault.OverBudget for more than 26 columns, and the context's.
func transfer(ctx context.Context, m *factorgraph.Model) (float64, [][]float64, error) {
	s, err := readSpins(m)
	if err != nil {
		return 0, nil, err
	}
	g, err := s.grid()
	if err != nil {
		return 0, nil, err
	}
	if g.width > 26 {
		return 0, nil, fault.New(fault.OverBudget, "families: a strip of %d columns", g.width)
	}
	weight, lnZ := make([]float64, 1<<g.width), s.constant
	weight[0] = 1  // spins above the first row are −1, and uncoupled
	largest := 1.0 // of the step before: the next one divides by it
	for spin := range s.spins {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		column := spin % g.width
		next := entering{bit: 1 << column, hasAbove: spin >= g.width, pull: [2]float64{s.fields[spin], s.fields[spin]}}
		if next.hasAbove {
			next.above = g.below[spin-g.width]
		}
		if column > 0 {
			next.leftBit = next.bit >> 1
			next.pull[0] -= g.right[spin-1]
			next.pull[1] += g.right[spin-1]
		}
		lnZ += math.Log(largest)
		largest = next.enter(weight, 1/largest)
	}
	total := 0.0
	for _, w := range weight {
		total += w
	}
	return lnZ + math.Log(total), nil, nil
}

// entering is a spin that takes the place of the one above it.
type entering struct {
	bit, leftBit int        // of the spin and of the one on its left in a state; 0: there is none
	hasAbove     bool       // the spin above is summed out; in the first row there is none, and its bit is 0
	above        float64    // coupling with it
	pull         [2]float64 // towards +1, by the value of the left spin: the field and the coupling with that spin
}

// enter gives the states their weights with the spin, all times scale, and returns the largest.
func (e entering) enter(weight []float64, scale float64) (largest float64) {
	equal, opposite := math.Exp(e.above), math.Exp(-e.above)
	var down, up [2]float64
	for value, pull := range e.pull {
		down[value], up[value] = scale*math.Exp(-pull), scale*math.Exp(pull)
	}
	for x := range weight {
		if x&e.bit != 0 {
			continue
		}
		minus, plus := weight[x], weight[x]
		if e.hasAbove {
			plus = weight[x|e.bit]
			minus, plus = minus*equal+plus*opposite, minus*opposite+plus*equal
		}
		neighbour := 0 // value of the spin on the left
		if x&e.leftBit != 0 {
			neighbour = 1
		}
		weight[x], weight[x|e.bit] = minus*down[neighbour], plus*up[neighbour]
		largest = max(largest, weight[x], weight[x|e.bit])
	}
	return largest
}
