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
	// Hard says that tables of the simplified network forbid values together (entries of 0 over two
	// indices or more): estimates that drop small directions can lose whole branches of such a
	// model.
	Hard bool `msgpack:"hard,omitempty"`
	// Relevant says that the plan is one for the part of the network on which the answer depends (Network.Relevant).
	Relevant bool `msgpack:"relevant,omitempty"`
	// Summed says that the plan is one for Network.Summed.
	Summed bool `msgpack:"summed,omitempty"`
	Want   Want `msgpack:"want,omitempty"` // what the plan has to provide, in the variables of the whole network
	// Alone says that an assignment that a search has proved is the whole answer: nothing that is wanted waits for Z.
	Alone bool `msgpack:"alone,omitempty"`
	// MayCancel reports whether the plan contracts terms of both signs at a cost beyond wide numbers: if all digits cancel, nothing settles
	// what is left.
	MayCancel bool `msgpack:"-"`
	// Numbers are those of the model, by core, if derivatives are wanted of the terms with a target.
	Numbers []CoreNumbers `msgpack:"numbers,omitempty"`
	// Asked is the query that results answer; nil if the demand only serves another query.
	Asked *Asked `msgpack:"asked,omitempty"`

	// Propagation is how belief propagation ended, where it was run;
	// Messages restart it where the regions are contracted.
	Propagation *query.Propagation `msgpack:"bp,omitempty"`
	Messages    []float64          `msgpack:"messages,omitempty"`
	Error       *query.ErrorInfo   `msgpack:"error,omitempty"` // why this query cannot be answered, or nil
}

// Asked is a query as its answer needs it.
type Asked struct {
	Query query.Query `msgpack:"query"` // without cases
	// Extra says which demands serve this query alone. They follow the demands of all queries, in the sequence of the queries.
	Extra []Extra `msgpack:"extra,omitempty"`
	// IsEvent says that the evidence is that of the query in Over and more of it, so that this Z is at most the other one.
	IsEvent bool `msgpack:"event,omitempty"`
}

// Extra are demands that serve one kind of question of a query alone.
type Extra struct {
	Kind    string `msgpack:"kind"`
	Demands int    `msgpack:"n"`
}

// Served returns the number of demands that serve this query alone.
func (a *Asked) Served() (n int) {
	for _, extra := range a.Extra {
		n += extra.Demands
	}
	return n
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
