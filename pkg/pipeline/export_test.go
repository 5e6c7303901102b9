package pipeline

import (
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/pkg/query"
)

// WithArithmetic returns c for a contract-worker on another processor.
func (c Config) WithArithmetic(a *workers.Arithmetic) Config {
	c.arithmetic = a
	return c
}

// WithReplan returns c for a learn-worker that plans by other settings than the jobs'.
func (c Config) WithReplan(replan func(query.Settings) query.Settings) Config {
	c.replan = replan
	return c
}
