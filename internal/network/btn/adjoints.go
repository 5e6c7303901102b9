package btn

// Parts that have derivatives.

// CoreNumbers are the numbers of a core.
type CoreNumbers struct {
	Numbers []float64 `msgpack:"n"`           // as lower.ParameterSizes counts them
	Scope   []int     `msgpack:"s,omitempty"` // of a table: its variables
	Shape   []int     `msgpack:"d,omitempty"` // and their domains
	// Groups has the sizes of groups of consecutive numbers, by term of the core: the core is linear in each group, and the sum of its
	// terms. None where a number of the network is beyond float64 or below 0: a sum over a group is no safer than Z less a part then.
	Groups [][]int `msgpack:"g,omitempty"`
	// Row is 0, or 1 + the mode that the rows of a conditional probability table are over.
	Row int `msgpack:"r,omitempty"`
}
