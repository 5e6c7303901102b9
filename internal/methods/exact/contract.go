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

// Answer is the result of Prepared.AnswerSlices and ContractWide. Probabilities are
// normalised over the given slices alone.
type Answer struct {
	Z scaled.Number
	// Rows are the probabilities of the values of every variable. nil: the network was not prepared for them, or Z is 0.
	Rows  [][]float64
	Joint []float64 // the joint marginal of the set, the last variable fastest; nil as for Rows
	Flops float64
	// Digits is the number of decimal digits of Z that cancelled among terms of
	// both signs: log10 of Σ|terms| over |Z|.
	Digits float64
	// Rounding bounds the error of Z by roundings of terms of both signs; nil: all terms have one sign.
	Rounding *scaled.Number
	// Doubt states why Z may not be exact: terms may be missing, or digits cancelled. Empty: Z is exact up to rounding.
	Doubt string
	// Marginals are the unnormalised marginals of ContractWide and of AnswerGroups, which exist also if Z is 0 because terms cancel.
	Marginals [][]scaled.Number
}

// HasNegativeEntries reports whether the simplified expression has entries below 0, so that terms of Z may cancel.
func (p *Prepared) HasNegativeEntries() bool { return p.simple.Expression.Signed() }

// AnswerSlices contracts the slices o.From ≤ s < o.To along the tree c, and returns their share of Z. If the network was prepared for
// them, it also returns the marginals of all variables, or the joint marginal of a set, or both. If an entry is below 0, it also
// contracts the absolute values along the same tree, which bounds the rounding.
func (p *Prepared) AnswerSlices(ctx context.Context, c *Tree, o Options) (Answer, error) {
	if err := p.fits(c); err != nil {
		return Answer{}, err
	}

	// The contraction.
	var r pairwise.Result
	var stats pairwise.Stats
	var err error
	if p.needsMarginals() {
		r, stats, err = pairwise.Marginals(ctx, p.simple.Expression, tree(c), options(c, o))
	} else {
		r.Z, stats, err = pairwise.Contract(ctx, p.simple.Expression, tree(c), options(c, o))
	}
	a := Answer{Z: r.Z, Flops: stats.Flops}
	if err != nil {
		return a, err
	}

	// What is known of its errors.
	if err := p.judge(ctx, c, o, stats, &a); err != nil {
		return a, err
	}

	if r.Marginals == nil || p.given.Scale.IsZero() { // no marginals are wanted, or Z is 0
		return a, nil
	}
	err = p.recoverAll(&a, r.Marginals)
	return a, err
}

// recoverAll sets the joint marginal and the marginals of all variables of an answer, if the network was prepared for them. marginals has
// those of the indices of the simplified tables.
func (p *Prepared) recoverAll(a *Answer, marginals [][]float64) (err error) {
	if p.cells != nil {
		if a.Joint, err = p.recoverJoint(marginals); err != nil {
			return fmt.Errorf("exact: joint marginal: %w", err)
		}
	}
	if p.marginals {
		a.Rows, err = p.recoverRows(marginals)
	}
	return err
}

// judge fills in what is known of the error of the answer a: Doubt, Digits and Rounding. stats are those of its contraction along c.
// p.given is the network before the simplification, and p.simple.Expression has the simplified tables, which were contracted.
//
//   - If terms were lost below the range of float64, Doubt says so.
//   - If no entry of p.given is below 0, Digits and Rounding stay as they are, 0 and nil.
//   - Otherwise Digits are those that cancelled, and Rounding bounds the roundings of all terms. Both follow from the sum of absolute
//     values. That is |Z| if no simplified entry is below 0. If one is, the absolute values are contracted along the same tree; if terms
//     were lost in one of the two contractions, Rounding is nil.
func (p *Prepared) judge(
	ctx context.Context, c *Tree, o Options, stats pairwise.Stats, a *Answer,
) error {
	if stats.Lost {
		a.Doubt = doubtLost
	}
	if !p.given.Signed() {
		return nil
	}
	roundings, err := p.countRoundings(c)
	if err != nil {
		return err
	}

	if !p.simple.Expression.Signed() {
		a.noteCancellation(a.Z.Abs(), roundings) // also if terms were lost: then Doubt says that more may be missing
		return nil
	}
	abs, absStats, err := pairwise.Contract(ctx, p.simple.Expression.Absolute(), tree(c), options(c, o))
	if err != nil {
		return err
	}
	a.Flops += absStats.Flops
	a.noteCancellation(abs, roundings)
	if absStats.Lost && a.Doubt == "" {
		a.Doubt = doubtLost
	}
	if stats.Lost || absStats.Lost { // the error may be more than rounding
		a.Rounding = nil
	}
	return nil
}

