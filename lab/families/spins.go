package families

// Models of spins, read back from their tables.

import (
	"math"
	"math/bits"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// product is a factor exp(J Π x_i) of spins x = ±1, value 0 being −1.
type product struct {
	scope    []int
	coupling float64
}

// spinModel is a model of such factors, up to a constant.
type spinModel struct {
	spins    int
	constant float64 // ln, nats
	fields   []float64
	products []product // of two spins and more
}

// readSpins reads a model whose every factor is a constant times exp(J Π x_i). Errors: fault.BadInput for any other factor.
func readSpins(m *factorgraph.Model) (*spinModel, error) {
	s := &spinModel{spins: len(m.Domains), fields: make([]float64, len(m.Domains))}
	for k, f := range m.Factors {
		data := f.Table.(*tensor.Dense).Data
		up := len(data) - 1 // all spins are +1
		constant, coupling := (math.Log(data[up])+math.Log(data[up-1]))/2, (math.Log(data[up])-math.Log(data[up-1]))/2
		for x, entry := range data {
			sign := 1 - 2*float64(bits.OnesCount(uint(x^up))%2)
			if !(math.Abs(math.Log(entry)-constant-sign*coupling) < 1e-9) {
				return nil, fault.New(fault.BadInput, "families: factor %d is no product of spins", k)
			}
		}
		s.constant += constant
		if len(f.Scope) == 1 {
			s.fields[f.Scope[0]] += coupling
		} else {
			s.products = append(s.products, product{f.Scope, coupling})
		}
	}
	return s, nil
}

// hasFields reports whether some spin has a field.
func (s *spinModel) hasFields() bool {
	return slices.ContainsFunc(s.fields, func(h float64) bool { return h != 0 })
}

// grid has the couplings of spins on a grid with a boundary, numbered row by row, with their next ones to the right and below.
type grid struct {
	width        int
	right, below []float64
}

// grid reads the couplings as those of a grid, whose width is the largest distance of a pair. Errors: fault.BadInput for any other graph.
func (s *spinModel) grid() (*grid, error) {
	g := &grid{width: 1, right: make([]float64, s.spins), below: make([]float64, s.spins)}
	for _, p := range s.products {
		g.width = max(g.width, p.scope[1]-p.scope[0])
	}
	for _, p := range s.products {
		spin, distance := p.scope[0], p.scope[1]-p.scope[0]
		switch {
		case len(p.scope) == 2 && distance == g.width:
			g.below[spin] += p.coupling
		case len(p.scope) == 2 && distance == 1 && spin%g.width < g.width-1:
			g.right[spin] += p.coupling
		default:
			return nil, fault.New(fault.BadInput, "families: spins %v are no neighbours on a grid of %d columns", p.scope, g.width)
		}
	}
	return g, nil
}

// lnCosh is ln cosh x without overflow.
func lnCosh(x float64) float64 {
	x = math.Abs(x)
	return x + math.Log1p(math.Exp(-2*x)) - math.Ln2
}
