package btn

import "github.com/basetensor/basetensor/pkg/query"

// Data that stages hand on beside the network and the plans.

// Assignment says how one query is answered.
type Assignment struct {
	Plan     *Plan       `msgpack:"-"`                  // shared by the queries that it serves; nil when Error is set
	Cache    string      `msgpack:"cache"`              // CacheHit, CacheMiss or CacheOff
	LnLinks  float64     `msgpack:"ln_links"`           // ln (|Scale| · Π_j ‖L^(j)‖_F) under the query's evidence, in nats
	Cost     *query.Cost `msgpack:"cost,omitempty"`     // under the query's evidence; of the exact way only
	Warnings []string    `msgpack:"warnings,omitempty"` // for this answer, the network's among them
	// Relearned names the structure learned for this query's evidence, where
	// the model's own does not serve; else empty.
	Relearned string `msgpack:"relearned,omitempty"`
	// Unsure says that the total may miss terms although every step is exact on paper:
	// the answer is not marked exact.
	Unsure bool `msgpack:"unsure,omitempty"`
	// Over is 0, or 1 + the query whose Z this one's is divided by:
	// P(event | given) = Z(given ∧ event)/Z(given).
	Over int `msgpack:"over,omitempty"`
	// Event says that this query's evidence is the other's and more of it,
	// so that its Z is at most the other's.
	Event bool `msgpack:"event,omitempty"`
	// Hard says that tables of the simplified network forbid values together (entries of 0 over two
	// indices or more): estimates that drop small directions can lose whole branches of such a
	// model.
	Hard bool `msgpack:"hard,omitempty"`
	// Relevant says that the plan is one for the part of the network on which the answer depends (Network.Relevant).
	Relevant bool `msgpack:"relevant,omitempty"`
	// Summed says that the plan is one for Network.Summed.
	Summed  bool  `msgpack:"summed,omitempty"`
	Joint   []int `msgpack:"joint,omitempty"`   // variables whose joint marginal is wanted; exact way only
	Targets []int `msgpack:"targets,omitempty"` // variables whose marginals are wanted; nil: of all
	// Descents are the assignments of values that are wanted; exact way only, nil for none.
	Descents *Descents `msgpack:"descents,omitempty"`
	// Sensitivity is the question about a target; nil: nothing.
	Sensitivity *Sensitivity `msgpack:"sensitivity,omitempty"`
	// Ask is the information query that this one serves; the queries for it are Count from First on, one per value of the
	// target.
	Ask   *query.Ask `msgpack:"ask,omitempty"`
	First int        `msgpack:"first,omitempty"`
	Count int        `msgpack:"count,omitempty"`
	// Extra says that the query was not asked but is for another one's information: it has no result of its own.
	Extra bool `msgpack:"extra,omitempty"`

	// Propagation is how belief propagation ended, where it was run;
	// Messages restart it where the regions are contracted.
	Propagation *query.Propagation `msgpack:"bp,omitempty"`
	Messages    []float64          `msgpack:"messages,omitempty"`
	Error       *query.ErrorInfo   `msgpack:"error,omitempty"` // why this query cannot be answered, or nil
}

// Descents are assignments of values that a query asks for.
type Descents struct {
	MPE     bool   `msgpack:"mpe,omitempty"`
	Best    int    `msgpack:"best,omitempty"` // most probable ones; 0: one
	Map     []int  `msgpack:"map,omitempty"`
	Samples int    `msgpack:"samples,omitempty"`
	Seed    uint64 `msgpack:"seed,omitempty"`
	// Alone says that nothing is asked for that waits for Z: an assignment that a search has proved is the whole answer.
	Alone bool `msgpack:"alone,omitempty"`
}

// Cache states of an answer.
const (
	CacheHit  = "hit"
	CacheMiss = "miss"
	CacheOff  = "off"
)

// Unit is one contraction: a part of the plan assigned to a query, under its evidence.
type Unit struct {
	Query int `msgpack:"q"`
	Part  int `msgpack:"c"` // among the parts of all estimates of the plan, in sequence
}

// UnitValue is the outcome of a unit: a value, or the error that its query fails with.
type UnitValue struct {
	Unit
	Value Value            `msgpack:"v"`
	Error *query.ErrorInfo `msgpack:"x,omitempty"`
}
