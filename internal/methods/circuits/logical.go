package circuits

// Whether the factors of a network are logic: only then are circuits looked for.

import (
	"context"

	"github.com/basetensor/basetensor/internal/methods/circuits/logic"
	"github.com/basetensor/basetensor/internal/methods/proposal"
)

// logicContent tells how many of a network's factors over several variables have zeros (logic.IsLogical).
type logicContent struct {
	hasLogic  bool // at least logicalShare of them: circuits are searched
	isFormula bool // at least whollyLogicalShare of them: circuits are searched before trees
}

// logicSlot is the key of a network's logicContent among the facts that are remembered of it.
type logicSlot struct{}

// logicalShare is the share of factors with zeros among those over several variables from which a circuit is searched.
// Chosen: conditional tables that are functions have zeros, clauses have one each.
const logicalShare = 0.1

// whollyLogicalShare is that share for a search before that of a tree. A model that is not nearly all logic has tables that a search does
// not make smaller.
// Measured: formulas have 1, linkage 0.41, Pedigree_11 0.68, BN_69 0.63; with the search they took
// 1.1 to 2 s of CPU time more.
const whollyLogicalShare = 0.9

// logicOf returns how much logic the factors of the job's network have. It takes linear time, once for each network.
func logicOf(j *proposal.Job) logicContent {
	content, _ := proposal.Fact(context.Background(), j.Facts, logicSlot{}, func() (c logicContent, err error) {
		c.hasLogic = logic.IsLogical(j.Net, logicalShare)
		c.isFormula = c.hasLogic && logic.IsLogical(j.Net, whollyLogicalShare)
		return c, nil
	})
	return content
}

// IsFormula reports whether nearly all factors of the job's network have zeros, as those of a logical formula.
func IsFormula(j *proposal.Job) bool { return logicOf(j).isFormula }

// HasLogic reports whether enough factors of the job's network have zeros for a circuit to be searched.
func HasLogic(j *proposal.Job) bool { return logicOf(j).hasLogic }
