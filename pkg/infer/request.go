// Package infer answers a request in plain calls: reparameterise, learn, contract, aggregate. The pipeline runs the
// same four functions in four processes and must reproduce these answers bit for bit.
package infer

import (
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Request is a model, what is asked of it, and how.
type Request struct {
	Job      string // [A-Za-z0-9_-]{1,64}
	Model    *factorgraph.Model
	Queries  []Query // at least one
	Settings btn.Settings
}

// Query asks for the partition function under evidence.
type Query struct {
	Evidence  factorgraph.Evidence
	Marginals bool // the marginals of all variables as well, at about three times the cost
	// Over is 0, or 1 + the position of another query. The result then has LnRatio = ln Z of this query less ln Z of that
	// one: ln P(event | given), where that query's evidence is what is given and this one's is that and the event.
	Over int
	// Joint lists variables whose joint marginal is wanted as well: distinct, at most btn.MaxJointCells cells, by exact
	// methods only. It costs up to the number of cells times what Z costs, and less where evidence leaves fewer.
	Joint        []int
	EvidenceFile string // for the answer only; empty if there was none
}
