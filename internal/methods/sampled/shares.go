package sampled

// Marginals of components: sums of weights by value of an index become sums by value of a variable.

import (
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
)

// setShares sets the fields of w that marginals are made of: the sums of weights, and of their squares, for each value of each variable of
// the network. sums[i][a] and squares[i][a] are those sums for value a of index i of the simplified network, which has fewer indices.
// Errors: those of flattenByVariable; w is then incomplete.
func setShares(w *btn.Weights, prepared *truncated.Prepared, sums, squares [][]float64) (err error) {
	if w.Share, w.Domains, err = flattenByVariable(prepared, sums); err == nil {
		w.Squares, _, err = flattenByVariable(prepared, squares)
	}
	return err
}

// flattenByVariable converts sums for the indices of the simplified network into sums for the variables of the network. indexSums[i][a] is
// the sum for value a of index i; every index has the same total. variableSums has the values of one variable after the other, and
// domains the number of values of each variable.
func flattenByVariable(prepared *truncated.Prepared, indexSums [][]float64) (variableSums []float64, domains []int, err error) {
	total := 0.0
	for _, sum := range indexSums[0] {
		total += sum
	}

	// VariableMarginals converts probabilities, so the sums are divided by their total before, and multiplied by it again.
	probabilities := make([][]float64, len(indexSums))
	for i, row := range indexSums {
		probabilities[i] = make([]float64, len(row))
		for a, sum := range row {
			probabilities[i][a] = sum / total
		}
	}
	rows, err := prepared.VariableMarginals(probabilities)
	if err != nil {
		return nil, nil, err
	}
	for _, row := range rows {
		for _, p := range row {
			variableSums = append(variableSums, p*total)
		}
		domains = append(domains, len(row))
	}
	return variableSums, domains, nil
}
