package sampled

// Marginals of components: sums over indices as sums over variables.

import (
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
)

// shares fills in sums over the values of indices as sums over those of the network's variables.
func shares(w *btn.Weights, prepared *truncated.Prepared, share, squares [][]float64) (err error) {
	if w.Share, w.Domains, err = flat(prepared, share); err == nil {
		w.Squares, _, err = flat(prepared, squares)
	}
	return err
}

// flat writes sums over the values of indices as sums over those of the network's variables, one after the other.
func flat(prepared *truncated.Prepared, of [][]float64) (all []float64, domains []int, err error) {
	total := 0.0
	for _, x := range of[0] {
		total += x
	}
	shares := make([][]float64, len(of))
	for i, row := range of {
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
