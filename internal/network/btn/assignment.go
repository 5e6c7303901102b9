package btn

import "github.com/basetensor/basetensor/pkg/query"

// Data that stages hand on beside the network and the plans.

// Assignment is how one demand is answered: its plan, what belongs to the plan, or the error that the query fails with.
type Assignment struct {
	Plan     *Plan       `msgpack:"-"`                  // shared by the queries that it serves; nil if Error is set
	Cache    string      `msgpack:"cache"`              // CacheHit, CacheMiss or CacheOff
	LnLinks  float64     `msgpack:"ln_links"`           // ln (|Scale| · Π_j ‖L^(j)‖_F) under the query's evidence, in nats
	Cost     *query.Cost `msgpack:"cost,omitempty"`     // under the query's evidence; of an exact plan only
	Warnings []string    `msgpack:"warnings,omitempty"` // for this answer, including those of the network
	// Relearned names the structure that was learned for this query's evidence. It is empty if the structure of the model serves.
	Relearned string `msgpack:"relearned,omitempty"`
	// Unsure reports whether the total may miss terms although every step is exact on paper. Such an answer is not marked exact.
	Unsure bool `msgpack:"unsure,omitempty"`
	// Hard reports whether tables of the simplified network forbid combinations of values (entries of 0 over two
	// indices or more). Estimates that drop small directions can lose whole branches of such a model.
	Hard bool `msgpack:"hard,omitempty"`
	// Relevant reports whether the plan is for the part of the network on which the answer depends (Network.Relevant).
	Relevant bool `msgpack:"relevant,omitempty"`
	// Summed reports whether the plan is for Network.WithoutVanishingTerms.
	Summed bool `msgpack:"summed,omitempty"`
	Want   Want `msgpack:"want,omitempty"` // what the plan has to provide, in the variables of the whole network
	// Alone reports whether an assignment that a search has proved is the whole answer: nothing that is wanted waits for Z.
	Alone bool `msgpack:"alone,omitempty"`
	// MayCancel reports whether the plan contracts terms of both signs at a cost beyond wide numbers. If all digits cancel, no other
	// computation can tell the true sum.
	MayCancel bool `msgpack:"-"`
	// Numbers are the numbers of the model, by core, if derivatives of the terms with a target are wanted.
	Numbers []CoreNumbers `msgpack:"numbers,omitempty"`
	// Asked is the query that results answer; nil if the demand only serves another query.
	Asked *Asked `msgpack:"asked,omitempty"`

	// Propagation is how belief propagation ended; nil if it was not run. Messages are its last messages, from which it starts again
	// when regions are contracted.
	Propagation *query.Propagation `msgpack:"bp,omitempty"`
	Messages    []float64          `msgpack:"messages,omitempty"`
	Error       *query.ErrorInfo   `msgpack:"error,omitempty"` // why this query cannot be answered, or nil
}

// Asked is a query with the further demands that its answer needs.
type Asked struct {
	Query query.Query `msgpack:"query"` // without cases
	// Extra lists the demands that serve only this query, by kind of question. In the list of all demands they follow the demands of
	// the queries themselves, in the sequence of the queries.
	Extra []Extra `msgpack:"extra,omitempty"`
	// IsEvent reports whether the evidence consists of the evidence of the query in Over and more, so that this Z is at most the Z of
	// that query.
	IsEvent bool `msgpack:"event,omitempty"`
}

// Extra is the number of demands that serve only one kind of question of one query.
type Extra struct {
	Kind    string `msgpack:"kind"`
	Demands int    `msgpack:"n"`
}

// ExtraDemands returns the number of demands that serve only this query: the sum over the kinds of its questions.
func (a *Asked) ExtraDemands() (n int) {
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
