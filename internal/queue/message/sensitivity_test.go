package message

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// TestNumbersOfCores: the sizes that a sensitivity states are those of the numbers that it has.
func TestNumbersOfCores(t *testing.T) {
	three := []float64{1, 2, 3}
	for _, c := range []struct {
		core btn.CoreNumbers
		ok   bool
	}{
		{btn.CoreNumbers{Numbers: three}, true},
		{btn.CoreNumbers{Numbers: three, Groups: [][]int{{3}}}, true},
		{btn.CoreNumbers{Numbers: three, Groups: [][]int{{1, 0}, {2}}}, true},
		{btn.CoreNumbers{Numbers: three, Scope: []int{4}, Shape: []int{3}, Row: 1}, true},
		{btn.CoreNumbers{Groups: [][]int{{0}}}, true},
		{btn.CoreNumbers{Numbers: []float64{math.Inf(1)}}, true},
		{btn.CoreNumbers{Numbers: three, Groups: [][]int{{4}}}, false},
		{btn.CoreNumbers{Numbers: three, Groups: [][]int{{math.MaxInt, math.MaxInt}}}, false},
		{btn.CoreNumbers{Numbers: three, Groups: [][]int{{-1, 4}}}, false},
		{btn.CoreNumbers{Numbers: three, Groups: [][]int{{1}, {1}}}, false},
		{btn.CoreNumbers{Numbers: three, Groups: [][]int{{}, {3}}}, false},
		{btn.CoreNumbers{Numbers: three, Scope: []int{4}, Shape: []int{2}}, false},
		{btn.CoreNumbers{Numbers: three, Scope: []int{4}, Shape: []int{3}, Row: 2}, false},
		{btn.CoreNumbers{Numbers: []float64{math.NaN()}}, false},
	} {
		if err := checkNumbers([]btn.CoreNumbers{c.core}); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.core, err)
		}
	}
}
