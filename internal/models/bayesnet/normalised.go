package bayesnet

import "github.com/basetensor/basetensor/pkg/factorgraph"

// IsNormalised reports whether Z of a model is P(evidence): it is a Bayesian network, and the rows of its tables sum to 1, once those that
// rounding explains are divided by their sums. Linear time.
func IsNormalised(m *factorgraph.Model) bool {
	normal, _ := m.Normalised()
	return m.Bayes && normal.WrongRow() == ""
}
