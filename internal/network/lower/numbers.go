package lower

// The numbers of a network's cores, as people wrote them.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Numbers lists the parameters of every core of the model, in the sequence of ParameterSizes, as float64, and the variable of a conditional
// table. The rows of a conditional probability table are over its last mode where the sums over that are 1, else over the last one
// where they are. Linear time.
func Numbers(net *btn.Network) []btn.CoreNumbers {
	variable := make([]int, len(net.Dims)) // by leg
	for v, of := range net.Variables {
		for _, leg := range net.Links[of.Link].Legs {
			variable[leg] = v
		}
	}
	out, unsure := make([]btn.CoreNumbers, len(net.Own())), false
	for c, core := range net.Own() {
		n := &out[c]
		switch t := core.T.(type) {
		case *tensor.Dense:
			n.Numbers = slices.Clone(t.Data)
			n.Shape = slices.Clone(t.Shape)
			for _, leg := range core.Legs {
				n.Scope = append(n.Scope, variable[leg])
			}
			n.Row = 1 + rowMode(t)
			n.Groups = [][]int{{len(n.Numbers)}}
		case *tensor.CP:
			n.Numbers = slices.Concat(t.Weights, slices.Concat(t.Vectors...))
			n.Groups = [][]int{append([]int{len(t.Weights)}, sizes(t.Vectors)...)}
		case *tensor.Symmetric:
			for k := range t.Values.Len() {
				n.Numbers = append(n.Numbers, t.Values.At(k).Float64())
			}
			n.Groups = [][]int{{len(n.Numbers)}}
			unsure = unsure || beyondFloats(t.Values, n.Numbers)
		case *tensor.SymmetryCP:
			for _, term := range t.Terms {
				n.Numbers = append(n.Numbers, term.Alpha)
				for k := range term.S.Len() {
					n.Numbers = append(n.Numbers, term.S.At(k).Float64())
				}
				unsure = unsure || beyondFloats(term.S, n.Numbers[len(n.Numbers)-term.S.Len():])
				n.Numbers = append(n.Numbers, slices.Concat(term.R...)...)
				n.Groups = append(n.Groups, append([]int{1, term.S.Len()}, sizes(term.R)...))
			}
		}
		unsure = unsure || slices.ContainsFunc(n.Numbers, func(x float64) bool { return x < 0 })
	}
	if unsure {
		for c := range out {
			out[c].Groups = nil
		}
	}
	return out
}

// beyondFloats reports whether a value that is not 0 is 0 or infinite as a float64.
func beyondFloats(v scaled.Vector, floats []float64) bool {
	for k, x := range floats {
		if x == 0 && !v.At(k).IsZero() || math.IsInf(x, 0) {
			return true
		}
	}
	return false
}

// sizes are the lengths of the lists that are there.
func sizes(lists [][]float64) (out []int) {
	for _, l := range lists {
		if l != nil {
			out = append(out, len(l))
		}
	}
	return out
}

// A row of a conditional probability table may miss 1 by this, or by rowSlackEach for every entry where that is more.
const (
	rowSlack     = 1e-5
	rowSlackEach = 1e-6
)

// rowMode is the last mode over which all sums are 1, of entries that are at least 0; −1 where there is none.
func rowMode(t *tensor.Dense) int {
	if slices.ContainsFunc(t.Data, func(x float64) bool { return x < 0 }) {
		return -1
	}
	stride := 1
	for mode := len(t.Shape) - 1; mode >= 0; mode-- {
		d := t.Shape[mode]
		sums := make([]float64, len(t.Data)/d)
		for k, x := range t.Data {
			sums[k/(d*stride)*stride+k%stride] += x
		}
		slack := max(rowSlack, rowSlackEach*float64(d))
		if !slices.ContainsFunc(sums, func(s float64) bool { return math.Abs(s-1) > slack }) {
			return mode
		}
		stride *= d
	}
	return -1
}
