package bayesnet

import "github.com/basetensor/basetensor/pkg/factorgraph"

// IsNormalised reports whether the partition function of a model is P(evidence). It is if the model is a Bayesian
// network and each row of its tables sums to 1, up to rounding. Linear time.
func IsNormalised(m *factorgraph.Model) bool {
	normal, _ := m.Normalised()
	return m.Bayes && normal.WrongRow() == ""
}
