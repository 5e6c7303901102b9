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

// formatError is an error of writing or reading a format, or says that what was read differs from what was written.
type formatError struct{ error }

// answer returns the product's results for a case, whose request takes the route of the case.
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

// throughJSON writes a model in the native format and returns what is read of it. It is an error if that has other entries.
func throughJSON(m *factorgraph.Model) (*factorgraph.Model, error) {
	var text bytes.Buffer
	if err := modeljson.Encode(&text, m); err != nil {
		return nil, err
	}
	back, err := modeljson.Decode(&text, modeljson.Limits{})
	if err != nil {
		return nil, err
	}
	return back, equalModels(m, back)
}

// throughUAI writes a model and the observations of its queries in UAI format, and returns what is read of them. It returns a model that
// the format cannot hold unchanged: one with an entry that is no float64, or with a factor that is all 0. If sums of terms were rounded
// when they were written as tables, it returns m itself, for which the true answer is known.
func throughUAI(m *factorgraph.Model, queries []query.Query) (*factorgraph.Model, []query.Query, error) {
	// Can the format hold it?
	for _, f := range m.Factors {
		entries, isZero := oracle.ExactEntries(f.Table), true
		for _, x := range entries {
			isZero = isZero && x.IsZero()
			if !x.Equal(roundToFloat64(x)) {
				return m, queries, nil
			}
		}
		if isZero {
			return m, queries, nil
		}
	}

	// The model.
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

	// The observations of each query.
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

	if err := nearlyEqualModels(m, back); err != nil {
		return nil, nil, err
	}
	if equalModels(m, back) != nil {
		back = m
	}
	return back, out, nil
}

// writtenTolerance bounds the rounding of sums of terms that are written as tables, relative to the
// largest entry.
const writtenTolerance = 1e-12

// nearlyEqualModels returns an error unless the models a (written) and b (read) have the same domains and factors: entries of dense factors
// must be equal, and those of other kinds equal up to rounding.
func nearlyEqualModels(a, b *factorgraph.Model) error {
	if !slices.Equal(a.Domains, b.Domains) || len(a.Factors) != len(b.Factors) {
		return fmt.Errorf("domains %v and %d factors became %v and %d",
			a.Domains, len(a.Factors), b.Domains, len(b.Factors))
	}
	for j := range a.Factors {
		written, read := oracle.ExactEntries(a.Factors[j].Table), oracle.ExactEntries(b.Factors[j].Table)
		_, isDense := a.Factors[j].Table.(*tensor.Dense)
		largest := 0.0
		for _, x := range written {
			largest = max(largest, math.Abs(x.Float64()))
		}
		for i := range written {
			difference := math.Abs(written[i].Add(read[i].Neg()).Float64())
			if isDense && difference != 0 || difference > writtenTolerance*largest {
				return fmt.Errorf("factor %d: entry %d was %v and is %v", j, i, written[i].Float64(), read[i].Float64())
			}
		}
	}

	return nil
}

// roundToFloat64 returns the float64 nearest to x, or 0 if x is beyond their range.
func roundToFloat64(x oracle.Number) oracle.Number {
	f := x.Float64()
	if math.IsInf(f, 0) {
		return oracle.Number{}
	}
	return oracle.FromFloat(f, 0)
}

// equalModels returns an error unless the two models have the same domains, scopes and entries.
func equalModels(a, b *factorgraph.Model) error {
	if !slices.Equal(a.Domains, b.Domains) || len(a.Factors) != len(b.Factors) {
		return fmt.Errorf("domains %v and %d factors became %v and %d",
			a.Domains, len(a.Factors), b.Domains, len(b.Factors))
	}
	for j := range a.Factors {
		if !slices.Equal(a.Factors[j].Scope, b.Factors[j].Scope) {
			return fmt.Errorf("factor %d: scope %v became %v", j, a.Factors[j].Scope, b.Factors[j].Scope)
		}
		if !equalEntries(a.Factors[j].Table, b.Factors[j].Table) {
			return fmt.Errorf("factor %d: other entries", j)
		}
	}
	return nil
}

const (
	comparedEntries = 1 << 10 // the largest number of entries of a factor that are all compared
	drawnEntries    = 32      // the number of random entries of a larger factor that are compared
)

// equalEntries reports whether two tensors have the same dimensions and entries. It compares all entries of a small tensor, and some random
// ones of a large one.
func equalEntries(a, b tensor.Tensor) bool {
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
