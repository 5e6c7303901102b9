package bayesnet

// Tables whose numbers are unknown: their structure is in the file, and their numbers are to be learned.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// entry is a word of the text as an entry of a table: a number, or NaN if it is -1 or ?, which stand for one that is unknown.
func (s *source) entry(at int, word, where string) float64 {
	if word == "?" || word == "-1" || word == "-1.0" {
		s.hasUnknown = true
		return math.NaN()
	}
	return s.number(at, word, where)
}

// isUnknown notes that a table has no numbers.
func (n *network) isUnknown(t *tensor.Dense) {
	n.hasUnknown = true
	for k := range t.Data {
		t.Data[k] = math.NaN()
	}
}

// complete makes unknown rows of tables uniform, and tells their nodes. It is an error if nobody hears that, or if a row is half known.
func (n *network) complete() {
	for _, f := range n.m.Factors {
		t, isDense := f.Table.(*tensor.Dense)
		if !isDense || n.err != nil || !slices.ContainsFunc(t.Data, math.IsNaN) {
			continue
		}
		child := f.Scope[len(f.Scope)-1]
		if n.unknown == nil {
			n.fail(n.places[child], uai.ErrModel, "the table of %s is unknown: btn fit learns it", n.called(child))
			return
		}
		for row := range slices.Chunk(t.Data, n.m.Domains[child]) {
			n.completeRow(child, row)
		}
		n.unknown(n.m.Names[child])
	}
}

// completeRow makes a row of a table uniform if it is unknown.
func (n *network) completeRow(child int, row []float64) {
	unknown := 0
	for _, p := range row {
		if math.IsNaN(p) {
			unknown++
		}
	}
	if unknown != 0 && unknown != len(row) {
		n.fail(n.places[child], uai.ErrModel, "node %s: a row has %d unknown entries of %d: all are to be known, or none",
			n.called(child), unknown, len(row))
	}
	for x := range row {
		if unknown != 0 {
			row[x] = 1 / float64(len(row))
		}
	}
}
