package btn

// Parts that are cubes of a search: B where some values are taken or excluded.

// Cube is B under one of the partial assignments that a search is split into; Z is the sum over the cubes (Lemma 5: they exclude each
// other and leave nothing out). The worker that takes it simplifies what is left, and searches.
type Cube struct {
	Of *Split `msgpack:"-"`
	At int    `msgpack:"at"` // which of its cubes
	// Ask is as that of Circuit: the answer is the best of those of all cubes, or drawn from all of them.
	Ask Ask `msgpack:"ask,omitempty"`
}

// Split is what the cubes of a search have in common.
type Split struct {
	// Cubes are literals (formula.Literal) of the network's formula that hold together.
	Cubes [][]int32 `msgpack:"cubes"`
	// Order is an elimination order of variables of that formula, which guides the search of every cube.
	Order []int32 `msgpack:"order,omitempty"`
	// Given says that the formula is that of the network under the query's evidence; else of the network as it is.
	Given bool `msgpack:"given,omitempty"`
	// Functional is as of Compiled: of the circuits of all cubes.
	Functional bool `msgpack:"functional,omitempty"`

	// Counted says that a query for Z alone needs no circuits: it is the first that the model was asked.
	Counted bool  `msgpack:"counted,omitempty"`
	Work    int64 `msgpack:"work"`  // steps of the search of one cube, at most
	Bytes   int64 `msgpack:"bytes"` // of a cube's circuit, at most: a larger one is not kept
}

// Class implements Part.
func (*Cube) Class() Class { return ClassCube }

// Common implements Sharer.
func (p *Cube) Common() any { return p.Of }

// Share implements Sharer.
func (p *Cube) Share(common any) (ok bool) {
	p.Of, ok = common.(*Split)
	return ok
}

// Fits implements Part. Whether the literals are some of the network's formula is for the contraction to say.
func (p *Cube) Fits(n *Network) error {
	switch {
	case p.Of == nil:
		return misfit("it has no split")
	case n.Variables == nil:
		return misfit("the network has no variables whose values have weights")
	case p.At < 0 || p.At >= len(p.Of.Cubes):
		return misfit("it is cube %d of %d", p.At, len(p.Of.Cubes))
	case p.Ask != "" && p.Ask != AskMPE && p.Ask != AskSamples:
		return misfit("it asks for %.40q", p.Ask)
	case p.Of.Work < 0 || p.Of.Bytes < 0:
		return misfit("its budgets are %d steps and %d bytes", p.Of.Work, p.Of.Bytes)
	}
	return nil
}

// Describe implements Part.
func (*Cube) Describe(*EstimateResult) {}

func (*Cube) part() {}
