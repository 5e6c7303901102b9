package pipeline

import "github.com/basetensor/basetensor/internal/workers"

// WithArithmetic returns c for a contract-worker on another processor.
func (c Config) WithArithmetic(a *workers.Arithmetic) Config {
	c.arithmetic = a
	return c
}
