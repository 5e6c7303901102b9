package fit

// Counts that are added to those of the cases: of a prior, and of earlier cases.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Prior is a network with the same variables, values and parents that counts as so many cases drawn from it: the count of an entry is
// Size · P(value, parents). Source: Heckerman, Geiger, Chickering, Learning Bayesian Networks, 1995, section 5.
type Prior struct {
	Model *factorgraph.Model
	Size  float64 // the equivalent sample size, above 0
}

// Counts are how often cases had each entry of each table, or are expected to have had it if values were missing.
type Counts struct {
	Network string      `json:"network"` // Network of the model
	Weight  float64     `json:"cases"`   // of all cases, after forgetting
	Tables  [][]float64 `json:"tables"`  // by table, in the order of the variables; notPossible for an entry that is 0 in the model
}

// notPossible marks an entry that is 0 in the model that counting began with.
const notPossible = -1

// Network identifies the variables of a model with the names of their values, and the scopes of its factors.
func Network(m *factorgraph.Model) string {
	scopes := make([][]int, len(m.Factors))
	for f := range m.Factors {
		scopes[f] = m.Factors[f].Scope
	}
	b, err := json.Marshal([]any{m.Domains, m.Names, m.States, scopes})
	if err != nil {
		panic(err) // numbers and texts have a JSON form
	}
	return wire.Digest(b)
}

// LoadCounts reads the counts in a file, nil if there is no file. Errors carry bad_input for counts that are wrong, and infrastructure.
func LoadCounts(path string) (*Counts, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Infrastructure, err)
	}
	if !info.Mode().IsRegular() || info.Size() > mostState {
		return nil, fault.New(fault.BadInput, "%s: no file of counts", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(fault.Infrastructure, err)
	}
	var c Counts
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&c); err != nil {
		return nil, fault.New(fault.BadInput, "%s: no file of counts: %w", path, err)
	}
	for _, table := range c.Tables {
		if slices.ContainsFunc(table, func(n float64) bool { return n < 0 && n != notPossible }) {
			return nil, fault.New(fault.BadInput, "%s: a count is at least 0, or %d where the model has a 0", path, notPossible)
		}
	}
	if c.Network == "" || c.Weight < 0 {
		return nil, fault.New(fault.BadInput, "%s: no file of counts: its network or its number of cases is missing", path)
	}
	return &c, nil
}

// WriteCounts writes counts as LoadCounts reads them.
func WriteCounts(w io.Writer, c *Counts) error { return json.NewEncoder(w).Encode(c) }

// Forget multiplies all counts by a share from 0 to 1.
func (c *Counts) Forget(share float64) {
	c.Weight *= share
	for _, table := range c.Tables {
		for k := range table {
			if table[k] != notPossible {
				table[k] *= share
			}
		}
	}
}

// addPrior sets the counts that are added to those of the cases. m is the model as it was given.
func (f *fitting) addPrior(ctx context.Context, m *factorgraph.Model) error {
	f.prior = make([][]float64, len(f.cpts))
	for k, c := range f.cpts {
		f.prior[k] = slices.Repeat([]float64{f.Pseudocount}, len(c.data))
	}
	if f.Prior != nil {
		if err := f.addEquivalent(ctx, Network(m)); err != nil {
			return err
		}
	}
	if f.Counts != nil {
		return f.addCounts(Network(m))
	}
	return nil
}

// addEquivalent adds the counts of a prior: those that one case without observations is expected to have, times the equivalent size.
func (f *fitting) addEquivalent(ctx context.Context, network string) error {
	if Network(f.Prior.Model) != network {
		return fault.New(fault.BadInput, "the prior is a network with other variables, values or parents than the model, or in another order")
	}
	normal, _ := f.Prior.Model.Normalised()
	model, cpts, _, err := tables(normal)
	if err != nil {
		return fmt.Errorf("the prior: %w", err)
	}
	if !slices.EqualFunc(cpts, f.cpts, func(a, b cpt) bool { return a.factor == b.factor && a.variable == b.variable }) {
		return fault.New(fault.BadInput, "the prior has tables of other variables than the model")
	}
	for _, c := range cpts {
		c.normalise(c.data)
	}
	empty := &Data{variables: []int{0}, distinct: []distinct{{weight: f.Prior.Size}}}
	prior := &fitting{Options: f.Options, pipeline: f.pipeline, request: f.request, model: model, cpts: cpts}
	counts, _, err := prior.count(ctx, "prior", empty, func(float64) {})
	if err != nil {
		return fmt.Errorf("the prior: %w", err)
	}
	return f.add(counts, "the prior")
}

// addCounts adds the counts of earlier cases. A row with an entry of 0 that the counts say is possible begins anew: from counts + 1.
func (f *fitting) addCounts(network string) error {
	if f.Counts.Network != network {
		return fault.New(fault.BadInput, "the counts are of a network with other variables, values or parents, or in another order")
	}
	counts := make([][]float64, len(f.Counts.Tables))
	for k, table := range f.Counts.Tables {
		for _, n := range table {
			counts[k] = append(counts[k], max(0, n))
		}
	}
	if err := f.add(counts, "the file of counts"); err != nil {
		return err
	}
	for k, c := range f.cpts {
		c.open(f.Counts.Tables[k])
	}
	return nil
}

// add adds counts by table.
func (f *fitting) add(counts [][]float64, what string) error {
	if !slices.EqualFunc(counts, f.prior, func(a, b []float64) bool { return len(a) == len(b) }) {
		return fault.New(fault.BadInput, "%s has other tables than the model", what)
	}
	for k := range counts {
		for i, n := range counts[k] {
			f.prior[k][i] += n
		}
	}
	return nil
}

// open makes entries of 0 that counts say are possible positive, with their whole row: shares of counts + 1.
func (c cpt) open(counts []float64) {
	c.rows(func(from int) {
		sum, isClosed := 0.0, false
		for x := range c.values {
			if k := from + x*c.stride; counts[k] != notPossible {
				sum += counts[k] + 1
				isClosed = isClosed || c.data[k] == 0
			}
		}
		for x := range c.values {
			if k := from + x*c.stride; isClosed {
				c.data[k] = max(0, counts[k]+1) / sum // 0 for one that is not possible
			}
		}
	})
}

// added returns the counts after these cases: those of earlier ones and theirs.
func (f *fitting) added(counts [][]float64) *Counts {
	after := &Counts{Network: Network(f.model), Weight: f.data.Weight, Tables: counts}
	if f.Counts != nil {
		after.Weight += f.Counts.Weight
	}
	for k, given := range f.given {
		for i, p := range given {
			switch {
			case p == 0:
				after.Tables[k][i] = notPossible
			case f.Counts != nil:
				after.Tables[k][i] += math.Max(0, f.Counts.Tables[k][i])
			}
		}
	}
	return after
}
