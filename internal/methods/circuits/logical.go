package circuits

// Whether the factors of a network are logic: only then are circuits looked for.

import (
	"context"

	"github.com/basetensor/basetensor/internal/methods/circuits/logic"
	"github.com/basetensor/basetensor/internal/methods/proposal"
)

// logicContent is how much logic the factors of a network are (logic.Logical).
type logicContent struct {
	hasLogic  bool // a share of logicalShare of the factors: circuits are searched
	isFormula bool // a share of whollyLogicalShare: before trees are
}

// logicSlot is the slot of a network's logicContent.
type logicSlot struct{}

// logicalShare is the share of factors with zeros among those over several variables from which a circuit is searched.
// Chosen: conditional tables that are functions have zeros, clauses have one each.
const logicalShare = 0.1

// whollyLogicalShare is that share for a search before that of a tree. A model that is not nearly all logic has tables that a search does
// not make smaller.
// Measured: formulas have 1, linkage 0.41, Pedigree_11 0.68, BN_69 0.63; with the search they took
// 1.1 to 2 s of CPU time more.
const whollyLogicalShare = 0.9

// logicOf returns the logicContent of the job's network. It takes linear time, once for each network. It does not look at a context: an
// answer that depended on when a job ends would be another one.
func logicOf(j *proposal.Job) logicContent {
	content, _ := proposal.Fact(context.Background(), j.Facts, logicSlot{}, func() (c logicContent, err error) {
		c.hasLogic = logic.Logical(j.Net, logicalShare)
		c.isFormula = c.hasLogic && logic.Logical(j.Net, whollyLogicalShare)
		return c, nil
	})
	return content
}

// Formula reports whether nearly all factors of the job's network are logic.
func Formula(j *proposal.Job) bool { return logicOf(j).isFormula }

// Logical reports whether enough factors of the job's network are logic for a circuit to be searched.
func Logical(j *proposal.Job) bool { return logicOf(j).hasLogic }
