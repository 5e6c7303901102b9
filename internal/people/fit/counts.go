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

// Prior is a network with the same variables, values and parents as the model. It counts like Size cases drawn from it:
// the count of an entry is Size · P(value, parents). Source: Heckerman, Geiger, Chickering, Learning Bayesian Networks,
// 1995, section 5.
type Prior struct {
	Model *factorgraph.Model
	Size  float64 // the equivalent sample size, above 0
}

// Counts has for each entry of each table how often cases had it, or are expected to have had it if values were
// missing.
type Counts struct {
	Network string      `json:"network"` // Network of the model
	Weight  float64     `json:"cases"`   // weight of all cases, after forgetting
	Tables  [][]float64 `json:"tables"`  // by table, in the order of the variables; notPossible for an entry that is 0 in the model
}

// notPossible marks an entry that is 0 in the model that counting began with.
const notPossible = -1

// Network returns a digest of the variables of a model, the names of their values, and the scopes of its factors.
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

// LoadCounts reads the counts in a file; nil if there is no file. Errors have the code bad_input if the counts are
// wrong, else infrastructure.
func LoadCounts(path string) (*Counts, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Infrastructure, err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxStateBytes {
		return nil, fault.New(fault.BadInput, "%s: no file of counts", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(fault.Infrastructure, err)
	}
	var counts Counts
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&counts); err != nil {
		return nil, fault.New(fault.BadInput, "%s: no file of counts: %w", path, err)
	}

	// Check the numbers.
	for _, table := range counts.Tables {
		if slices.ContainsFunc(table, func(n float64) bool { return n < 0 && n != notPossible }) {
			return nil, fault.New(fault.BadInput, "%s: a count is at least 0, or %d where the model has a 0", path, notPossible)
		}
	}
	if counts.Network == "" || counts.Weight < 0 {
		return nil, fault.New(fault.BadInput, "%s: no file of counts: its network or its number of cases is missing", path)
	}
	return &counts, nil
}

// WriteCounts writes counts in the form that LoadCounts reads.
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

// setAddedCounts sets the counts that are added to those of the cases: the pseudocount, those of the prior, and those
// of earlier cases. m is the model as the caller gave it.
func (f *fitting) setAddedCounts(ctx context.Context, m *factorgraph.Model) error {
	f.addedCounts = make([][]float64, len(f.cpts))
	for k, c := range f.cpts {
		f.addedCounts[k] = slices.Repeat([]float64{f.Pseudocount}, len(c.data))
	}
	if f.Prior != nil {
		if err := f.addPriorCounts(ctx, Network(m)); err != nil {
			return err
		}
	}
	if f.EarlierCounts != nil {
		return f.addEarlierCounts(Network(m))
	}
	return nil
}

// addPriorCounts adds the counts of the prior: the counts that one case without observations is expected to have in the prior's network,
// times the prior's size.
func (f *fitting) addPriorCounts(ctx context.Context, network string) error {
	if Network(f.Prior.Model) != network {
		return fault.New(fault.BadInput, "the prior is a network with other variables, values or parents than the model, or in another order")
	}
	normalised, _ := f.Prior.Model.Normalised()
	model, cpts, _, err := conditionalTables(normalised)
	if err != nil {
		return fmt.Errorf("the prior: %w", err)
	}
	if !slices.EqualFunc(cpts, f.cpts, func(a, b cpt) bool { return a.factor == b.factor && a.variable == b.variable }) {
		return fault.New(fault.BadInput, "the prior has tables of other variables than the model")
	}
	for _, c := range cpts {
		c.normalise(c.data)
	}

	// Count one case without observations that has the size as its weight. A query of cases has at least one variable: the first one, which
	// the case does not observe.
	emptyCase := &Data{variables: []int{0}, distinct: []weightedCase{{weight: f.Prior.Size}}}
	prior := &fitting{Options: f.Options, pipeline: f.pipeline, request: f.request, model: model, cpts: cpts}
	counts, _, err := prior.countCases(ctx, "prior", emptyCase, func(float64) {})
	if err != nil {
		return fmt.Errorf("the prior: %w", err)
	}
	return f.addToAll(counts, "the prior")
}

// addEarlierCounts adds the counts of earlier cases. If an entry of the model is 0 although the counts say that it is
// possible, reopenRows makes its whole row proportional to the counts, because fitting leaves a 0 as it is.
func (f *fitting) addEarlierCounts(network string) error {
	if f.EarlierCounts.Network != network {
		return fault.New(fault.BadInput, "the counts are of a network with other variables, values or parents, or in another order")
	}
	counts := make([][]float64, len(f.EarlierCounts.Tables))
	for k, table := range f.EarlierCounts.Tables {
		for _, n := range table {
			counts[k] = append(counts[k], max(0, n)) // 0 for notPossible
		}
	}
	if err := f.addToAll(counts, "the file of counts"); err != nil {
		return err
	}
	for k, c := range f.cpts {
		c.reopenRows(f.EarlierCounts.Tables[k])
	}
	return nil
}

// addToAll adds counts, by table, to the added ones. source names them in an error.
func (f *fitting) addToAll(counts [][]float64, source string) error {
	if !slices.EqualFunc(counts, f.addedCounts, func(a, b []float64) bool { return len(a) == len(b) }) {
		return fault.New(fault.BadInput, "%s has other tables than the model", source)
	}
	for k := range counts {
		for i, n := range counts[k] {
			f.addedCounts[k][i] += n
		}
	}
	return nil
}

// reopenRows looks for rows with an entry that is 0 in the table although the counts say that it is possible. It makes each
// such row proportional to counts + 1, so that its possible entries are above 0; the others, which the counts mark as
// notPossible, become 0.
func (c cpt) reopenRows(counts []float64) {
	c.forEachRow(func(first int) {
		// The sum of counts + 1 over the possible entries of the row.
		sum, hasZero := 0.0, false
		for x := range c.values {
			if k := first + x*c.stride; counts[k] != notPossible {
				sum += counts[k] + 1
				hasZero = hasZero || c.data[k] == 0
			}
		}
		for x := range c.values {
			if k := first + x*c.stride; hasZero {
				c.data[k] = max(0, counts[k]+1) / sum // notPossible + 1 is 0
			}
		}
	})
}

// totalCounts returns the counts after these cases: those of earlier ones plus theirs. Entries that are 0 in the model
// that fitting began with are marked notPossible.
func (f *fitting) totalCounts(counts [][]float64) *Counts {
	total := &Counts{Network: Network(f.model), Weight: f.data.Weight, Tables: counts}
	if f.EarlierCounts != nil {
		total.Weight += f.EarlierCounts.Weight
	}
	for k, table := range f.startTables {
		for i, p := range table {
			switch {
			case p == 0:
				total.Tables[k][i] = notPossible
			case f.EarlierCounts != nil:
				total.Tables[k][i] += math.Max(0, f.EarlierCounts.Tables[k][i])
			}
		}
	}
	return total
}
