package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/basetensor/basetensor/internal/doors/cases"
	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// sampleCmd draws assignments.
type sampleCmd struct {
	answering
	Count  int    `arg:"" help:"${sample_count}"`
	Format string `help:"text, or csv, which btn cases and btn fit read." enum:"text,csv" default:"text" group:"output"`
}

// Validate refuses to draw nothing, and two kinds of output at once; kong calls it.
func (c *sampleCmd) Validate() error {
	switch {
	case c.Count < 1:
		return fmt.Errorf("COUNT, the number of samples, is at least 1, not %d", c.Count)
	case c.Format == "csv" && c.JSON:
		return errors.New("--json and --format csv exclude each other: there is one output")
	case c.Format == "csv" && len(c.Evid) > 1:
		return errors.New("--format csv has the samples under one evidence")
	}
	return c.requestFlags.Validate()
}

// Run draws samples under each evidence, and prints one result for each.
func (c *sampleCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	c.needs, c.csv = "sample", c.Format == "csv"
	return c.run(ctx, t, common, &question{query: c.query})
}

// query returns the question for samples.
func (c *sampleCmd) query(_ console.Opener, l *factorgraph.Labels) (query.Query, error) {
	if err := query.CheckSamples(len(l.Domains()), c.Count); err != nil {
		return query.Query{}, fault.New(fault.BadInput, "COUNT: %w", err)
	}
	return query.Query{Samples: c.Count, Seed: c.Seed}, nil
}

// writeCSV writes the samples as a CSV file.
func (p *printer) writeCSV(r *query.Result) error {
	if r.Status != query.StatusOK || r.Samples == nil {
		return nil
	}
	return cases.WriteSamples(p.out, p.labels, r.Samples)
}

// writeSamples writes a line per sample, below a line with the names of the variables.
func writeSamples(_ *printer, b *strings.Builder, r *query.Result) {
	s := r.Samples
	if s == nil || len(s.Assignments) == 0 {
		return
	}
	fmt.Fprintf(b, "%-12s%d, seed %d, a line each", "samples", len(s.Assignments), s.Seed)
	if s.Effective != nil {
		fmt.Fprintf(b, " behind its weight, together worth %.4g of the same weight", *s.Effective)
	}
	b.WriteByte('\n')

	// the head
	rows := make([][]string, 1+len(s.Assignments))
	if s.Weights != nil {
		rows[0] = append(rows[0], "weight")
	}
	for v := range s.Assignments[0] {
		name := fmt.Sprintf("x_%d", v)
		if s.Names != nil {
			name = printable(s.Names[v])
		}
		rows[0] = append(rows[0], name)
	}

	// the samples
	for k, assignment := range s.Assignments {
		if s.Weights != nil {
			rows[k+1] = append(rows[k+1], fmt.Sprintf("%.6f", s.Weights[k]))
		}
		for v, x := range assignment {
			var states []string
			if s.States != nil {
				states = s.States[v]
			}
			rows[k+1] = append(rows[k+1], printable(query.Label(states, x)))
		}
	}
	writeColumns(b, rows)
}

// writeColumns writes rows in aligned columns, two blanks apart.
func writeColumns(b *strings.Builder, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for c, cell := range row {
			width[c] = max(width[c], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for c, cell := range row {
			fmt.Fprintf(&line, "%-*s  ", width[c], cell)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
