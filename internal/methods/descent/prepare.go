// Package descent finds assignments: the most probable one, the most probable one of some variables
// with the others summed out, and assignments drawn with their probabilities. A network is written
// as tables without entries below 0, its indices are eliminated, and values are chosen on the way
// back. It joins packages lower, preprocess, contractionorder and buckets.
package descent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Prepared is a network, conditioned on its query's evidence, as tables of terms.
type Prepared struct {
	net        *btn.Network
	expression *sumproduct.Expression // the network as tables; its entries are at least 0
	ask        btn.Ask

	simplified *sumproduct.Expression // the tables of expression after preprocessing, with the same terms
	origin     []preprocess.Origin    // by index of expression: how it follows from the indices of simplified; nil: they are the same
	rounding   float64                // largest rounding error of a term of simplified, in units of 2^-53
	maximal    []bool                 // by index of simplified: the maximum over it is asked for
	set        []int                  // variables of a marginal MAP assignment
}

// Prepare writes a network as tables whose entries are at least 0, for the question ask: the most probable assignment, draws, or a
// marginal MAP assignment of the variables in set, which query.CheckSet has passed.
//
// Indices that are no variables are summed out within their factors, which become dense tables. For the most probable assignment all such
// indices are summed out, except counters, whose value follows from the variables. For other questions only those in factors with entries
// of both signs are.
//
// Errors: from lower.Build; bad_input for a factor with an entry below 0, which is named; over_budget for a factor whose dense table does
// not fit memory bytes (0: query.DefaultMemory).
func Prepare(
	ctx context.Context, net *btn.Network, ask btn.Ask, set []int, memory int64,
) (*Prepared, error) {
	if memory <= 0 {
		memory = query.DefaultMemory
	}

	// The network as tables without entries below 0.
	built, err := buildTables(ctx, net)
	if err != nil {
		return nil, err
	}
	p := &Prepared{net: net, ask: ask, set: set}
	if p.expression, err = sumOutHidden(ctx, built, ask, memory); err != nil {
		return nil, err
	}
	if err := p.checkNonNegative(); err != nil {
		return nil, err
	}

	// Simpler tables, which keep all terms, and the indices that are maximised. A set of variables needs their own indices, so there is no
	// simplification for a marginal MAP assignment.
	p.simplified = p.expression
	if ask != btn.AskMap && !hasExponents(p.expression) {
		r, err := preprocess.Run(ctx, p.expression, preprocess.Options{Terms: true})
		if err != nil {
			return nil, err
		}
		p.simplified, p.origin, p.rounding = r.Expression, r.Origin, r.Rounding
	}
	p.maximal = make([]bool, len(p.simplified.Dims))
	for i := range p.maximal {
		p.maximal[i] = ask == btn.AskMPE
	}
	if ask == btn.AskMap {
		for _, v := range set {
			p.maximal[p.expression.Variables[v]] = true
		}
	}
	return p, nil
}

// buildTables returns a network as tables. If numbers do not fit float64, they have exponents of their own. Tables with entries below 0 are
// written without such entries if they can be.
func buildTables(ctx context.Context, net *btn.Network) (*sumproduct.Expression, error) {
	built, err := lower.Build(ctx, net)
	switch {
	case err != nil:
		return nil, err
	case built.Unfit != "": // for float64
		return lower.BuildWide(ctx, net)
	case built.Signed():
		return lower.BuildUnsigned(ctx, net, built)
	}
	return built, nil
}

// hasExponents reports whether entries of a table have exponents of their own, beyond those of float64.
func hasExponents(e *sumproduct.Expression) bool {
	return slices.ContainsFunc(e.Tables, func(t sumproduct.Table) bool { return t.Exp != nil })
}

