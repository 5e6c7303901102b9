package lower

// The numbers of a network's cores, as people wrote them.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Numbers lists the parameters of every core of the model as float64, in the sequence of ParameterSizes. For a dense table it adds scope
// and shape, and, if the table is a conditional probability table, the mode that its rows are over (rowMode). Groups of a core's
// parameters in which the core is linear are listed only if every parameter of every core is at least 0 and within float64. Linear time.
func Numbers(net *btn.Network) []btn.CoreNumbers {
	variableOf := make([]int, len(net.Dims)) // by leg
	for v, variable := range net.Variables {
		for _, leg := range net.Links[variable.Link].Legs {
			variableOf[leg] = v
		}
	}
	numbers, mayHaveGroups := make([]btn.CoreNumbers, len(net.ModelCores())), true
	for c, core := range net.ModelCores() {
		parameters, fits := coreNumbers(core, variableOf) // fits: all are within float64
		numbers[c] = parameters
		hasNegative := slices.ContainsFunc(parameters.Numbers, func(x float64) bool { return x < 0 })
		if !fits || hasNegative {
			mayHaveGroups = false
		}
	}
	if !mayHaveGroups {
		for c := range numbers {
			numbers[c].Groups = nil
		}
	}
	return numbers
}

// coreNumbers returns the parameters of one core and their groups: for each term of the core, the sizes of groups of consecutive
// parameters, in each of which the core is linear. In CP form, for example, the weights are one group, and the vectors on each leg are
// another. variableOf has the variable of every leg. fits is false if a value of a symmetric tensor is beyond float64.
func coreNumbers(core btn.Core, variableOf []int) (n btn.CoreNumbers, fits bool) {
	switch t := core.T.(type) {
	case *tensor.Dense:
		n.Numbers = slices.Clone(t.Data)
		n.Shape = slices.Clone(t.Shape)
		for _, leg := range core.Legs {
			n.Scope = append(n.Scope, variableOf[leg])
		}
		n.Row = 1 + rowMode(t) // 0 if t is no conditional probability table (rowMode is −1)
		n.Groups = [][]int{{len(n.Numbers)}}
	case *tensor.CP:
		n.Numbers = slices.Concat(t.Weights, slices.Concat(t.Vectors...))
		n.Groups = [][]int{append([]int{len(t.Weights)}, vectorSizes(t.Vectors)...)}
	case *tensor.Symmetric:
		n.Numbers = toFloat64(t.Values)
		n.Groups = [][]int{{len(n.Numbers)}}
		return n, !hasValueBeyondFloat64(t.Values, n.Numbers)
	case *tensor.SymmetryCP:
		fits = true
		for _, term := range t.Terms {
			values := toFloat64(term.S)
			fits = fits && !hasValueBeyondFloat64(term.S, values)
			n.Numbers = append(append(n.Numbers, term.Alpha), values...)
			n.Numbers = append(n.Numbers, slices.Concat(term.R...)...)
			n.Groups = append(n.Groups, append([]int{1, len(values)}, vectorSizes(term.R)...))
		}
		return n, fits
	}
	return n, true
}

// toFloat64 returns the values of v as float64. Values beyond float64 become 0 or infinite.
func toFloat64(v scaled.Vector) []float64 {
	var values []float64
	for k := range v.Len() {
		values = append(values, v.At(k).Float64())
	}
	return values
}

// hasValueBeyondFloat64 reports whether some value of v is beyond float64: it is not 0, but 0 or infinite in floats, the values as float64.
func hasValueBeyondFloat64(v scaled.Vector, floats []float64) bool {
	for k, x := range floats {
		if x == 0 && !v.At(k).IsZero() || math.IsInf(x, 0) {
			return true
		}
	}
	return false
}

// vectorSizes returns the lengths of the vectors that are not nil. (A nil vector is the identity or ones, and has no parameters.)
func vectorSizes(vectors [][]float64) (sizes []int) {
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

// rowMode returns the mode of the child in a conditional probability table t: the last mode such that every sum of t over that mode is 1,
// within a small slack. It returns −1 if there is no such mode or if an entry is below 0.
func rowMode(t *tensor.Dense) int {
	if slices.ContainsFunc(t.Data, func(x float64) bool { return x < 0 }) {
		return -1
	}
	stride := 1 // of mode in the data
	for mode := len(t.Shape) - 1; mode >= 0; mode-- {
		d := t.Shape[mode]
		slack := max(rowSlack, rowSlackPerEntry*float64(d))
		areAllOne := !slices.ContainsFunc(sumsOver(t.Data, d, stride), func(sum float64) bool { return math.Abs(sum-1) > slack })
		if areAllOne {
			return mode
		}
		stride *= d
	}
	return -1
}

// sumsOver returns the sums of a table over one mode, which has d values and the given stride in the data.
func sumsOver(data []float64, d, stride int) []float64 {
	sums := make([]float64, 0, len(data)/d)
	for block := 0; block < len(data); block += d * stride { // the entries at one combination of values of the modes before
		for inner := range stride {
			sum := 0.0
			for x := range d {
				sum += data[block+x*stride+inner]
			}
			sums = append(sums, sum)
		}
	}
	return sums
}
