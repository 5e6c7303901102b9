package btn

// Parts that have derivatives.

// CoreNumbers are the numbers (parameters) of a core.
type CoreNumbers struct {
	Numbers []float64 `msgpack:"n"`           // in the sequence in which lower.ParameterSizes counts them
	Scope   []int     `msgpack:"s,omitempty"` // the variables, if the core is a table
	Shape   []int     `msgpack:"d,omitempty"` // the domains of Scope
	// Groups has, for each term of the core, the sizes of groups of consecutive numbers. The core is the sum of its terms, and linear in
	// each group. Groups is nil if a number of the network is beyond float64 or below 0: then a sum over a group is no safer against
	// cancellation than the difference of Z and one share of it.
	Groups [][]int `msgpack:"g,omitempty"`
	// Row is 0, or 1 + the mode along which the rows of a conditional probability table sum to 1.
	Row int `msgpack:"r,omitempty"`
}