// checkNonNegative returns an error, bad_input, if the scale or an entry of a table is below 0. The scale is the product of the factors
// without variables.
func (p *Prepared) checkNonNegative() error {
	if p.expression.Scale.Sign() < 0 {
		return fault.New(fault.BadInput, "descent: the product of the factors without variables is below 0")
	}
	for t := range p.expression.Tables {
		if slices.ContainsFunc(p.expression.Tables[t].Data, func(x float64) bool { return x < 0 }) {
			return fault.New(fault.BadInput, "descent: %s has an entry below 0: weights of assignments are "+
				"no probabilities then", factorName(p.expression, p.expression.Tables[t].Scope))
		}
	}
	return nil
}

// factorName returns the name that the factor over a scope of indices has in errors: its first variables.
func factorName(e *sumproduct.Expression, scope []int) string {
	var names []string
	for v, i := range e.Variables {
		if slices.Contains(scope, i) {
			names = append(names, fmt.Sprint(v))
		}
	}
	const maxNames = 12
	if len(names) > maxNames {
		names = append(names[:maxNames], "…")
	}
	if len(names) == 0 {
		return "a factor over observed variables"
	}
	return "the factor over variables " + strings.Join(names, ", ")
}

// Terms returns the simplified tables. A term is the product of their entries at values of their indices. For draws and the most probable
// assignment their terms are those of the network, one for one.
func (p *Prepared) Terms() *sumproduct.Expression { return p.simplified }

// Assignment returns the values of the network's variables from values of the indices of Terms.
func (p *Prepared) Assignment(termValues []int) []int {
	return p.assignment(termValues, make([]int, len(p.expression.Dims)))
}

// Weigh returns the assignment that belongs to values of the indices of Terms, with its weight.
func (p *Prepared) Weigh(termValues []int) *btn.Found {
	indexValues := make([]int, len(p.expression.Dims))
	values := p.assignment(termValues, indexValues)
	return &btn.Found{Values: values, Weight: scaledNumber(weightOf(p.expression, indexValues)), Close: p.tieWidth()}
}

// RoundingSlack bounds the rounding difference between the logarithms of a term of the network and the same term of Terms. ln is the larger
// magnitude of the two logarithms.
func (p *Prepared) RoundingSlack(ln float64) float64 { return p.slack(nil, ln) }

// Domains returns the number of values of each variable of the network.
func (p *Prepared) Domains() []int {
	domains := make([]int, len(p.net.Variables))
	for v := range domains {
		domains[v] = p.net.Variables[v].Domain
	}
	return domains
}

// Hypergraph returns the shape of Terms: the dimensions of its indices and the scopes of its tables.
func (p *Prepared) Hypergraph() contractionorder.Hypergraph { return p.simplified.Hypergraph() }

// Shape returns a digest of Hypergraph and, for a marginal MAP assignment, of the indices that are maximised.
func (p *Prepared) Shape() string {
	b := digest.New()
	p.Hypergraph().Digest(b)
	if p.ask == btn.AskMap {
		for i, m := range p.maximal {
			if m {
				b.Int(i)
			}
		}
	}
	return b.Hex()
}

// assignment returns the values of the network's variables from termValues, values of the indices of the simplified tables. It also
// writes to indexValues the values of the indices of p.expression.
func (p *Prepared) assignment(termValues []int, indexValues []int) []int {
	for i := range indexValues {
		indexValues[i] = termValues[i]
		if p.origin == nil {
			continue
		}
		// The index has the value origin.ValueOf[k] if index origin.Index of the simplified tables has value k. It has a fixed value,
		// origin.ValueOf[0], if there is no such index.
		origin, k := p.origin[i], 0
		if origin.Index >= 0 && len(origin.ValueOf) > 1 {
			k = termValues[origin.Index]
		}
		indexValues[i] = origin.ValueOf[k]
	}

	values := make([]int, len(p.net.Variables))
	for v, i := range p.expression.Variables {
		values[v] = indexValues[i]
		if support := p.expression.Support[i]; support != nil { // evidence has left some values only
			values[v] = support[indexValues[i]]
		}
	}
	return values
}
