package main

// The first lines of an answer: the evidence, P(evidence) or Z, and P(event | evidence).

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/models/named"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

const (
	mostObserved = 12 // observations that are listed
	mostNamed    = 3  // observations on one side of P( | )
)

// query returns the query of a result; nil if it is not known.
func (p *printer) query(r *query.Result) *query.Query {
	if r.Query < 0 || r.Query >= len(p.queries) {
		return nil
	}
	return &p.queries[r.Query]
}

// observed returns the observed variables of a result.
func (p *printer) observed(r *query.Result) map[int]bool {
	variables := map[int]bool{}
	if q := p.query(r); q != nil {
		for _, o := range q.Evidence.Hard {
			variables[o.Var] = true
		}
	}
	return variables
}

// evidence is the evidence of a result: the name that the request has for it, and the observations unless they are the name.
func (p *printer) evidence(r *query.Result) string {
	q := p.query(r)
	switch {
	case r.EvidenceFile != nil && (q == nil || q.Evidence.IsEmpty() || named.Inline(*r.EvidenceFile)):
		return *r.EvidenceFile
	case r.EvidenceFile != nil:
		return *r.EvidenceFile + ": " + p.observations(q.Evidence, mostObserved)
	case q == nil:
		return "not known: the request is not stored, or not any more"
	case q.Cases != nil:
		return fmt.Sprintf("%d cases", len(q.Cases.Rows))
	case q.Evid != "":
		return q.Evid
	case q.Evidence.IsEmpty():
		return "none"
	}
	return p.observations(q.Evidence, mostObserved)
}

// observations lists evidence as --evid takes it, up to a number of observations.
func (p *printer) observations(e factorgraph.Evidence, listed int) string {
	var terms []string
	for _, o := range e.Hard {
		terms = append(terms, p.observation(o))
	}
	for _, l := range e.Soft {
		terms = append(terms, p.likelihood(l, 4))
	}
	if n := len(terms) - listed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(terms[:listed], ", "), n)
	}
	return strings.Join(terms, ", ")
}

// likelihood writes weights of a variable's values as --evid and --believe take them, with so many digits; -1: all.
func (p *printer) likelihood(l factorgraph.Likelihood, digits int) string {
	weights := make([]string, len(l.Weights))
	for x, w := range l.Weights {
		weights[x] = strconv.FormatFloat(w, 'g', digits, 64)
	}
	return p.variable(l.Var) + "=" + strings.Join(weights, "/")
}

// value writes the probability of an event, then P(evidence) or Z. It reports whether it has said why Z is 0.
func (p *printer) value(b *strings.Builder, line func(name, format string, args ...any), r *query.Result) (isTold bool) {
	if event := p.eventOf(r); event != nil && p.isTold(event) {
		b.WriteString(p.event(event) + "\n")
	}
	if r.Status == query.StatusOK && r.Ratio != nil {
		b.WriteString(p.event(r) + "\n")
	}
	switch {
	case r.Status != query.StatusOK:
		line("failed", "%s: %s (%s)", r.Error.Code, plain(r.Error.Message), r.Error.Stage)
	case r.Zero:
		line(p.called(r), "0: %s", p.impossible(r))
		if r.Conflict != nil && (p.formula == nil || len(r.Conflict.Observations) > 0) {
			line("impossible", "%s", p.conflict(r.Conflict))
		}
		clauses := p.contradiction(r)
		if clauses != "" {
			line("clauses", "%s", clauses)
		}
		return r.Conflict != nil || clauses != ""
	case r.LogZ == nil:
	default:
		name, value, log10 := p.called(r), magnitude(*r.LogZ), ""
		if !p.names.Any() || p.formula != nil {
			log10 = ", log10 " + decimals(*r.Log10Z)
		}
		if n, ok := wholeCount(*r.LogZ); ok && r.Exact && p.formula != nil {
			name, value = "count", strconv.FormatInt(n, 10)
		}
		line(name, "%s (%s%s)", value, p.log("", *r.LogZ), log10)
	}
	return false
}

// called is the name of Z of a result. Likelihoods above 1 are no probabilities.
func (p *printer) called(r *query.Result) string {
	q := p.query(r)
	if p.formula != nil && r.Zero {
		return "count"
	}
	if !p.isBayes || q == nil || q.Cases != nil || q.Evidence.IsEmpty() {
		return "Z"
	}
	for _, s := range q.Evidence.Soft {
		if slices.Max(s.Weights) > 1 {
			return "Z"
		}
	}
	return "P(evidence)"
}

// impossible is the meaning of Z = 0.
func (p *printer) impossible(r *query.Result) string {
	q := p.query(r)
	hasNoEvidence := q != nil && q.Evidence.IsEmpty() && q.Evid == ""
	isByEvidence := r.Conflict != nil && len(r.Conflict.Observations) > 0
	isWithout := hasNoEvidence || r.Conflict != nil && len(r.Conflict.Observations) == 0 // Z is 0 without evidence
	switch {
	case p.formula != nil && isWithout:
		return "the formula has no solution"
	case p.formula != nil:
		return "the formula has no solution under the evidence"
	case isByEvidence:
		return "the evidence is impossible"
	case isWithout:
		return "the model is impossible without any evidence"
	}
	return "the evidence or the model is impossible"
}

// eventOf returns the result whose event is asked over the evidence of r; nil if there is none.
func (p *printer) eventOf(r *query.Result) *query.Result {
	for i := range p.results {
		if q := p.query(&p.results[i]); q != nil && q.Over == r.Query+1 {
			return &p.results[i]
		}
	}
	return nil
}

