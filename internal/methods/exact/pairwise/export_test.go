package pairwise

import "github.com/basetensor/basetensor/internal/network/contractionorder"

// PlanWithin predicts the Stats of Contract with one thread and a budget of memory bytes (0: 2
// GiB): common tables that do not fit are recomputed in every slice, down to
// contractionorder.EvaluateTree's price. PeakBytes exceed the budget when that does.
func PlanWithin(
	h contractionorder.Hypergraph, t contractionorder.Tree, sliced []int, memory int64,
) (Cost, error) {
	s, err := newShape(h, t, sliced)
	if err != nil {
		return Cost{}, err
	}
	return s.cost(s.programWithin(budget(memory), s.forwardProgram)), nil
}
