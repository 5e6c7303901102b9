package contractionorder

// Scopes returns the scope S of every table of t, sorted: first the edges of h, without sliced
// indices, indices of dimension 1 and indices that no other edge has; then the results of the
// merges. Errors as for EvaluateTree.
func Scopes(h Hypergraph, t Tree, sliced []int) ([][]int, error) {
	s, err := newScopes(h, t, sliced)
	if err != nil {
		return nil, err
	}
	return s.scope, nil
}
