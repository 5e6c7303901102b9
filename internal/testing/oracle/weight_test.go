package oracle

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestWeightsAddUp: e^LnWeight over all assignments adds up to Sum's value for random expressions, and 0 is as frequent among the entries
// as asked for.
func TestWeightsAddUp(t *testing.T) {
	entries, zeros := 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		e := &sumproduct.Expression{Dims: []int{2, 3, 1, 2}, Scale: scaled.FromFloat(math.Exp(9 * r.NormFloat64()))}
		e.Tables = RandomTables(r, e.Dims, 6, 2, 0.1)
		got := 0.0
		Each(e.Dims, func(x []int) { got += math.Exp(LnWeight(e, x)) })
		if want, _, _ := Sum(e, 0).Float64(); !(math.Abs(got-want) <= 1e-12*want) {
			t.Errorf("seed %d: %v, want %v", seed, got, want)
		}
		for _, table := range e.Tables {
			for _, x := range table.Data {
				entries++
				if x == 0 {
					zeros++
				} else if a := math.Abs(math.Log(x)); a > 2 {
					t.Errorf("seed %d: an entry %v", seed, x)
				}
			}
		}
	}
	if share := float64(zeros) / float64(entries); math.Abs(share-0.1) > 5*math.Sqrt(0.09/float64(entries)) {
		t.Errorf("%v of %d entries are 0", share, entries)
	}
}
