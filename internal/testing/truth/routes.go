package truth

// The ways that a request takes to its answer.

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// formatError says that the model read from a format differs from the written one.
type formatError struct{ error }

// answer sends a case along its route.
func answer(ctx context.Context, c *Case) ([]query.Result, error) {
	m, queries := c.Model, c.Queries
	var err error
	switch c.Route {
	case RouteJSON:
		m, err = throughJSON(m)
	case RouteUAI:
		m, queries, err = throughUAI(m, queries)
	case RouteWire:
		return throughWire(ctx, c)
	}
	if err != nil {
		return nil, formatError{err}
	}
	return infer.Run(ctx, infer.Request{Job: "truth", Model: m, Queries: queries, Settings: c.Settings})
}

func throughJSON(m *factorgraph.Model) (*factorgraph.Model, error) {
	var text bytes.Buffer
	if err := modeljson.Encode(&text, m); err != nil {
		return nil, err
	}
	back, err := modeljson.Decode(&text, modeljson.Limits{})
	if err != nil {
		return nil, err
	}
	return back, same(m, back)
}

// throughUAI writes and reads a model of tables, and observations. Models that the format cannot
// hold pass unchanged.
func throughUAI(m *factorgraph.Model, queries []query.Query) (*factorgraph.Model, []query.Query, error) {
	for _, f := range m.Factors {
		table, zero := oracle.ExactEntries(f.Table), true
		for _, x := range table {
			zero = zero && x.IsZero()
			if !x.Equal(rounded(x)) {
				return m, queries, nil
			}
		}
		if zero {
			return m, queries, nil
		}
	}

	var text bytes.Buffer
	switch err := uai.Write(&text, m); {
	case fault.CodeOf(err) == fault.Unsupported: // an entry in which a table would lose digits
		return m, queries, nil
	case err != nil:
		return nil, nil, err
	}

	back, err := uai.Read(&text, uai.Limits{})
	if err != nil {
		return nil, nil, err
	}
	out := slices.Clone(queries)
	for q := range out {
		var observed bytes.Buffer
		if err := uai.WriteEvidence(&observed, factorgraph.Evidence{Hard: out[q].Evidence.Hard}); err != nil {
			return nil, nil, err
		}
		ev, err := uai.ReadEvidence(&observed, m.Domains)
		if err != nil {
			return nil, nil, err
		}
		out[q].Evidence.Hard = ev.Hard
	}

	if err := near(m, back); err != nil {
		return nil, nil, err
	}
	if same(m, back) != nil { // a sum of terms was rounded: the query is about the model itself
		back = m
	}
	return back, out, nil
}

// writtenTolerance bounds the rounding of sums of terms that are written as tables, relative to the
// largest entry.
const writtenTolerance = 1e-12

// near checks that tables came back as they were, and other kinds of factors up to rounding.
func near(a, b *factorgraph.Model) error {
	if !slices.Equal(a.Domains, b.Domains) || len(a.Factors) != len(b.Factors) {
		return fmt.Errorf("domains %v and %d factors became %v and %d",
			a.Domains, len(a.Factors), b.Domains, len(b.Factors))
	}
	for j := range a.Factors {
		was, is := oracle.ExactEntries(a.Factors[j].Table), oracle.ExactEntries(b.Factors[j].Table)
		_, table := a.Factors[j].Table.(*tensor.Dense)
		largest := 0.0
		for _, x := range was {
			largest = max(largest, math.Abs(x.Float64()))
		}
		for i := range was {
			off := math.Abs(was[i].Add(is[i].Neg()).Float64())
			if table && off != 0 || off > writtenTolerance*largest {
				return fmt.Errorf("factor %d: entry %d was %v and is %v", j, i, was[i].Float64(), is[i].Float64())
			}
		}
	}

	return nil
}

// rounded is the float64 nearest to x.
func rounded(x oracle.Number) oracle.Number {
	f := x.Float64()
	if f-f != 0 {
		return oracle.Number{}
	}
	return oracle.FromFloat(f, 0)
}

// same checks that two models have the same entries.
func same(a, b *factorgraph.Model) error {
	if !slices.Equal(a.Domains, b.Domains) || len(a.Factors) != len(b.Factors) {
		return fmt.Errorf("domains %v and %d factors became %v and %d",
			a.Domains, len(a.Factors), b.Domains, len(b.Factors))
	}
	for j := range a.Factors {
		if !slices.Equal(a.Factors[j].Scope, b.Factors[j].Scope) {
			return fmt.Errorf("factor %d: scope %v became %v", j, a.Factors[j].Scope, b.Factors[j].Scope)
		}
		if !sameEntries(a.Factors[j].Table, b.Factors[j].Table) {
			return fmt.Errorf("factor %d: other entries", j)
		}
	}
	return nil
}

// comparedEntries bounds the entries of a factor that are all compared; of a larger one a few are,
// drawn at random.
const (
	comparedEntries = 1 << 10
	drawnEntries    = 32
)

// sameEntries compares two tensors entry by entry: all of a small one, some of a large one.
func sameEntries(a, b tensor.Tensor) bool {
	dims := a.Dims()
	if !slices.Equal(dims, b.Dims()) {
		return false
	}
	if n, err := tensor.Size(dims); err == nil && n <= comparedEntries {
		return slices.EqualFunc(oracle.ExactEntries(a), oracle.ExactEntries(b), oracle.Number.Equal)
	}

	rng, x := rand.New(rand.NewPCG(uint64(len(dims)), 1)), make([]int, len(dims))
	for range drawnEntries {
		for i, d := range dims {
			x[i] = rng.IntN(d)
		}
		if !oracle.ExactEntry(a, x).Equal(oracle.ExactEntry(b, x)) {
			return false
		}
	}

	return true
}
