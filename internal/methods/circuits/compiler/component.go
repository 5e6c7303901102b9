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

func (c *content) extent() extent {
	return extent{int32(len(c.vars)), int32(len(c.clauses)), int32(len(c.tables))}
}

// cut takes all behind an extent off.
func (c *content) cut(to extent) {
	c.vars, c.clauses, c.tables = c.vars[:to.vars], c.clauses[:to.clauses], c.tables[:to.tables]
}

// of returns the content of a component, which is a range of c.
func (c *content) of(part component) content {
	return content{
		c.vars[part.from.vars:part.to.vars], c.clauses[part.from.clauses:part.to.clauses], c.tables[part.from.tables:part.to.tables],
	}
}

// component is a range of a stack. All its variables were open when it was found, and it had all
// that was left of every clause and table with one of them.
type component struct {
	from, to extent
	key      digest
	wait     int32 // decisions before elimination is worth another look
	stale    bool  // some variables have values since it was found
}

// hasClauses reports whether c has a clause of three literals and more, or has one of two because it has no table.
func (c component) hasClauses() bool {
	return c.from.clauses < c.to.clauses || c.from.tables == c.to.tables
}

// size returns the number of variables.
func (c component) size() int32 { return c.to.vars - c.from.vars }
