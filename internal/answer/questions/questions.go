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

// kind is a kind of question. Its functions are called for every query, and do nothing if the query does not ask it.
type kind struct {
	name string // that no other kind has
	// want adds what the question needs of a plan under the query's evidence.
	want func(q *query.Query, w *btn.Want)
	// demands yields further demands on a model with these domains, which serve this question alone; nil: there are never any.
	demands func(domains []int, q *query.Query) iter.Seq[btn.Demand]
	// answer writes the answer into the result of a query whose status is ok, and whose Z is not 0 unless isOfZero.
	answer   func(a *answer)
	isOfZero bool
	// compare writes what follows from the totals of several queries, when all other answers are there; nil: nothing does.
	compare func(all []answer, a *answer)
}

// kinds lists all kinds, in the sequence in which they are answered.
var kinds = []kind{
	marginals, joint, belief, gradients, sensitivity, explanation, marginalMAP, samples, likelihood, conflict, information, event,
}

// answer is a query with what was computed for it, and its result.
type answer struct {
	asked   *btn.Asked
	numbers []btn.CoreNumbers // of the model, if derivatives of the terms with a target are wanted
	total   *aggregate.Total
	served  []aggregate.Total // of the demands that serve this query alone
	extra   []aggregate.Total // those of served that serve the kind whose function is called
	to      *query.Result
}

// warn adds a warning to the result.
func (a *answer) warn(text string) { a.to.Warnings = append(a.to.Warnings, text) }

// Demand returns what a query needs under its evidence. Of what is asked by name it says alone whether that is parametric.
func Demand(q *query.Query) btn.Demand {
	d := btn.Demand{Evidence: evidenceOf(q)}
	for _, k := range kinds {
		if k.want != nil {
			k.want(q, &d.Want)
		}
	}
	return d
}

// Demands returns the demands of queries on a model with these domains: one for each, and after these the ones that serve a query alone, in
// the sequence of the queries. asked says how the answers of the queries follow from them, one for each query.
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
			before := len(demands)
			for d := range k.demands(domains, q) {
				demands = append(demands, d)
			}
			if n := len(demands) - before; n > 0 {
				asked[i].Extra = append(asked[i].Extra, btn.Extra{Kind: k.name, Demands: n})
			}
		}
	}
	return demands, asked
}

// Size is how much queries ask for, at least.
type Size struct {
	Demands float64
	Numbers float64 // of all answers
	Cases   float64 // cases times variables
}

// SizeOf returns how much queries ask of a model with these domains; of a model that is not known yet domains is nil. It holds one demand
// at a time.
func SizeOf(domains []int, queries []query.Query) (size Size) {
	for i := range queries {
		q := &queries[i]
		d := Demand(q)
		size.Demands++
		size.Numbers += d.Numbers(domains)
		if d.Cases != nil {
			size.Cases += float64(len(d.Cases.Rows)) * float64(len(domains))
		}
		for _, k := range kinds {
			if k.demands == nil {
				continue
			}
			for d := range k.demands(domains, q) {
				size.Demands++
				size.Numbers += d.Numbers(domains)
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

// Results answers the queries of a job, inputs[i] being demand i as Demands returns them: the first ones have what was asked. There is one
// result per query. Queries whose totals have an error have it in their results. Cost: aggregate.Add for each input.
func Results(inputs []aggregate.Input) []query.Result {
	totals := make([]aggregate.Total, len(inputs))
	for i, in := range inputs {
		totals[i] = aggregate.Add(in)
	}

	n := len(inputs) // the results: without queries, of a job that failed as a whole, one for each input
	if k := slices.IndexFunc(inputs, func(in aggregate.Input) bool { return askedBy(in) == nil }); k > 0 {
		n = k
	}
	results := make([]query.Result, n)
	all := make([]answer, n)
	next := n // of the totals that serve a query alone
	for i := range all {
		results[i] = totals[i].Result
		all[i] = answer{total: &totals[i], to: &results[i], asked: &btn.Asked{}}
		asked := askedBy(inputs[i])
		if asked == nil {
			continue
		}
		all[i].asked, all[i].numbers = asked, inputs[i].Assignment.Numbers
		end := min(len(totals), next+asked.Served())
		all[i].served, next = totals[next:end], end
		all[i].write()
	}
	for _, k := range kinds {
		if k.compare == nil {
			continue
		}
		for i := range all {
			k.compare(all, &all[i])
		}
	}
	return results
}

// askedBy returns the query that a demand's result answers; nil if there is none.
func askedBy(in aggregate.Input) *btn.Asked {
	if in.Assignment == nil {
		return nil
	}
	return in.Assignment.Asked
}

// write writes the answers to a query's questions.
func (a *answer) write() {
	if file := a.asked.Query.EvidenceFile; file != "" {
		a.to.EvidenceFile = &file
	}
	for _, k := range kinds {
		if k.answer != nil && a.to.Status == query.StatusOK && (!a.to.Zero || k.isOfZero) {
			a.extra = a.servedTo(k.name)
			k.answer(a)
		}
	}
}

// servedTo returns the totals of the demands that serve one kind alone.
func (a *answer) servedTo(kind string) []aggregate.Total {
	totals := a.served
	for _, extra := range a.asked.Extra {
		n := min(extra.Demands, len(totals))
		if extra.Kind == kind {
			return totals[:n]
		}
		totals = totals[n:]
	}
	return nil
}
