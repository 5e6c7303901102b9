package main

// The output of formulas: their counts.

import (
	"math"
	"strconv"

	"github.com/basetensor/basetensor/pkg/query"
)

// isFormula reports whether variables are called by their numbers from 1 on, as in a CNF file.
func isFormula(n query.Names) bool {
	for v, name := range n.Variables {
		if name != strconv.Itoa(v+1) {
			return false
		}
	}
	return len(n.Variables) > 0 && len(n.States) == 0
}

// An integer follows from its logarithm where that has the digits for it: ln Z has a relative error of some 2^-50, so Z ≤ 10^10 has an
// absolute one well below wholeSlack, and a weighted count is as near to an integer by chance only.
const (
	mostWhole  = 1e10
	wholeSlack = 1e-12
)

// wholeCount returns the integer that an exact Z is, and whether it is one.
func wholeCount(lnZ float64) (int64, bool) {
	z := math.Exp(lnZ)
	n := math.Round(z)
	return int64(n), z <= mostWhole && n >= 1 && math.Abs(z-n) <= wholeSlack*n*math.Max(1, lnZ)
}
