// Package preprocess simplifies an expression exactly before its contraction is planned: values
// that only zeros meet are removed, indices with one value left are gone, tables inside other
// tables are multiplied in, indices that cost nothing are summed out, indices that determine each
// other become one, and tables that are products, of low rank or counters are split. Its steps are
// reported in figures for people.
//
// Nothing is assumed and nothing is approximated: every recognised structure has been compared entry
// by entry, within rounding.
//
// load makes an expression, whose agenda lists what has changed. reduce applies the rules, a file each, to
// what is on the agenda. simplify does so to the expression as it is and with tables replaced by
// structure. origins records what became of the indices, by which Result.Recover restores marginals.
package preprocess

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

const (
	defaultMaxEntries = 1 << 16
	defaultProbes     = 1 << 24
)

// Options bound the losses and the work. The zero value is for Z: every index
// may be summed out.
type Options struct {
	// Marginals makes Result.Recover work for every index:
	// an index is summed out only if its marginal follows from one other index's.
	Marginals bool
	// Keep lists indices for which Result.Recover has to work. Not needed with Marginals.
	Keep []int
	// MaxEntries bounds the tables that summing out an index may create; 0 is 65536.
	// No table larger than this is created unless it replaces one that was larger.
	MaxEntries int
	// Probes bounds the entries that probing looks at: a value that leaves some index without a
	// value when it is assumed is removed, and an index that follows every value of another becomes
	// that index. Carrying zeros from table to table has the same budget once more. 0 is 2^24, some
	// tenths of a second; below 0 is none.
	Probes int
	// Terms keeps every term that is not 0: no index is summed out, and no table becomes a sum. The
	// terms of the result are the given expression's, one for one.
	Terms bool
	// NoElimination leaves indices alone that are in more than one table.
	NoElimination bool
	// NoStructure leaves tables whole that are products of smaller ones, of low rank, or counters.
	NoStructure bool
	// Classes writes tables over two indices that cannot tell values of one apart over classes of
	// these values, if the contraction costs much: contraction trees gain from it, elimination
	// orders do not.
	Classes bool

	// Roundings bounds the errors of the tables' entries, as Result.Roundings does. nil: entries of
	// tables that are Rounded were rounded once, unless they are 0 or powers of two, and others
	// never.
	Roundings []float64

	always bool // stars, chains and classes wherever there is one, at any cost: for tests
}

// withDefaults returns o with defaults in place of zeros, Probes not below 0, and NoStructure set if Terms is.
func (o Options) withDefaults() Options {
	if o.MaxEntries <= 0 {
		o.MaxEntries = defaultMaxEntries
	}
	if o.Probes == 0 {
		o.Probes = defaultProbes
	}
	o.Probes = max(o.Probes, 0)
	o.NoStructure = o.NoStructure || o.Terms
	return o
}

// Result is a simpler expression of the same value.
type Result struct {
	// Expression has the value of the one given. Index i is index i of that one, as far as it is
	// still there: an index that is gone has dimension 1 and is in no table. Hidden indices of
	// stars and chains come after them. It shares no table with the one given that it has changed,
	// and may share those it has not.
	Expression *sumproduct.Expression
	// Origin maps every index of the expression given to the result.
	Origin []Origin
	// Parts lists tables that are connected through indices, part by part in the order of their
	// first tables: Z is the product of Scale, the values of the parts, and the dimensions of
	// indices in no table.
	Parts [][]int
	// Roundings[t] bounds the error of every entry of table t, relative to that entry, in units of
	// 2^-53: the roundings of its computation, times the cancellation among terms of both signs.
	// Rounding is their sum, Scale's included: the error of a term of Expression.
	Roundings []float64
	Rounding  float64
	Report    Report

	dims []int // of the expression given
}

// ErrSummedOut is returned by Recover for an index that has been summed out.
var ErrSummedOut = fmt.Errorf("preprocess: the index has been summed out")

// Run simplifies e, which does not change:
//
//	Scale · Σ_x Π_t Tables[t][x]  is the same for e and for Result.Expression, up to rounding.
//
// It goes on until no rule applies to the changed tables. Z = 0 is a result: an expression without
// tables whose Scale is 0, with the reason in Report.Zero. The same expression and options give the
// same result, to the bit.
//
// Errors: sumproduct.ErrExpression for scopes and sizes that contradict each other or a Keep that
// names no index, sumproduct.ErrNotFinite for an entry that is NaN or infinite; the context's.
// Cost: a small multiple of the entries for every time that one of their indices shrinks,
// and the budget of probing; no pass compares all pairs of tables.
func Run(ctx context.Context, e *sumproduct.Expression, o Options) (*Result, error) {
	o = o.withDefaults()
	p := pace.New(ctx)
	loaded, err := load(e, o, p)
	if err != nil {
		return nil, err
	}
	best, err := simplify(ctx, loaded, o, p)
	if err != nil {
		return nil, err
	}
	return newResult(e, best), nil
}

// ruleWork is the minimum cost of a rule, in operations on entries.
const ruleWork = 64

// reduce applies the rules until the agenda is empty or the expression is 0. The agenda lists, for each rule, the tables or indices that
// have changed since the rule looked at them. Each time it applies the cheapest rule that has something to do. If the context ends, e is
// of no use any more.
func reduce(e *expression, o Options, p *pace.Pace) {
	domains := newDomains(e, p)
	sums := newElimination(o)
	zeroFilter := filter{budget: o.Probes}
	prober := prober{domains: domains, budget: o.Probes}
	agenda := &e.agenda
	for e.report.Zero == nil && !p.Over(ruleWork) {
		switch { // by cost, the cheapest rule first
		case agenda.zeros.len() > 0: // remove values that meet only zeros
			domains.propagate()
		case agenda.merges.len() > 0: // replace an index that is a function of another one, or multiply the table into a larger one
			n := agenda.merges.pop()
			if hasAlias := findAlias(e, n); !hasAlias {
				merge(e, n, sums)
			}
		case agenda.indices.len() > 0: // sum an index out
			sums.eliminate(e, agenda.indices.pop())
		case agenda.splits.len() > 0: // write the table as a product
			n := agenda.splits.pop()
			if hasFactor := factorOut(e, n); !hasFactor && !o.NoStructure {
				splitPair(e, n)
			}
		case agenda.filters.len() > 0: // carry zeros over to other tables
			zeroFilter.carryZeros(e, agenda.filters.pop())
		case agenda.probes.len() > 0: // assume the values of an index in turn
			prober.probe(agenda.probes.pop())
		default:
			return
		}
	}
}
