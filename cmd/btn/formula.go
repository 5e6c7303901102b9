package main

// What is said of models that are formulas in conjunctive normal form.

import (
	"fmt"
	"strings"

	"github.com/basetensor/basetensor/internal/doors/cases"
	"github.com/basetensor/basetensor/internal/models/dimacs"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

const (
	mostClauses  = 12 // that are listed
	mostLiterals = 8  // of one of them
)

// formulaOf returns the model if it is a formula, else nil.
func formulaOf(m *factorgraph.Model) *factorgraph.Model {
	if dimacs.IsFormula(m) {
		return m
	}
	return nil
}

// conflictText says which observations contradict each other. They are literals if the model is a formula.
func (p *printer) conflictText(c *query.Conflict) string {
	if p.formula == nil {
		return cases.DescribeConflict(c)
	}
	literals := make([]string, len(c.Observations))
	for k, o := range c.Observations {
		if literals[k] = "the weights of " + p.names.Variable(o.Variable); o.Value != nil { // no weights, but one value
			literals[k] = p.observationText(factorgraph.Observation{Var: o.Variable, Value: *o.Value})
		}
	}
	return strings.Join(literals, " with ")
}

// contradictionText lists the clauses of a formula without a solution that contradict each other, with their lines. It
// is "" if the model is no formula, or if propagation does not show which clauses they are.
func (p *printer) contradictionText(r *query.Result) string {
	q := p.queryOf(r)
	if p.formula == nil || q == nil {
		return ""
	}
	clauses := dimacs.Contradiction(p.formula, q.Evidence.Hard)
	var list []string
	for k, j := range clauses {
		if k == mostClauses {
			list = append(list, fmt.Sprintf("and %d more", len(clauses)-k))
			break
		}
		list = append(list, p.clauseText(j))
	}
	switch len(clauses) {
	case 0:
		return ""
	case 1:
		return list[0] + " cannot hold"
	}
	return strings.Join(list, "; ") + " contradict each other"
}

// clauseText writes the literals of clause j by the names of variables, and its line.
func (p *printer) clauseText(j int) string {
	literals, _ := dimacs.Literals(p.formula.Factors[j])
	words := make([]string, 0, mostLiterals+1)
	for k, l := range literals {
		if k == mostLiterals {
			words = append(words, fmt.Sprintf("and %d more", len(literals)-k))
			break
		}
		// Literal v + 1 is variable v at 1, and −(v + 1) is v at 0.
		words = append(words, p.observationText(factorgraph.Observation{Var: max(l, -l) - 1, Value: min(max(l, 0), 1)}))
	}
	text := strings.Join(words, " ")
	if len(words) == 0 {
		text = "an empty clause"
	}
	switch lines := p.formula.Lines; {
	case j < len(lines) && lines[j] > 0:
		return fmt.Sprintf("%s (line %d)", text, lines[j])
	case len(words) == 0: // without lines: a projection leaves it
		return text + ", once hidden variables are eliminated,"
	}
	return text
}
