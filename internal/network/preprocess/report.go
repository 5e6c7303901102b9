package preprocess

// The report of preprocessing, for people.

import (
	"fmt"
	"strings"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Size counts the parts of an expression.
type Size struct {
	Indices int // of dimension above 1
	Tables  int
	Entries int // of all tables
	Zeros   int // among the entries
}

// Report counts the simplifications.
type Report struct {
	Before, After  Size
	ValuesRemoved  int // values that only zeros meet
	EntriesRemoved int // entries set to 0 because of zeros of other tables
	Fixed          int // indices left with one value
	Aliases        int // indices that follow another one
	TablesMerged   int // tables multiplied into a table around them
	// ConstantModes counts indices that a table does not depend on:
	// the sum over a barren variable, above all.
	ConstantModes int
	SummedOut     int // indices summed out
	Splits        int // tables written as products
	Stars         int // tables written as stars of low rank
	Chains        int // tables written as chains of counters
	Coarse        int // tables written over classes of values
	Probed        int // values that were assumed, to see whether zeros follow
	ProbedAway    int // values that probing removed
	Parts         int
	Zero          *Reason // why the value is 0; nil when it is not known to be
}

// Reason says where an expression was found to be 0.
type Reason struct {
	Index  int   // index of the expression given that has no value left, −1 if none
	Table  int   // table that took the last one, or that is 0 itself; −1: the scale is 0
	Tables []int // all tables that were merged with it by then
}

// newReason returns the reason for which an expression is 0: the index has no value left, or, if index is −1, a product of tables is 0.
// culprit has the tables that are to blame; it is nil for none.
func newReason(index int, culprit *source) *Reason {
	r := &Reason{Index: index, Table: -1}
	if culprit != nil {
		r.Tables = culprit.tables()
		r.Table = r.Tables[0]
	}
	return r
}

// String returns the reason as text. Index and Table are −1 for none.
func (r *Reason) String() string {
	switch {
	case r.Index < 0 && r.Table < 0:
		return "the scale is 0"
	case r.Index < 0:
		return fmt.Sprintf("the product of tables %v is 0", r.Tables)
	case r.Table < 0:
		return fmt.Sprintf("index %d has no value left", r.Index)
	}
	return fmt.Sprintf("index %d has no value that agrees with tables %v", r.Index, r.Tables)
}

// String returns the report as lines of text: the sizes before and after, and every count that is not 0.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "indices %d → %d, tables %d → %d, entries %d → %d (zeros %d → %d)",
		r.Before.Indices, r.After.Indices, r.Before.Tables, r.After.Tables,
		r.Before.Entries, r.After.Entries, r.Before.Zeros, r.After.Zeros)

	if r.Zero != nil {
		fmt.Fprintf(&b, "\nZ = 0: %s", r.Zero)
		return b.String()
	}

	for _, line := range []struct {
		count int
		text  string
	}{
		{r.ValuesRemoved, "values removed"},
		{r.ProbedAway, "values removed by probing"},
		{r.EntriesRemoved, "entries set to 0"},
		{r.Fixed, "indices fixed"},
		{r.Aliases, "indices follow others"},
		{r.SummedOut, "indices summed out"},
		{r.ConstantModes, "constant modes dropped"},
		{r.TablesMerged, "tables merged"},
		{r.Splits, "tables split"},
		{r.Stars, "stars"},
		{r.Chains, "chains"},
		{r.Coarse, "tables over classes of values"},
		{r.Parts, "parts"},
	} {
		if line.count > 0 {
			fmt.Fprintf(&b, "\n%d %s", line.count, line.text)
		}
	}
	return b.String()
}

// countExpression returns the numbers of indices, tables, entries and zeros of an expression.
func countExpression(e *sumproduct.Expression) Size {
	var s Size
	for _, d := range e.Dims {
		if d > 1 {
			s.Indices++
		}
	}

	s.Tables = len(e.Tables)
	for _, t := range e.Tables {
		s.Entries += len(t.Data)
		for _, x := range t.Data {
			if x == 0 {
				s.Zeros++
			}
		}
	}
	return s
}
