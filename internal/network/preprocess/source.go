package preprocess

// Which tables of the expression given are in a table, without copying lists from table to table.

// source is one table of the given expression, or the union of several sources.
type source struct {
	number int       // of the table, if it is one
	parts  []*source // the sources that it is the union of; nil for one table
}

// mergeSources returns the source of the product of tables: which tables of the given expression are in it.
func mergeSources(tables []*table) *source {
	if len(tables) == 1 {
		return tables[0].source
	}
	s := &source{}
	for _, t := range tables {
		s.parts = append(s.parts, t.source)
	}
	return s
}

// tables returns the numbers of the tables in s, ascending: those of all sources that s is merged of, directly or by other merges. Sources
// may share parts. A source without parts is one table.
func (s *source) tables() []int {
	var tables []int
	isVisited := map[*source]bool{s: true}
	for stack := []*source{s}; len(stack) > 0; {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if s.parts == nil {
			tables = append(tables, s.number)
		}
		for _, p := range s.parts {
			if !isVisited[p] {
				isVisited[p] = true
				stack = append(stack, p)
			}
		}
	}
	return sortedUnique(tables)
}
