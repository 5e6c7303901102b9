package sampled

// Marginals of components: sums of weights by index become sums by variable.

import (
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
)

// setShares sets w.Share, w.Squares and w.Domains by variable of the network. share and squares have the sums by index of the simplified
// network and value.
func setShares(w *btn.Weights, prepared *truncated.Prepared, share, squares [][]float64) (err error) {
	if w.Share, w.Domains, err = flattenByVariable(prepared, share); err == nil {
		w.Squares, _, err = flattenByVariable(prepared, squares)
	}
	return err
}

// flattenByVariable returns sums by variable and value of the network, one variable after the other, and the number of values of each.
// byIndex has the sums by index of the simplified network and value. The sums of all indices are equal.
func flattenByVariable(prepared *truncated.Prepared, byIndex [][]float64) (all []float64, domains []int, err error) {
	total := 0.0
	for _, x := range byIndex[0] {
		total += x
	}
	shares := make([][]float64, len(byIndex))
	for i, row := range byIndex {
		shares[i] = make([]float64, len(row))
		for a, x := range row {
			shares[i][a] = x / total
		}
	}
	rows, err := prepared.Rows(shares)
	if err != nil {
		return nil, nil, err
	}
	for _, row := range rows {
		for _, p := range row {
			all = append(all, p*total)
		}
		domains = append(domains, len(row))
	}
	return all, domains, nil
}
