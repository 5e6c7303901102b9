package bp_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestAboveHolds, by enumeration, after few updates and after many; without zeros it says something of every model.
func TestAboveHolds(t *testing.T) {
	said := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		zeros := 0.15 * float64(seed%3)
		e := loopy(rng, 7, 9, zeros)
		if seed%4 == 0 {
			e = ising(rng, 3, 4, 2, false)
			zeros = 0
		}
		want := oracle.Ln(oracle.Sum(e, 0).Z)
		for _, updates := range []int64{1, 0} {
			above := run(t, e, bp.Options{Updates: updates}).UpperBound()
			if !(above >= want) || zeros == 0 && math.IsInf(above, 0) {
				t.Errorf("seed %d, %d updates: %v, ln Z %v", seed, updates, above, want)
			}
			if zeros > 0 && !math.IsInf(above, 0) {
				said++
			}
		}
	}
	if said < 100 {
		t.Errorf("with zeros it says something %d times", said)
	}
}

// TestAboveSaysWhatMessagesKnow: nothing is lost where no table has two indices, little where couplings are weak and fields strong, and
// nothing is said where entries are below 0.
func TestAboveSaysWhatMessagesKnow(t *testing.T) {
	fields := &sumproduct.Expression{Scale: scaled.One, Dims: []int{2, 3, 2}, Tables: []sumproduct.Table{
		{Scope: []int{0}, Data: []float64{1, 3}}, {Scope: []int{0}, Data: []float64{2, 1}}, {Scope: []int{1}, Data: []float64{1, 1, 5}},
	}}
	if got, want := run(t, fields, bp.Options{}).UpperBound(), math.Log(5*7*2); math.Abs(got-want) > 1e-10 {
		t.Errorf("independent indices: %v, ln Z %v", got, want)
	}
	c, h := math.Exp(0.5), math.Exp(3)
	pair := sumproduct.Table{Scope: []int{0, 1}, Data: []float64{c, 1 / c, 1 / c, c}}
	coupled := &sumproduct.Expression{Scale: scaled.One, Dims: []int{2, 2}, Tables: []sumproduct.Table{
		pair, {Scope: []int{0}, Data: []float64{h, 1 / h}}, {Scope: []int{1}, Data: []float64{1 / h, h}},
	}}
	want, loosely := oracle.Ln(oracle.Sum(coupled, 0).Z), 0.5+2*math.Log(h+1/h)
	if got := run(t, coupled, bp.Options{}).UpperBound(); got-want > 0.1*(loosely-want) {
		t.Errorf("two indices in fields: %v, ln Z %v, by the largest coupling %v", got, want, loosely)
	}
	coupled.Tables[0].Data = []float64{1, -1, 1, 1}
	if got := run(t, coupled, bp.Options{}).UpperBound(); !math.IsInf(got, 1) {
		t.Errorf("entries below 0: %v", got)
	}
}
