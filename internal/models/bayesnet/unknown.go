package bayesnet

// Tables whose numbers are unknown: their structure is in the file, and their numbers are to be learned.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// parseEntry returns a word as an entry of a table: a number, or NaN if it is -1 or ?, which stand for an unknown one.
func (s *source) parseEntry(offset int, word, place string) float64 {
	if word == "?" || word == "-1" || word == "-1.0" {
		s.hasUnknown = true
		return math.NaN()
	}
	return s.parseNumber(offset, word, place)
}

// markUnknown makes all entries of a table unknown.
func (n *network) markUnknown(t *tensor.Dense) {
	n.hasUnknown = true
	for k := range t.Data {
		t.Data[k] = math.NaN()
	}
}

// completeUnknown makes the unknown rows of tables uniform and calls unknown for their nodes. It is an error if unknown
// is nil, or if a row has known and unknown entries.
func (n *network) completeUnknown() {
	for _, f := range n.m.Factors {
		t, isDense := f.Table.(*tensor.Dense)
		if !isDense || n.err != nil || !slices.ContainsFunc(t.Data, math.IsNaN) {
			continue
		}
		child := f.Scope[len(f.Scope)-1]
		if n.unknown == nil {
			n.fail(n.offsets[child], uai.ErrModel, "the table of %s is unknown: btn fit learns it", n.nameOf(child))
			return
		}
		for row := range slices.Chunk(t.Data, n.m.Domains[child]) {
			n.completeRow(child, row)
		}
		n.unknown(n.m.Names[child])
	}
}

// completeRow makes a row of the child's table uniform if its entries are unknown. It is an error if only some are.
func (n *network) completeRow(child int, row []float64) {
	unknown := 0
	for _, p := range row {
		if math.IsNaN(p) {
			unknown++
		}
	}
	if unknown == 0 {
		return
	}
	if unknown != len(row) {
		n.fail(n.offsets[child], uai.ErrModel, "node %s: a row has %d unknown entries of %d: all are to be known, or none",
			n.nameOf(child), unknown, len(row))
	}
	for x := range row {
		row[x] = 1 / float64(len(row))
	}
}
