package exact

import (
	"context"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/exact/pairwise"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Options bound a contraction.
type Options struct {
	Memory   int64 // bytes for tables; 0 means query.DefaultMemory
	Threads  int   // 0 means all processors; the value has the same bits for any number
	From, To int64 // slices, From ≤ s < To; To = 0 means all
}

// Answer is the result of Prepared.Answer and Wide. Probabilities are
// normalised over the given slices alone.
type Answer struct {
	Z scaled.Number
	// Rows are the probabilities of every variable's values;
	// nil where they were not prepared for, or Z is 0.
	Rows  [][]float64
	Joint []float64 // the joint marginal of the set, the last variable fastest; nil likewise
	Flops float64
	// Digits is the number of decimal digits of Z that cancelled among terms of
	// both signs: log10 of Σ|terms| over |Z|.
	Digits float64
	// Rounding bounds the error of Z by roundings of terms of both signs; nil where there are none.
	Rounding *scaled.Number
	// Doubt says why Z is not known to be exact:
	// terms that may be missing, digits that cancelled. Empty where it is.
	Doubt string
	// Marginals are the unnormalised marginals of the variables' values, of
	// Wide: also where Z is 0 and terms cancel.
	Marginals [][]scaled.Number
}

// Signed reports whether terms of Z have both signs, and may cancel.
func (p *Prepared) Signed() bool { return p.simple.Expression.Signed() }

// Answer returns the part of Z that the slices From ≤ s < To make up, with marginals of every
// variable, of a set together, or both, as it was prepared and planned. Where an entry is below 0
// the sum of the absolute values of the terms is computed as well, along the same tree.
func (p *Prepared) Answer(ctx context.Context, c *Tree, o Options) (Answer, error) {
	if err := p.fits(c); err != nil {
		return Answer{}, err
	}

	var r pairwise.Result
	var stats pairwise.Stats
	var err error
	if p.marginals || p.cells != nil {
		r, stats, err = pairwise.Marginals(ctx, p.simple.Expression, tree(c), options(c, o))
	} else {
		r.Z, stats, err = pairwise.Contract(ctx, p.simple.Expression, tree(c), options(c, o))
	}

	a := Answer{Z: r.Z, Flops: stats.Flops}
	if err != nil {
		return a, err
	}

	if err := p.judge(ctx, c, o, stats, &a); err != nil {
		return a, err
	}

	if r.Marginals == nil || p.given.Scale.IsZero() {
		return a, err
	}

	if p.cells != nil {
		if a.Joint, err = p.joint(r.Marginals); err != nil {
			return a, fmt.Errorf("exact: joint marginal: %w", err)
		}
	}

	if p.marginals {
		a.Rows, err = p.rows(r.Marginals)
	}
	return a, err
}

// judge states the doubts about a contraction's result: terms that were lost,
// digits that cancelled.
func (p *Prepared) judge(
	ctx context.Context, c *Tree, o Options, stats pairwise.Stats, a *Answer,
) error {
	if stats.Lost {
		a.Doubt = lost
	}
	if !p.given.Signed() {
		return nil
	}

	steps, err := p.roundings(c)
	if err != nil {
		return err
	}

	if !p.simple.Expression.Signed() {
		a.cancel(a.Z.Abs(), steps)
		return nil
	}

	abs, more, err := pairwise.Contract(ctx, p.simple.Expression.Abs(), tree(c), options(c, o))
	if err != nil {
		return err
	}
	a.Flops += more.Flops
	if a.cancel(abs, steps); more.Lost && a.Doubt == "" {
		a.Doubt = lost
	}
	if stats.Lost || more.Lost {
		a.Rounding = nil
	}
	return nil
}

// roundings bounds how often a term of Z was rounded,
// on the way to the simplified expression and in it.
func (p *Prepared) roundings(c *Tree) (float64, error) {
	steps, err := pairwise.Roundings(p.Hypergraph(), tree(c), c.Slices)
	return float64(len(p.net.Rounded)) + p.simple.Rounding + float64(len(p.given.Tables)) +
		steps, err
}

// rows returns the marginals of the network's variables from those computed for the contracted tables'
// indices.
func (p *Prepared) rows(marginals [][]float64) (rows [][]float64, err error) {
	for v := range p.net.Variables {
		row, err := p.row(v, marginals)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// row returns the marginal of one variable likewise.
func (p *Prepared) row(v int, marginals [][]float64) ([]float64, error) {
	i := p.given.Variables[v]
	row, err := p.simple.Recover(i, marginals)
	if err != nil {
		return nil, fmt.Errorf("exact: marginal of variable %d: %w", v, err)
	}
	if !finite(row) {
		return nil, fault.New(fault.Unsupported, "%w: marginal of variable %d",
			sumproduct.ErrNotFinite, v)
	}
	return p.full(v, i, row), nil
}

// finite reports whether all shares are numbers:
// shares of cancelling terms may exceed the total beyond the range of
// float64.
func finite(row []float64) bool {
	return !slices.ContainsFunc(row, func(q float64) bool { return q-q != 0 })
}

// valueOf is the value of a variable that the k-th value of its index i is.
func (p *Prepared) valueOf(i, k int) int {
	if support := p.given.Support[i]; support != nil {
		return support[k]
	}
	return k
}

// full writes the row of index i as one over all values of variable v:
// those that the network excludes have probability 0.
func (p *Prepared) full(v, i int, row []float64) []float64 {
	support := p.given.Support[i]
	if support == nil {
		return row
	}
	out := make([]float64, p.net.Variables[v].Domain)
	for k, x := range support {
		out[x] = row[k]
	}
	return out
}

// fits says whether the contraction was planned for this network under this evidence.
func (p *Prepared) fits(c *Tree) error {
	if shape := p.Shape(); shape != c.Shape || c.Marginals != p.marginals ||
		c.Joint != (p.cells != nil) {
		return fault.Wrap(fault.Internal,
			fmt.Errorf("%w: shape %.12s, planned for %.12s", ErrOtherNetwork, shape, c.Shape))
	}
	return nil
}

// options are those of package pairwise for slices of a tree.
func options(c *Tree, o Options) pairwise.Options {
	return pairwise.Options{
		Memory:  o.Memory,
		Threads: o.Threads,
		Slices:  c.Slices,
		From:    o.From,
		To:      o.To,
	}
}
