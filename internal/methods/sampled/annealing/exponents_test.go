package annealing

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// TestEntriesWithExponents: chains walk over tables whose entries have exponents as over the same numbers without.
func TestEntriesWithExponents(t *testing.T) {
	with := newLogTable(sumproduct.Table{Scope: []int{0, 1}, Data: []float64{1, 1.5, 0, 1}, Exp: []int64{-2000, 3, 9, 0}})
	for k, want := range []float64{-2000 * math.Ln2, math.Log(12), -2000*math.Ln2 - hardness, 0} {
		if math.Abs(with.ln[k]-want) > 1e-9 || with.isZero[k] != (k == 2) {
			t.Errorf("entry %d has ln %v, zero %v, want ln %v", k, with.ln[k], with.isZero[k], want)
		}
	}
}
