package main

// Assignments for people.

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/pkg/query"
)

// writeExplanation writes the most probable explanation, a line per variable, and a line per next best one.
func writeExplanation(_ *printer, b *strings.Builder, r *query.Result) {
	m := r.MPE
	if m == nil {
		return
	}
	unique, unlisted := "others are as good", "none"
	if len(m.Others) > 0 {
		unlisted = "none that is not listed"
	}
	switch {
	case m.Unique:
		unique = "no other is as good"
	case m.Optimal != nil && *m.Optimal:
		unique = fmt.Sprintf("none is better by more than %.2g", *m.Gap)
	case m.LnBound != nil:
		unique = fmt.Sprintf("the best found, %s is above %s (gap %.4g)", unlisted, decimals(*m.LnBound), *m.Gap)
	}
	fmt.Fprintf(b, "%-12sln weight %s nats, %s\n", "mpe", decimals(m.LnWeight), unique)
	if r.Exact && r.LogZ != nil {
		fmt.Fprintf(b, "%-12sP(mpe | evidence) %.10g\n", "", math.Exp(m.LnWeight-*r.LogZ))
	}
	writeAssignment(b, nil, m.Assignment, m.Names, m.States)
	if len(m.Others) > 0 || m.All {
		end := map[bool]string{true: "; no further one is possible"}[m.All]
		fmt.Fprintf(b, "%-12s%d, a line each, x_0 first after the ln weight%s\n", "next best", len(m.Others), end)
	}
	for _, o := range m.Others {
		fmt.Fprintln(b, decimals(o.LnWeight), row(o.Assignment))
	}
}

// writeMap writes the most probable assignment of some variables, a line for each.
func writeMap(_ *printer, b *strings.Builder, r *query.Result) {
	m := r.Map
	if m == nil {
		return
	}
	trust, weight := "the best", decimals(m.LnWeight)
	switch {
	case m.Optimal != nil && *m.Optimal:
		trust = fmt.Sprintf("none is better by more than %.2g", *m.Gap)
	case !m.Exact && m.LnBound != nil:
		trust = "the best found, none is above " + decimals(*m.LnBound)
	}
	if m.LnUpper != nil {
		weight += " to " + decimals(*m.LnUpper)
	}
	fmt.Fprintf(b, "%-12sln weight %s nats, %s\n", "map", weight, trust)
	writeAssignment(b, m.Variables, m.Assignment, m.Names, m.States)
}

// writeAssignment writes a line per variable: its value. nil variables are all.
func writeAssignment(b *strings.Builder, variables, values []int, names, states []string) {
	for k, x := range values {
		name, state := fmt.Sprintf("x_%d", k), strconv.Itoa(x)
		if variables != nil {
			name = fmt.Sprintf("x_%d", variables[k])
		}
		if names != nil {
			name, state = shown(names[k]), shown(states[k])
		}
		fmt.Fprintf(b, "%-12s %s\n", name, state)
	}
}

// writeSamples writes a line per sample.
func writeSamples(_ *printer, b *strings.Builder, r *query.Result) {
	s := r.Samples
	if s == nil {
		return
	}
	fmt.Fprintf(b, "%-12s%d, seed %d, a line each, x_0 first", "samples", len(s.Assignments), s.Seed)
	if s.Effective != nil {
		fmt.Fprintf(b, " after its weight, worth %.4g of the same weight", *s.Effective)
	}
	b.WriteByte('\n')
	for k, x := range s.Assignments {
		if s.Weights != nil {
			fmt.Fprintf(b, "%.6f ", s.Weights[k])
		}
		fmt.Fprintln(b, row(x))
	}
}

// row writes values, the first variable's first.
func row(values []int) string { return strings.Trim(fmt.Sprint(values), "[]") }
