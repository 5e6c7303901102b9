package main

import (
	"context"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// explainCmd asks for the most probable assignment of all variables or of some.
type explainCmd struct {
	answering
	Map  []string `help:"${explain_map}" placeholder:"V,V"`
	Best int      `help:"List the K most probable assignments of all variables, 1,000 at most." placeholder:"K"`
}

// Run finds the most probable assignment under each evidence, and prints one result for each.
func (c *explainCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	c.needs = "assignment"
	return c.run(ctx, t, common, &question{query: c.query})
}

// query returns the question for the assignment.
func (c *explainCmd) query(_ console.Opener, l *factorgraph.Labels) (q query.Query, err error) {
	q.MPE, q.Best = len(c.Map) == 0, c.Best
	q.Map, err = findVariables(l, "--map", c.Map, query.CheckSet)
	return q, err
}