// isTold reports whether all that a result says is told with the evidence that it is asked over: it is exact, and has no warning of its
// own.
func (p *printer) isTold(event *query.Result) bool {
	q := p.query(event)
	if q == nil || q.Over == 0 || q.Over > len(p.results) {
		return false
	}
	if event.Status != query.StatusOK || event.Ratio == nil || event.Ratio.P == nil {
		return false
	}
	condition := &p.results[q.Over-1]
	for _, w := range event.Warnings {
		if !slices.Contains(condition.Warnings, w) && !strings.HasPrefix(w, "Z is 0: ") {
			return false
		}
	}
	return event.Exact && condition.Exact && condition.Status == query.StatusOK && !p.verbose && p.eventOf(condition) == event
}

// event is the probability of an event under the evidence, in one line.
func (p *printer) event(r *query.Result) string {
	equals := "="
	if !r.Exact {
		equals = "≈"
	}
	name := p.ratio(r)
	if r.Ratio.Ln == nil {
		return name + " = 0: the event is impossible under the evidence"
	}
	return fmt.Sprintf("%s %s %s (%s)", name, equals, magnitude(*r.Ratio.Ln), p.log("", *r.Ratio.Ln))
}

// ratio is the name of the ratio of a result: P(event | condition) if that is a probability.
func (p *printer) ratio(r *query.Result) string {
	condition, number := p.condition(r)
	switch {
	case r.Ratio.P == nil:
		return fmt.Sprintf("Z over Z of query %d", number)
	case condition == nil:
		return "P(event | evidence)"
	}
	name := p.eventName(p.query(r), condition)
	if terms := p.conditionTerms(condition); len(terms) > 0 {
		name += " | " + strings.Join(terms, ", ")
	}
	return "P(" + name + ")"
}

// condition returns the query that a result is asked over, and its number; nil if it is not known.
func (p *printer) condition(r *query.Result) (*query.Query, int) {
	q := p.query(r)
	if q == nil || q.Over == 0 || q.Over > len(p.queries) {
		return nil, 0
	}
	return &p.queries[q.Over-1], q.Over - 1
}

// eventName lists the observations of a query that its condition does not have: "event" if they are many, or likelihoods are among them.
func (p *printer) eventName(asked, condition *query.Query) string {
	event := factorgraph.Evidence{}
	for _, o := range asked.Evidence.Hard {
		if !slices.Contains(condition.Evidence.Hard, o) {
			event.Hard = append(event.Hard, o)
		}
	}
	if n := len(event.Hard); n == 0 || n > mostNamed || len(asked.Evidence.Soft) != len(condition.Evidence.Soft) {
		return "event"
	}
	return p.observations(event, mostNamed)
}

// conditionTerms are the evidence of a query, "evidence" if it is long, what it does and whether it has beliefs.
func (p *printer) conditionTerms(q *query.Query) []string {
	var terms []string
	switch n := len(q.Evidence.Hard) + len(q.Evidence.Soft); {
	case n > mostNamed:
		terms = append(terms, "evidence")
	case n > 0:
		terms = append(terms, p.observations(q.Evidence, mostNamed))
	}
	for _, o := range q.Do {
		terms = append(terms, "do("+p.observation(o)+")")
	}
	if len(q.Believe) > 0 {
		terms = append(terms, "beliefs")
	}
	return terms
}

// magnitude writes e^ln with six digits, also far beyond float64; a probability below 1 does not look like 1.
func magnitude(ln float64) string {
	x := math.Exp(ln)
	switch {
	case ln == 0:
		return "1"
	case math.IsInf(x, 1) || x < 1e-300:
		exponent, digits := math.Modf(ln / math.Ln10)
		if digits < 0 {
			exponent, digits = exponent-1, digits+1
		}
		mantissa := math.Pow(10, digits)
		if mantissa >= 10-5e-6 { // it would print as 10.00000
			mantissa, exponent = 1, exponent+1
		}
		return fmt.Sprintf("%.5fe%+.0f", mantissa, exponent)
	}
	return probability(x, -math.Expm1(ln))
}

// surely is the distance to 1 that is rounding.
const surely = 1e-12

// probability writes x with six digits, given 1 − x.
func probability(x, below float64) string {
	text := strconv.FormatFloat(x, 'g', 6, 64)
	if text == "1" && below > surely {
		return fmt.Sprintf("1 - %.2g", below)
	}
	return text
}

// log writes a natural logarithm of something in the unit that was asked for, with ten digits after the point.
func (p *printer) log(thing string, ln float64) string {
	base := "ln"
	if p.bits {
		base = "log2"
	}
	if thing != "" {
		base += " " + thing
	}
	return base + " " + decimals(p.unit(ln))
}

// unit is a natural logarithm in the unit that was asked for.
func (p *printer) unit(ln float64) float64 {
	if p.bits {
		return ln / math.Ln2
	}
	return ln
}

// decimals writes a logarithm with ten digits after the point; a value that rounds to 0 has no sign.
func decimals(x float64) string {
	s := strconv.FormatFloat(x, 'f', 10, 64)
	if strings.Trim(s, "-0.") == "" {
		return strings.TrimPrefix(s, "-")
	}
	return s
}

// variable is a variable in a line for people.
func (p *printer) variable(v int) string {
	if len(p.names.Variables) == 0 {
		return fmt.Sprintf("x_%d", v)
	}
	return shown(p.names.Variable(v))
}

// observation is an observation in a line for people: of a formula a literal.
func (p *printer) observation(o factorgraph.Observation) string {
	if p.formula != nil {
		return strings.Repeat("-", 1-o.Value) + p.names.Variable(o.Var)
	}
	return p.variable(o.Var) + "=" + shown(p.names.Value(o.Var, o.Value))
}
