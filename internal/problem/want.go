package problem

// Want says what a contraction shall give beside Z.
type Want struct {
	// Marginals asks for Value.Marginals, at about three times the cost.
	Marginals bool
	// Joint asks for Value.Joint, of these variables.
	Joint []int
}
