package lower

// Absorbed maps: matrices of CP tensors applied to the tables that they meet.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/linalg"
)

// applyMaps applies the maps of every table to its data, so that the zeros of the original tensors are there again.
func (l *layout) applyMaps() {
	for _, t := range l.tables {
		if t.maps != nil && !t.isAbsorbed {
			t.multiplyByMaps()
		}
	}
}

// multiplyByMaps replaces the data by the product with the maps along all modes. Entries whose terms cancel to within rounding become 0: a
// map and its inverse leave such dust where the model has zeros. The rounding of an entry is bounded by the same product over absolute
// values.
func (t *rawTable) multiplyByMaps() {
	const dust = 16 * 0x1p-52 // relative to the bound
	data := t.data
	bound := linalg.Abs(t.data)
	t.dims = append([]int(nil), t.dims...)

	inner := 1 // the entries per step of mode k
	for k := len(t.dims) - 1; k >= 0; k-- {
		if m := t.maps[k]; m != nil {
			data = modeProduct(data, m.data, m.dims[0], t.dims[k], inner)
			bound = modeProduct(bound, linalg.Abs(m.data), m.dims[0], t.dims[k], inner)
			t.dims[k] = m.dims[0]
		}
		inner *= t.dims[k]
	}

	for i, x := range data {
		if math.Abs(x) <= dust*bound[i] {
			data[i] = 0
		}
	}

	t.data = data
	t.maps = nil
	t.rounded = true
}

// modeProduct applies a rows × n matrix along an axis of data. The axis has length n, and its faster axes have inner entries together:
//
//	out[o, r, i] = Σ_x m[r, x] · data[o, x, i]
func modeProduct(data, m []float64, rows, n, inner int) []float64 {
	outer := len(data) / (n * inner)
	out := make([]float64, outer*rows*inner)
	for o := range outer {
		block := data[o*n*inner : (o+1)*n*inner]
		for r := range rows {
			sum := out[(o*rows+r)*inner:][:inner]
			for x, coefficient := range m[r*n : (r+1)*n] {
				for i, v := range block[x*inner : (x+1)*inner] {
					sum[i] += float64(coefficient * v)
				}
			}
		}
	}
	return out
}
