package btn

// Joint is P(x_v, v in Variables | evidence).
type Joint struct {
	Variables []int     `json:"variables"` // as they were asked for
	Shape     []int     `json:"shape"`     // their domains
	P         []float64 `json:"p"`         // Π Shape probabilities, the last variable fastest
}
