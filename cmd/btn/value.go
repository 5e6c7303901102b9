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

// queryOf returns the query of a result; nil if it is not known.
func (p *printer) queryOf(r *query.Result) *query.Query {
	if r.Query < 0 || r.Query >= len(p.queries) {
		return nil
	}
	return &p.queries[r.Query]
}

// observedBy returns the set of observed variables of a result's query.
func (p *printer) observedBy(r *query.Result) map[int]bool {
	variables := map[int]bool{}
	if q := p.queryOf(r); q != nil {
		for _, o := range q.Evidence.Hard {
			variables[o.Var] = true
		}
	}
	return variables
}

// evidenceText returns the evidence of a result: the name that the request has for it, and the observations unless they
// are the name.
func (p *printer) evidenceText(r *query.Result) string {
	q := p.queryOf(r)
	switch {
	case r.EvidenceFile != nil && (q == nil || q.Evidence.IsEmpty() || named.Inline(*r.EvidenceFile)):
		return *r.EvidenceFile
	case r.EvidenceFile != nil:
		return *r.EvidenceFile + ": " + p.observationsText(q.Evidence, mostObserved)
	case q == nil:
		return "not known: the request is not stored, or not any more"
	case q.Cases != nil:
		return fmt.Sprintf("%d cases", len(q.Cases.Rows))
	case q.Evid != "":
		return q.Evid
	case q.Evidence.IsEmpty():
		return "none"
	}
	return p.observationsText(q.Evidence, mostObserved)
}

// observationsText lists evidence as --evid takes it, at most limit observations.
func (p *printer) observationsText(e factorgraph.Evidence, limit int) string {
	var terms []string
	for _, o := range e.Hard {
		terms = append(terms, p.observationText(o))
	}
	for _, l := range e.Soft {
		const digits = 4
		terms = append(terms, p.likelihoodText(l, digits))
	}
	if n := len(terms) - limit; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(terms[:limit], ", "), n)
	}
	return strings.Join(terms, ", ")
}

// likelihoodText writes weights of a variable's values as --evid and --believe take them, with this many digits; −1:
// all.
func (p *printer) likelihoodText(l factorgraph.Likelihood, digits int) string {
	weights := make([]string, len(l.Weights))
	for x, w := range l.Weights {
		weights[x] = strconv.FormatFloat(w, 'g', digits, 64)
	}
	return p.variableName(l.Var) + "=" + strings.Join(weights, "/")
}

// writeValue writes the probability of an event, if one was asked for beside the evidence, then P(evidence) or Z. It
// reports whether it has said why Z is 0.
func (p *printer) writeValue(b *strings.Builder, line func(name, format string, args ...any), r *query.Result) (saysWhyZero bool) {
	if event := p.eventOf(r); event != nil && p.isToldWithEvidence(event) {
		b.WriteString(p.eventText(event) + "\n")
	}
	if r.Status == query.StatusOK && r.Ratio != nil {
		b.WriteString(p.eventText(r) + "\n")
	}
	switch {
	case r.Status != query.StatusOK:
		line("failed", "%s: %s (%s)", r.Error.Code, inPlainWords(r.Error.Message), r.Error.Stage)
	case r.Zero:
		line(p.zName(r), "0: %s", p.impossibleText(r))
		if r.Conflict != nil && (p.formula == nil || len(r.Conflict.Observations) > 0) {
			line("impossible", "%s", p.conflictText(r.Conflict))
		}
		clauses := p.contradictionText(r)
		if clauses != "" {
			line("clauses", "%s", clauses)
		}
		return r.Conflict != nil || clauses != ""
	case r.LogZ == nil:
	default:
		name, value, log10 := p.zName(r), formatExp(*r.LogZ), ""
		if !p.names.Any() || p.formula != nil {
			log10 = ", log10 " + formatLog(*r.Log10Z)
		}
		if n, isWhole := wholeCount(*r.LogZ); isWhole && r.Exact && p.formula != nil {
			name, value = "count", strconv.FormatInt(n, 10)
		}
		line(name, "%s (%s%s)", value, p.logText("", *r.LogZ), log10)
	}
	return false
}

// zName returns the name of Z of a result: P(evidence) of a Bayesian network under evidence, unless likelihoods are
// above 1, and count of a formula without a solution.
func (p *printer) zName(r *query.Result) string {
	q := p.queryOf(r)
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

// impossibleText says what it means that Z is 0.
func (p *printer) impossibleText(r *query.Result) string {
	q := p.queryOf(r)
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
		if q := p.queryOf(&p.results[i]); q != nil && q.Over == r.Query+1 {
			return &p.results[i]
		}
	}
	return nil
}