// countRoundings returns an upper bound of the number of roundings of a term of Z, in the simplification and in the contraction along c.
func (p *Prepared) countRoundings(c *Tree) (float64, error) {
	steps, err := pairwise.Roundings(p.Hypergraph(), tree(c), c.Slices)
	return float64(len(p.net.Rounded)) + p.simple.Rounding + float64(len(p.given.Tables)) +
		steps, err
}

// recoverRows returns the marginals of all variables of the network, by variable. marginals has those of the indices of the simplified
// tables.
func (p *Prepared) recoverRows(marginals [][]float64) (rows [][]float64, err error) {
	for v := range p.net.Variables {
		row, err := p.recoverRow(v, marginals)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// recoverRow returns the marginal of variable v over its domain. marginals has those of the indices of the simplified tables. The error is
// unsupported if a probability is not finite.
func (p *Prepared) recoverRow(v int, marginals [][]float64) ([]float64, error) {
	i := p.given.Variables[v]
	row, err := p.simple.Recover(i, marginals)
	if err != nil {
		return nil, fmt.Errorf("exact: marginal of variable %d: %w", v, err)
	}
	if !isFinite(row) {
		return nil, fault.New(fault.Unsupported, "%w: marginal of variable %d",
			sumproduct.ErrNotFinite, v)
	}
	return p.overDomain(v, i, row), nil
}

// isFinite reports whether all shares are finite. If terms cancel, a share may exceed the total by more than float64 holds.
func isFinite(row []float64) bool {
	return !slices.ContainsFunc(row, func(q float64) bool { return q-q != 0 })
}

// valueOf returns the value of a variable that value k of its index i stands for: entry k of the index's support, the list of the values
// that the network leaves the variable. Without such a list the two are the same.
func (p *Prepared) valueOf(i, k int) int {
	if support := p.given.Support[i]; support != nil {
		return support[k]
	}
	return k
}

// overDomain returns the probabilities of all values of variable v. row has those of the values of its index i, which are the values that
// the network leaves the variable. All other values have probability 0.
func (p *Prepared) overDomain(v, i int, row []float64) []float64 {
	support := p.given.Support[i]
	if support == nil {
		return row
	}
	probabilities := make([]float64, p.net.Variables[v].Domain)
	for k, x := range support {
		probabilities[x] = row[k]
	}
	return probabilities
}

// fits returns an error if c was not planned for this network under this evidence.
func (p *Prepared) fits(c *Tree) error {
	shape, hasJoint := p.Shape(), p.cells != nil
	if shape != c.Shape || c.Marginals != p.marginals || c.Joint != hasJoint {
		return fault.Wrap(fault.Internal,
			fmt.Errorf("%w: shape %.12s, planned for %.12s", ErrOtherNetwork, shape, c.Shape))
	}
	return nil
}

// options returns the options of package pairwise for slices of a tree.
func options(c *Tree, o Options) pairwise.Options {
	return pairwise.Options{
		Memory:  o.Memory,
		Threads: o.Threads,
		Slices:  c.Slices,
		From:    o.From,
		To:      o.To,
	}
}
