package main

// Assignments for people.

import (
	"fmt"
	"math"
	"strings"

	"github.com/basetensor/basetensor/pkg/query"
)

// writeAssignments writes the assignments that were asked for.
func writeAssignments(b *strings.Builder, r *query.Result, n query.Names) {
	if r.MPE != nil {
		writeExplanation(b, r, n)
	}
	if r.Map != nil {
		writeMap(b, r.Map, n)
	}
	if r.Samples != nil {
		writeSamples(b, r)
	}
}

// writeExplanation writes the most probable explanation, a line per variable, and a line per next best one.
func writeExplanation(b *strings.Builder, r *query.Result, n query.Names) {
	m := r.MPE
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
	for v, x := range m.Assignment {
		fmt.Fprintf(b, "%-12s %s\n", called(n, v), shown(n.Value(v, x)))
	}
	if len(m.Others) > 0 || m.All {
		end := map[bool]string{true: "; no further one is possible"}[m.All]
		fmt.Fprintf(b, "%-12s%d, a line each, x_0 first after the ln weight%s\n", "next best", len(m.Others), end)
	}
	for _, o := range m.Others {
		fmt.Fprintln(b, decimals(o.LnWeight), row(o.Assignment))
	}
}

// writeMap writes the most probable assignment of some variables, a line for each.
func writeMap(b *strings.Builder, m *query.MarginalMap, n query.Names) {
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
	for k, x := range m.Assignment {
		fmt.Fprintf(b, "%-12s %s\n", called(n, m.Variables[k]), shown(n.Value(m.Variables[k], x)))
	}
}

// writeSamples writes a line per sample.
func writeSamples(b *strings.Builder, r *query.Result) {
	fmt.Fprintf(b, "%-12s%d, seed %d, a line each, x_0 first", "samples", len(r.Samples), *r.Seed)
	if r.EffectiveSamples != nil {
		fmt.Fprintf(b, " after its weight, worth %.4g of the same weight", *r.EffectiveSamples)
	}
	b.WriteByte('\n')
	for k, s := range r.Samples {
		if r.SampleWeights != nil {
			fmt.Fprintf(b, "%.6f ", r.SampleWeights[k])
		}
		fmt.Fprintln(b, row(s))
	}
}

// row writes values, the first variable's first.
func row(values []int) string { return strings.Trim(fmt.Sprint(values), "[]") }
