// Package questions has a room for every kind of question that a query may ask: what it needs of a plan, and how its answer follows from
// what was computed. The list of kinds is the only place that knows them all.
package questions

import (
	"iter"
	"slices"

	"github.com/basetensor/basetensor/internal/answer/aggregate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// kind is a kind of question. Its functions are called for every query, and do nothing if the query does not ask this question.
type kind struct {
	name string // unique among kinds
	// want adds what the question needs of a plan under the query's evidence.
	want func(q *query.Query, w *btn.Want)
	// demands yields further demands on a model with these domains, which serve only this question. It is nil if there are never any.
	demands func(domains []int, q *query.Query) iter.Seq[btn.Demand]
	// answer writes the answer into the result of a query. It is called only if the status is ok, and Z is not 0 or isOfZero is true.
	answer   func(a *answer)
	isOfZero bool // the question has an answer if Z is 0
	// compare writes what follows from the totals of several queries, after all calls of answer. It is nil if nothing does.
	compare func(all []answer, a *answer)
}

// kinds lists all kinds, in the sequence in which they are answered.
var kinds = []kind{
	marginals, joint, belief, gradients, sensitivity, explanation, marginalMAP, samples, likelihood, conflict, information, event,
}

// answer is a query with the totals of its demands, and the result into which its answers are written.
type answer struct {
	asked         *btn.Asked
	numbers       []btn.CoreNumbers // of the model, if derivatives of the terms with a target are wanted
	total         *aggregate.Total  // of the query's own demand
	furtherTotals []aggregate.Total // of the further demands, which serve only this query
	kindTotals    []aggregate.Total // the further totals that serve the kind whose function is called
	result        *query.Result
}

// warn adds a warning to the result.
func (a *answer) warn(text string) { a.result.Warnings = append(a.result.Warnings, text) }

// Demand returns the first demand of a query: its evidence, and what the questions of all kinds need of a plan under this evidence.
// Questions that need other evidence have further demands (Demands). Before the names in the query are resolved, the demand lacks what
// questions that use names need; only IsParametric can be relied on then.
func Demand(q *query.Query) btn.Demand {
	d := btn.Demand{Evidence: evidenceOf(q)}
	for _, k := range kinds {
		if k.want != nil {
			k.want(q, &d.Want)
		}
	}
	return d
}

// Demands returns the demands of queries on a model with these domains: first one demand of each query, then the further demands, query by
// query. A demand is what is wanted under one evidence; a question that needs other evidence beside that of its query has further demands.
// Every kind of question is asked for them, and yields none if the query does not contain such a question. asked[i] contains query i and
// the number of its further demands by kind, from which Results finds them again.
func Demands(domains []int, queries []query.Query) (demands []btn.Demand, asked []btn.Asked) {
	demands, asked = make([]btn.Demand, len(queries)), make([]btn.Asked, len(queries))
	for i := range queries {
		q := &queries[i]
		demands[i] = Demand(q)
		asked[i] = btn.Asked{Query: *q, IsEvent: isEvent(queries, i)}
		asked[i].Query.Cases = nil // they are large, and no answer repeats them
		for _, k := range kinds {
			if k.demands == nil {
				continue
			}
			start := len(demands)
			for further := range k.demands(domains, q) {
				demands = append(demands, further)
			}
			if n := len(demands) - start; n > 0 {
				asked[i].Extra = append(asked[i].Extra, btn.Extra{Kind: k.name, Demands: n})
			}
		}
	}
	return demands, asked
}

// Size is a lower bound on how much queries ask for.
type Size struct {
	Demands float64 // the number of demands
	Numbers float64 // the numbers in all answers
	Cases   float64 // cases times variables
}

// SizeOf returns how much queries ask of a model with these domains: demands, numbers to compute, and values of cases. A demand is what is
// wanted under one evidence. Each query has one of its own, and further ones if a question in it needs other evidence. Every kind of
// question is asked for its further demands, and yields none if the query does not contain such a question. domains is nil if the model is
// not known yet. SizeOf holds only one demand at a time in memory.
func SizeOf(domains []int, queries []query.Query) (size Size) {
	for i := range queries {
		q := &queries[i]
		own := Demand(q)
		size.Demands++
		size.Numbers += own.CountNumbers(domains)
		if own.Cases != nil {
			size.Cases += float64(len(own.Cases.Rows)) * float64(len(domains))
		}
		for _, k := range kinds {
			if k.demands == nil {
				continue
			}
			for further := range k.demands(domains, q) {
				size.Demands++
				size.Numbers += further.CountNumbers(domains)
			}
		}
	}
	return size
}

// AreParametric reports whether one of the queries needs every factor as a core of its own. Names need not be resolved.
func AreParametric(queries []query.Query) bool {
	return slices.ContainsFunc(queries, func(q query.Query) bool {
		d := Demand(&q)
		return d.IsParametric()
	})
}

// Results answers the queries of a job and returns one result per query. inputs[i] belongs to demand i in the sequence of Demands: first
// the demand of each query, whose assignment has Asked, then the further demands. The error of a query's total is that of its result. If no
// input has Asked, since the job has failed as a whole, there is one result per input. Cost: aggregate.AddUp for each input.
func Results(inputs []aggregate.Input) []query.Result {
	totals := make([]aggregate.Total, len(inputs))
	for i, in := range inputs {
		totals[i] = aggregate.AddUp(in)
	}

	n := len(inputs) // the number of results
	if k := slices.IndexFunc(inputs, func(in aggregate.Input) bool { return askedBy(in) == nil }); k > 0 {
		n = k // the first further demand; 0 would mean that no input has Asked
	}
	results := make([]query.Result, n)
	answers := make([]answer, n)
	next := n // the first further total of the next query
	for i := range answers {
		results[i] = totals[i].Result
		answers[i] = answer{total: &totals[i], result: &results[i], asked: &btn.Asked{}}
		askedQuery := askedBy(inputs[i])
		if askedQuery == nil {
			continue
		}
		answers[i].asked, answers[i].numbers = askedQuery, inputs[i].Assignment.Numbers
		end := min(len(totals), next+askedQuery.ExtraDemands())
		answers[i].furtherTotals, next = totals[next:end], end
		answers[i].write()
	}
	for _, k := range kinds { // questions about several queries, such as the ratio of their Z
		if k.compare == nil {
			continue
		}
		for i := range answers {
			k.compare(answers, &answers[i])
		}
	}
	return results
}

// askedBy returns the query whose own demand an input belongs to. It returns nil for a further demand, or if there is no assignment.
func askedBy(in aggregate.Input) *btn.Asked {
	if in.Assignment == nil {
		return nil
	}
	return in.Assignment.Asked
}

// write writes the answers to a query's questions into its result, kind by kind.
func (a *answer) write() {
	if file := a.asked.Query.EvidenceFile; file != "" {
		a.result.EvidenceFile = &file
	}
	for _, k := range kinds {
		// isOfZero: the question has an answer even if Z is 0.
		isAnswerable := a.result.Status == query.StatusOK && (!a.result.Zero || k.isOfZero)
		if k.answer != nil && isAnswerable {
			a.kindTotals = a.furtherTotalsOf(k.name)
			k.answer(a)
		}
	}
}

// furtherTotalsOf returns the totals of the further demands that serve one kind of question: those of a query under other evidence than its
// own. The totals of all kinds lie one kind after the other. It returns nil if the query has none of this kind.
func (a *answer) furtherTotalsOf(kind string) []aggregate.Total {
	totals := a.furtherTotals
	for _, extra := range a.asked.Extra {
		n := min(extra.Demands, len(totals)) // fewer if totals are missing
		if extra.Kind == kind {
			return totals[:n]
		}
		totals = totals[n:]
	}
	return nil
}
