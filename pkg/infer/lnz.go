package infer

// One model and one number: the calls for a program that needs no pipeline.

import (
	"context"
	"errors"
	"math"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

var (
	// ErrNotExact: the value is known, but rounding may have changed
	// more of it than an exact answer may. Run gives it, with the reason.
	ErrNotExact = errors.New("infer: the answer is not exact")
	// ErrImpossible: the evidence has probability 0, so nothing has a probability given it.
	ErrImpossible = errors.New("infer: the evidence is impossible")
)

// LnZ returns ln Z of m under evidence in nats, exactly up to rounding:
//
//	Z = Σ_{x agrees with ev} Π_c φ_c(x_c)
//
// The zero Evidence observes nothing. ln Z is −Inf where Z is 0. Errors: fault.BadInput for a model
// or evidence that contradicts itself, fault.OverBudget with the figures where no exact way fits
// the default memory and work, ErrNotExact (fault.Unsupported), the context's. Run also estimates,
// and says how right it is.
// Cost: exponential in the width of the best contraction tree found, after simplification.
// Source: Hamid and Braun, section 2 and Lemma 1.
func LnZ(ctx context.Context, m *factorgraph.Model, ev factorgraph.Evidence) (float64, error) {
	r, err := runExact(ctx, m, query.Query{Evidence: ev})
	switch {
	case err != nil:
		return 0, err
	case r.Zero:
		return math.Inf(-1), nil
	}
	return *r.LogZ, nil
}

// Marginals returns P(x_i = a | ev) for all variables i and their values a, exactly up to rounding:
// one row per variable with one probability per value, in [0, 1], which sum to 1. Observed
// variables have 0 and 1. Errors: as LnZ; ErrImpossible (fault.BadInput) where Z is 0. Cost:
// about three times LnZ's.
func Marginals(
	ctx context.Context, m *factorgraph.Model, ev factorgraph.Evidence,
) ([][]float64, error) {
	r, err := runExact(ctx, m, query.Query{Evidence: ev, Marginals: true})
	switch {
	case err != nil:
		return nil, err
	case r.Zero:
		return nil, fault.Wrap(fault.BadInput, ErrImpossible)
	}
	return query.Probabilities(r.Marginals), nil
}

// runExact returns the answer to one query by method exact.
func runExact(ctx context.Context, m *factorgraph.Model, q query.Query) (*query.Result, error) {
	results, err := Run(ctx, Request{
		Job:      "call",
		Model:    m,
		Queries:  []query.Query{q},
		Settings: query.Settings{Method: query.MethodExact},
	})

	if err != nil {
		return nil, err
	}

	r := &results[0]
	switch {
	case r.Error != nil:
		return nil, fault.New(r.Error.Code, "infer: %s", r.Error.Message)
	case !r.Exact:
		return nil, fault.New(fault.Unsupported, "%w: %v", ErrNotExact, r.Warnings)
	}
	return r, nil
}
