package lower

// Absorbed maps: matrices of CP tensors applied to the tables that they meet.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/linalg"
)

// applyMaps multiplies the entries of every table by the matrices that are to be applied along its modes. So the zeros of the original
// tensors are there again.
func (l *layout) applyMaps() {
	for _, t := range l.tables {
		if t.pendingMaps != nil && !t.isAbsorbed {
			t.multiplyByMaps()
		}
	}
}

// multiplyByMaps replaces the entries of t by their product with the maps along all modes (pendingMaps). Entries whose terms cancel to
// within rounding become 0: where the model has zeros, a map and its inverse leave such dust. The rounding of an entry is bounded by the
// same product over absolute values, times dust.
func (t *rawTable) multiplyByMaps() {
	const dust = 16 * 0x1p-52 // relative to the bound: some roundings in units of 2^-52, chosen
	data := t.data
	bound := linalg.Abs(t.data)
	t.dims = append([]int(nil), t.dims...)

	stride := 1 // of mode k in data
	for k := len(t.dims) - 1; k >= 0; k-- {
		if m := t.pendingMaps[k]; m != nil {
			data = modeProduct(data, m.data, m.dims[0], t.dims[k], stride)
			bound = modeProduct(bound, linalg.Abs(m.data), m.dims[0], t.dims[k], stride)
			t.dims[k] = m.dims[0]
		}
		stride *= t.dims[k]
	}

	for i, x := range data {
		if math.Abs(x) <= dust*bound[i] {
			data[i] = 0
		}
	}

	t.data = data
	t.pendingMaps = nil
	t.rounded = true
}

// modeProduct multiplies a table by a matrix m of rows × n entries along one axis. With data over (outer, x, inner), where x has n values
// and inner has innerSize,
//
//	product[outer, r, inner] = Σ_x m[r, x] · data[outer, x, inner]
func modeProduct(data, m []float64, rows, n, innerSize int) []float64 {
	outerSize := len(data) / (n * innerSize)
	product := make([]float64, outerSize*rows*innerSize)
	for o := range outerSize {
		block := data[o*n*innerSize : (o+1)*n*innerSize] // over (x, inner)
		for r := range rows {
			sums := product[(o*rows+r)*innerSize:][:innerSize]
			for x, coefficient := range m[r*n : (r+1)*n] {
				for inner, v := range block[x*innerSize : (x+1)*innerSize] {
					sums[inner] += float64(coefficient * v)
				}
			}
		}
	}
	return product
}
