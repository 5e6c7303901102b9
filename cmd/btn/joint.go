package main

// Joint marginals for people.

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/basetensor/basetensor/pkg/query"
)

// mostCells bounds the cells of a joint marginal that people get to see.
const mostCells = 64

// writeJoint writes a line per cell of a joint marginal: the values, and their probability.
func writeJoint(_ *printer, b *strings.Builder, r *query.Result) {
	j := r.Joint
	switch {
	case j == nil:
		return
	case len(j.P) > mostCells:
		fmt.Fprintf(b, "%-12s%d cells of %d variables: --json prints them\n", "joint", len(j.P), len(j.Variables))
		return
	}

	// the head, and the width of each column
	heads, states := make([]string, len(j.Variables)), make([][]string, len(j.Variables))
	width := make([]int, len(j.Variables))
	fmt.Fprintf(b, "%-12s", "joint")
	for k, v := range j.Variables {
		heads[k], states[k] = fmt.Sprintf("x_%d", v), make([]string, j.Shape[k])
		var names []string
		if j.Names != nil {
			heads[k], names = printable(j.Names[k]), j.States[k]
		}
		width[k] = utf8.RuneCountInString(heads[k])
		for x := range states[k] {
			states[k][x] = printable(query.Label(names, x))
			width[k] = max(width[k], utf8.RuneCountInString(states[k][x]))
		}
		fmt.Fprintf(b, "%*s ", width[k], heads[k])
	}

	// a line per cell, the last variable fastest
	b.WriteByte('\n')
	for cell, probability := range j.P {
		values := make([]int, len(j.Shape))
		for k := len(values) - 1; k >= 0; k-- {
			values[k] = cell % j.Shape[k]
			cell /= j.Shape[k]
		}
		fmt.Fprintf(b, "%-12s", "")
		for k, value := range values {
			fmt.Fprintf(b, "%*s ", width[k], states[k][value])
		}
		fmt.Fprintf(b, "%.6f\n", probability)
	}
}
