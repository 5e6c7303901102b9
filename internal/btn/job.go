package btn

// Job is what learning hands on: the decompositions the queries use, and per query what is known before contraction.
type Job struct {
	Decompositions []*Decomposition
	Assignments    []Assignment // one per query
}

// Assignment says how one query is answered.
type Assignment struct {
	Decomposition int      // index into Job.Decompositions, −1 when Error is set
	Cache         string   // "hit", "miss" or "off"
	LnLinks       float64  // ln (|Scale| · Π_j ‖L^(j)‖_F) under the query's evidence, in nats
	Plan          *Cost    // exact way only
	Warnings      []string //
	// Relearned says what was learned for this query's evidence, where what the model alone has does not serve; else empty.
	Relearned string
	// Unsure says that the total may miss terms although every step is exact on paper: the answer is not marked exact.
	Unsure bool
	// Over is 0, or 1 + the query whose Z this one's is divided by: P(event | given) = Z(given ∧ event)/Z(given).
	Over int
	// Event says that this query's evidence is the other's and more of it, so that Z is at most that of the other.
	Event bool
	// Hard says that tables of the simplified network forbid values together (entries of 0 over two indices or more):
	// estimates that drop small directions can lose whole branches of such a model.
	Hard  bool
	Joint []int // variables whose joint marginal is wanted; exact way only
	// Propagation is how belief propagation ended, where it was run; Messages restart it where the regions are contracted.
	Propagation *Propagation
	Messages    []float64
	Error       *ErrorInfo // why this query cannot be answered, or nil
}

// Unit is one contraction: component Component of the decomposition assigned to query Query, under its evidence.
type Unit struct {
	Query     int `msgpack:"q"`
	Component int `msgpack:"c"`
}

// UnitValue is the outcome of a unit: a value, or the error that its query fails with.
type UnitValue struct {
	Unit
	Value Value      `msgpack:"v"`
	Error *ErrorInfo `msgpack:"x,omitempty"`
}
