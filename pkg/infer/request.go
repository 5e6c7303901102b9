// Package infer answers a request in plain calls: reparameterise, learn, contract, aggregate. The
// pipeline runs the same four functions in four processes and must reproduce these answers bit for
// bit.
package infer

import (
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Request is a model, the questions to it, and their settings.
type Request struct {
	Job      string // [A-Za-z0-9_-]{1,64}, the job of the results
	Model    *factorgraph.Model
	Queries  []query.Query  // at least one
	Settings query.Settings // zero fields have their defaults
}
