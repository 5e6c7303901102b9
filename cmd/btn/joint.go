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

// writeJoint writes a line per cell: the values, and their probability.
func writeJoint(b *strings.Builder, j *query.Joint, n query.Names) {
	if len(j.P) > mostCells {
		fmt.Fprintf(b, "%-12s%d cells of %d variables: --json prints them\n", "joint", len(j.P), len(j.Variables))
		return
	}
	width := make([]int, len(j.Variables))
	fmt.Fprintf(b, "%-12s", "joint")
	for k, v := range j.Variables {
		name := called(n, v)
		width[k] = utf8.RuneCountInString(name)
		for x := range j.Shape[k] {
			width[k] = max(width[k], utf8.RuneCountInString(shown(n.Value(v, x))))
		}
		fmt.Fprintf(b, "%*s ", width[k], name)
	}

	b.WriteByte('\n')
	for cell, x := range j.P {
		values := make([]int, len(j.Shape))
		for k := len(values) - 1; k >= 0; k-- {
			values[k] = cell % j.Shape[k]
			cell /= j.Shape[k]
		}
		fmt.Fprintf(b, "%-12s", "")
		for k, value := range values {
			fmt.Fprintf(b, "%*s ", width[k], shown(n.Value(j.Variables[k], value)))
		}
		fmt.Fprintf(b, "%.6f\n", x)
	}
}