// isToldWithEvidence reports whether all that an event's result says is told with the result of its evidence, the query that it is asked
// over. It is if both results are exact, and the event has no warning of its own besides that its Z is 0, which its probability says.
func (p *printer) isToldWithEvidence(event *query.Result) bool {
	q := p.queryOf(event)
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
	areExact := event.Exact && condition.Exact && condition.Status == query.StatusOK
	return areExact && !p.verbose && p.eventOf(condition) == event
}

// eventText writes the probability of an event under the evidence in one line.
func (p *printer) eventText(r *query.Result) string {
	equals := "="
	if !r.Exact {
		equals = "≈"
	}
	name := p.ratioName(r)
	if r.Ratio.Ln == nil {
		return name + " = 0: the event is impossible under the evidence"
	}
	return fmt.Sprintf("%s %s %s (%s)", name, equals, formatExp(*r.Ratio.Ln), p.logText("", *r.Ratio.Ln))
}

// ratioName returns the name of the ratio of a result: P(event | condition) if it is a probability.
func (p *printer) ratioName(r *query.Result) string {
	condition, number := p.condition(r)
	switch {
	case r.Ratio.P == nil:
		return fmt.Sprintf("Z over Z of query %d", number)
	case condition == nil:
		return "P(event | evidence)"
	}
	name := p.eventName(p.queryOf(r), condition)
	if terms := p.conditionTerms(condition); len(terms) > 0 {
		name += " | " + strings.Join(terms, ", ")
	}
	return "P(" + name + ")"
}

// condition returns the query over which a result is asked, and its number; nil if it is not known.
func (p *printer) condition(r *query.Result) (*query.Query, int) {
	q := p.queryOf(r)
	if q == nil || q.Over == 0 || q.Over > len(p.queries) {
		return nil, 0
	}
	return &p.queries[q.Over-1], q.Over - 1
}

// eventName lists the observations of a query that its condition does not have. It is "event" if they are many, or if
// likelihoods are among them.
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
	return p.observationsText(event, mostNamed)
}

// conditionTerms lists what a query supposes: its evidence, or "evidence" if that is long, the variables that it sets,
// and "beliefs" if it has any.
func (p *printer) conditionTerms(q *query.Query) []string {
	var terms []string
	switch n := len(q.Evidence.Hard) + len(q.Evidence.Soft); {
	case n > mostNamed:
		terms = append(terms, "evidence")
	case n > 0:
		terms = append(terms, p.observationsText(q.Evidence, mostNamed))
	}
	for _, o := range q.Do {
		terms = append(terms, "do("+p.observationText(o)+")")
	}
	if len(q.Believe) > 0 {
		terms = append(terms, "beliefs")
	}
	return terms
}

// formatExp writes e^ln with six digits, also far beyond float64. A probability below 1 does not look like 1.
func formatExp(ln float64) string {
	x := math.Exp(ln)
	switch {
	case ln == 0:
		return "1"
	case math.IsInf(x, 1) || x < 1e-300: // as 10^digits · 10^exponent
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
	return formatProbability(x, -math.Expm1(ln))
}

// surely is the distance to 1 that is rounding.
const certainty = 1e-12

// formatProbability writes x with six digits, given 1 − x. If x would look like 1 and is not, it writes 1 − x instead.
func formatProbability(x, below float64) string {
	text := strconv.FormatFloat(x, 'g', 6, 64)
	if text == "1" && below > certainty {
		return fmt.Sprintf("1 - %.2g", below)
	}
	return text
}

// logText writes a natural logarithm of a thing in the unit of the output, with ten digits after the point.
func (p *printer) logText(thing string, ln float64) string {
	base := "ln"
	if p.bits {
		base = "log2"
	}
	if thing != "" {
		base += " " + thing
	}
	return base + " " + formatLog(p.inUnit(ln))
}

// inUnit returns a natural logarithm in the unit of the output.
func (p *printer) inUnit(ln float64) float64 {
	if p.bits {
		return ln / math.Ln2
	}
	return ln
}

// formatLog writes a logarithm with ten digits after the point. A value that rounds to 0 has no sign.
func formatLog(x float64) string {
	s := strconv.FormatFloat(x, 'f', 10, 64)
	if strings.Trim(s, "-0.") == "" {
		return strings.TrimPrefix(s, "-")
	}
	return s
}

// variableName returns the name of a variable for people, x_3 if variables have none.
func (p *printer) variableName(v int) string {
	if len(p.names.Variables) == 0 {
		return fmt.Sprintf("x_%d", v)
	}
	return printable(p.names.Variable(v))
}

// observationText writes an observation for people: as a literal if the model is a formula.
func (p *printer) observationText(o factorgraph.Observation) string {
	if p.formula != nil {
		return strings.Repeat("-", 1-o.Value) + p.names.Variable(o.Var)
	}
	return p.variableName(o.Var) + "=" + printable(p.names.Value(o.Var, o.Value))
}
