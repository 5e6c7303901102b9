package lower

// The numbers of a network's cores, as people wrote them.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Numbers lists the parameters of every core of the model as float64, in the sequence of ParameterSizes. For a dense table it adds scope,
// shape and the mode that the rows are over, if it is a conditional probability table (rowMode). It adds the groups in which a core is
// linear, unless a number of the network is below 0 or beyond float64: then no core has groups. Linear time.
func Numbers(net *btn.Network) []btn.CoreNumbers {
	variableOf := make([]int, len(net.Dims)) // by leg
	for v, variable := range net.Variables {
		for _, leg := range net.Links[variable.Link].Legs {
			variableOf[leg] = v
		}
	}
	out, mayHaveGroups := make([]btn.CoreNumbers, len(net.Own())), true
	for c, core := range net.Own() {
		numbers, fits := coreNumbers(core, variableOf)
		out[c] = numbers
		if !fits || slices.ContainsFunc(numbers.Numbers, func(x float64) bool { return x < 0 }) {
			mayHaveGroups = false
		}
	}
	if !mayHaveGroups {
		for c := range out {
			out[c].Groups = nil
		}
	}
	return out
}

// coreNumbers returns the numbers of one core with their groups. variableOf has the variable of every leg. fits is false if a value of a
// symmetric tensor is beyond float64.
func coreNumbers(core btn.Core, variableOf []int) (n btn.CoreNumbers, fits bool) {
	switch t := core.T.(type) {
	case *tensor.Dense:
		n.Numbers = slices.Clone(t.Data)
		n.Shape = slices.Clone(t.Shape)
		for _, leg := range core.Legs {
			n.Scope = append(n.Scope, variableOf[leg])
		}
		n.Row = 1 + rowMode(t)
		n.Groups = [][]int{{len(n.Numbers)}}
	case *tensor.CP:
		n.Numbers = slices.Concat(t.Weights, slices.Concat(t.Vectors...))
		n.Groups = [][]int{append([]int{len(t.Weights)}, sizesOfVectors(t.Vectors)...)}
	case *tensor.Symmetric:
		n.Numbers = asFloats(t.Values)
		n.Groups = [][]int{{len(n.Numbers)}}
		return n, !isBeyondFloats(t.Values, n.Numbers)
	case *tensor.SymmetryCP:
		fits = true
		for _, term := range t.Terms {
			values := asFloats(term.S)
			fits = fits && !isBeyondFloats(term.S, values)
			n.Numbers = append(append(n.Numbers, term.Alpha), values...)
			n.Numbers = append(n.Numbers, slices.Concat(term.R...)...)
			n.Groups = append(n.Groups, append([]int{1, len(values)}, sizesOfVectors(term.R)...))
		}
		return n, fits
	}
	return n, true
}

// asFloats returns the values of v as float64; values beyond float64 become 0 or infinite.
func asFloats(v scaled.Vector) []float64 {
	var values []float64
	for k := range v.Len() {
		values = append(values, v.At(k).Float64())
	}
	return values
}

// isBeyondFloats reports whether a value of v that is not 0 is 0 or infinite among floats, which are v as float64.
func isBeyondFloats(v scaled.Vector, floats []float64) bool {
	for k, x := range floats {
		if x == 0 && !v.At(k).IsZero() || math.IsInf(x, 0) {
			return true
		}
	}
	return false
}

// sizesOfVectors returns the lengths of the vectors that are not nil. (A nil vector is the identity or ones, and has no parameters.)
func sizesOfVectors(vectors [][]float64) (sizes []int) {
	for _, v := range vectors {
		if v != nil {
			sizes = append(sizes, len(v))
		}
	}
	return sizes
}

// A row of a conditional probability table may miss 1 by rowSlack, or by rowSlackPerEntry times its length if that is more.
const (
	rowSlack         = 1e-5
	rowSlackPerEntry = 1e-6
)

// rowMode returns the mode that the rows of a conditional probability table are over: the last mode such that every sum of t over that mode
// is 1. It returns −1 if no mode is such or if an entry is below 0.
func rowMode(t *tensor.Dense) int {
	if slices.ContainsFunc(t.Data, func(x float64) bool { return x < 0 }) {
		return -1
	}
	stride := 1 // the entries per step of mode
	for mode := len(t.Shape) - 1; mode >= 0; mode-- {
		d := t.Shape[mode]
		sums := make([]float64, len(t.Data)/d)
		for k, x := range t.Data {
			sums[k/(d*stride)*stride+k%stride] += x // k without its coordinate of mode
		}
		slack := max(rowSlack, rowSlackPerEntry*float64(d))
		if !slices.ContainsFunc(sums, func(sum float64) bool { return math.Abs(sum-1) > slack }) {
			return mode
		}
		stride *= d
	}
	return -1
}
