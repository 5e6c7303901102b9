package preprocess

// Which tables of the expression given are in a table, without copying lists from table to table.

// source is one table of the expression given, or the merger of several sources.
type source struct {
	table int       // of one table
	of    []*source // nil for one table
}

// list returns the tables in s, ascending.
func (s *source) list() []int {
	var tables []int
	seen := map[*source]bool{s: true}
	for open := []*source{s}; len(open) > 0; {
		s := open[len(open)-1]
		open = open[:len(open)-1]
		if s.of == nil {
			tables = append(tables, s.table)
		}
		for _, o := range s.of {
			if !seen[o] {
				seen[o] = true
				open = append(open, o)
			}
		}
	}
	return unique(tables)
}
