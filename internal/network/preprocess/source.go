package preprocess

// Which tables of the expression given are in a table, without copying lists from table to table.

// source is one table of the expression given, or the merger of several sources.
type source struct {
	table int       // of one table
	parts []*source // nil for one table
}

// merged returns the source of the product of tables.
func merged(tables []*table) *source {
	if len(tables) == 1 {
		return tables[0].from
	}
	s := &source{}
	for _, t := range tables {
		s.parts = append(s.parts, t.from)
	}
	return s
}

// list returns the tables in s, ascending.
func (s *source) list() []int {
	var tables []int
	seen := map[*source]bool{s: true}
	for open := []*source{s}; len(open) > 0; {
		s := open[len(open)-1]
		open = open[:len(open)-1]
		if s.parts == nil {
			tables = append(tables, s.table)
		}
		for _, p := range s.parts {
			if !seen[p] {
				seen[p] = true
				open = append(open, p)
			}
		}
	}
	return unique(tables)
}
