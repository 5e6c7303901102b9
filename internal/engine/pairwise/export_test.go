package pairwise

import "github.com/basetensor/basetensor/internal/contractionorder"

// PlanWithin predicts the Stats of Contract with one thread and a budget of memory bytes (0: 2
// GiB): what does not fit is computed again in every slice, down to what
// contractionorder.EvaluateTree prices. PeakBytes exceed the budget when that does.
func PlanWithin(
	h contractionorder.Hypergraph, t contractionorder.Tree, sliced []int, memory int64,
) (Cost, error) {
	s, err := newShape(h, t, sliced)
	if err != nil {
		return Cost{}, err
	}
	return s.cost(s.within(budget(memory), s.forward)), nil
}
