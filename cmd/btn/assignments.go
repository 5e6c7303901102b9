package main

// Assignments for people.

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/basetensor/basetensor/pkg/query"
)

// writeExplanation writes the most probable explanation, a line per variable, and a line per next best one.
func writeExplanation(p *printer, b *strings.Builder, r *query.Result) {
	m := r.MPE
	if m == nil {
		return
	}
	// how it compares with all others
	unique, unlisted := "others are as good", "none"
	if len(m.Others) > 0 {
		unlisted = "none that is not listed"
	}
	switch {
	case m.Unique:
		unique = "no other is as good"
	case m.Optimal != nil && *m.Optimal:
		unique = "none is better by more than a factor of " + formatFactor(*m.Gap)
	case m.LnBound != nil:
		unique = fmt.Sprintf("the best found, %s is better than the last by more than a factor of %s", unlisted, formatFactor(*m.Gap))
	}

	// the assignment, and the next best ones
	fmt.Fprintf(b, "%-12s%s, %s\n", "best", p.share(m.LnWeight, r), unique)
	writeAssignment(b, nil, m.Assignment, m.Names, m.States)
	if len(m.Others) > 0 || m.All {
		end := map[bool]string{true: "; no further one is possible"}[m.All]
		fmt.Fprintf(b, "%-12s%d, a line each with what differs from the best%s\n", "next best", len(m.Others), end)
	}
	for k, o := range m.Others {
		fmt.Fprintf(b, "%4d  %s  %s\n", k+2, p.share(o.LnWeight, r), differences(m, &o))
	}
}

// share writes the probability of an assignment with this ln weight if Z is known exactly, and else its weight.
func (p *printer) share(lnWeight float64, r *query.Result) string {
	name, ln := "weight", lnWeight
	if r.Exact && r.LogZ != nil {
		name, ln = "probability", min(0, lnWeight-*r.LogZ)
	}
	return fmt.Sprintf("%s %s (%s)", name, formatExp(ln), p.logText("weight", lnWeight))
}

// differences lists the values of an assignment that differ from those of the best one.
func differences(best *query.Explanation, o *query.Alternative) string {
	var changes []string
	for v, x := range o.Assignment {
		if x == best.Assignment[v] {
			continue
		}
		name, state := fmt.Sprintf("x_%d", v), strconv.Itoa(x)
		if best.Names != nil {
			name, state = printable(best.Names[v]), printable(o.States[v])
		}
		changes = append(changes, name+"="+state)
	}
	return strings.Join(changes, ", ")
}

// formatFactor writes e^ln with three digits.
func formatFactor(ln float64) string { return strconv.FormatFloat(math.Exp(ln), 'g', 3, 64) }

// writeMap writes the most probable assignment of some variables, a line for each.
func writeMap(p *printer, b *strings.Builder, r *query.Result) {
	m := r.Map
	if m == nil {
		return
	}
	trust, share := "the best", p.share(m.LnWeight, r)
	switch {
	case m.Optimal != nil && *m.Optimal:
		trust = "none is better by more than a factor of " + formatFactor(*m.Gap)
	case !m.Exact && m.LnBound != nil:
		trust = "the best found, none is above " + p.share(*m.LnBound, r)
	}
	if m.LnUpper != nil {
		share += " to " + p.share(*m.LnUpper, r)
	}
	fmt.Fprintf(b, "%-12s%s, %s\n", "best", share, trust)
	writeAssignment(b, m.Variables, m.Assignment, m.Names, m.States)
}

// writeAssignment writes a line for each variable with its value. nil variables are all variables of the model.
func writeAssignment(b *strings.Builder, variables, values []int, names, states []string) {
	width := 12
	for _, name := range names {
		width = max(width, utf8.RuneCountInString(printable(name)))
	}
	for k, x := range values {
		name, state := fmt.Sprintf("x_%d", k), strconv.Itoa(x)
		if variables != nil {
			name = fmt.Sprintf("x_%d", variables[k])
		}
		if names != nil {
			name, state = printable(names[k]), printable(states[k])
		}
		fmt.Fprintf(b, "%-*s %s\n", width, name, state)
	}
}
