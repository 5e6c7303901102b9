package compiler

// Components: the residual formula under an assignment falls into parts that share no open
// variable.

// content is variables, clauses and tables: those of a component, or a stack of many components'.
type content struct {
	vars    []int32
	clauses []int32
	tables  []tableSlice
}

// tableSlice is a table under an assignment.
type tableSlice struct {
	table int32
	slice int32 // number among the slices of the table that were met
}

// extent is the lengths of a content's lists.
type extent struct{ vars, clauses, tables int32 }

// extent returns the present lengths of the lists.
func (c *content) extent() extent {
	return extent{int32(len(c.vars)), int32(len(c.clauses)), int32(len(c.tables))}
}

// cut shortens the lists to the lengths of an extent.
func (c *content) cut(to extent) {
	c.vars, c.clauses, c.tables = c.vars[:to.vars], c.clauses[:to.clauses], c.tables[:to.tables]
}

// contentOf returns the content of a component: the ranges of the lists of c that the component has.
func (c *content) contentOf(part component) content {
	return content{
		c.vars[part.from.vars:part.to.vars], c.clauses[part.from.clauses:part.to.clauses], c.tables[part.from.tables:part.to.tables],
	}
}

// component is a range of a stack. All its variables were open when it was found, and it had all
// that was left of every clause and table with one of them.
type component struct {
	from, to extent
	key      digest // of its variables, clauses and slices of tables
	wait     int32  // decisions before the next look whether it can be eliminated
	stale    bool   // some variables have got values since it was found
}

// hasClauses reports whether c is known to have clauses: clauses of three literals and more, which are in its list, or, if it has no table,
// clauses of two literals, since something connects its variables. If it has tables, clauses of two literals alone do not count.
func (c component) hasClauses() bool {
	return c.from.clauses < c.to.clauses || c.from.tables == c.to.tables
}

// size returns the number of variables.
func (c component) size() int32 { return c.to.vars - c.from.vars }
