package main

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// explainCmd asks for the most probable assignment of all variables or of some.
type explainCmd struct {
	answering
	Map  []string `help:"${explain_map}" placeholder:"V,V"`
	Best int      `help:"List the K most probable assignments of all variables, 1,000 at most." placeholder:"K"`
}

// Run prints one result per evidence.
func (c *explainCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	return c.run(ctx, t, common, &question{query: c.query})
}

// query is the question for the assignment.
func (c *explainCmd) query(_ console.Opener, l *factorgraph.Labels) (q query.Query, err error) {
	q.MPE, q.Best = len(c.Map) == 0, c.Best
	q.Map, err = variables(l, "--map", c.Map, query.CheckSet)
	return q, err
}

// sampleCmd draws assignments.
type sampleCmd struct {
	answering
	Count int `arg:"" help:"${sample_count}"`
}

// Validate refuses to draw nothing; kong calls it.
func (c *sampleCmd) Validate() error {
	if c.Count < 1 {
		return fmt.Errorf("at least one sample is needed, not %d", c.Count)
	}
	return c.requestFlags.Validate()
}

// Run prints one result per evidence.
func (c *sampleCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	return c.run(ctx, t, common, &question{query: c.query})
}

// query is the question for samples.
func (c *sampleCmd) query(_ console.Opener, l *factorgraph.Labels) (query.Query, error) {
	if err := query.CheckSamples(len(l.Domains()), c.Count); err != nil {
		return query.Query{}, fault.New(fault.BadInput, "%d samples: %w", c.Count, err)
	}
	return query.Query{Samples: c.Count, Seed: c.Seed}, nil
}
