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
	net   *btn.Network
	given *sumproduct.Expression // its entries are at least 0
	ask   btn.Ask

	simple   *sumproduct.Expression // of the terms of given
	origin   []preprocess.Origin    // of the indices of given in simple; nil: they are the same
	rounding float64                // of a term of simple against the term of given, in units of 2^-53
	maximal  []bool                 // by index of simple: the maximum over it is asked for
	set      []int                  // variables of a marginal MAP assignment
}

// Prepare writes a network as tables for a question; set are the variables of a marginal MAP
// assignment, which query.CheckSet has passed. Hidden indices with terms of both signs, and for
// maxima all but counters, are summed out within their factors, which become dense tables.
//
// Errors: from lower.Build; bad_input for a factor with an entry below 0, which is named;
// over_budget for a factor whose dense table does not fit memory bytes (0: query.DefaultMemory).
func Prepare(
	ctx context.Context, net *btn.Network, ask btn.Ask, set []int, memory int64,
) (*Prepared, error) {
	if memory <= 0 {
		memory = query.DefaultMemory
	}
	given, err := lower.Build(ctx, net)
	if err == nil && given.Unfit != "" {
		given, err = lower.BuildWide(ctx, net)
	} else if err == nil && given.Signed() {
		given, err = lower.BuildUnsigned(ctx, net, given)
	}
	if err != nil {
		return nil, err
	}

	p := &Prepared{net: net, ask: ask, set: set}
	if p.given, err = unhide(ctx, given, ask, memory); err != nil {
		return nil, err
	}
	if err := p.positive(); err != nil {
		return nil, err
	}

	p.simple = p.given
	if ask != btn.AskMap && !exponents(p.given) {
		r, err := preprocess.Run(ctx, p.given, preprocess.Options{Terms: true})
		if err != nil {
			return nil, err
		}
		p.simple, p.origin, p.rounding = r.Expression, r.Origin, r.Rounding
	}

	p.maximal = make([]bool, len(p.simple.Dims))
	for i := range p.maximal {
		p.maximal[i] = ask == btn.AskMPE
	}
	if ask == btn.AskMap {
		for _, v := range set {
			p.maximal[p.given.Variables[v]] = true
		}
	}
	return p, nil
}

// exponents reports whether entries have exponents of their own.
func exponents(e *sumproduct.Expression) bool {
	return slices.ContainsFunc(e.Tables, func(t sumproduct.Table) bool { return t.Exp != nil })
}

// positive refuses entries below 0.
func (p *Prepared) positive() error {
	if p.given.Scale.Sign() < 0 {
		return fault.New(fault.BadInput, "descent: the product of the factors without variables is below 0")
	}
	for t := range p.given.Tables {
		if slices.ContainsFunc(p.given.Tables[t].Data, func(x float64) bool { return x < 0 }) {
			return fault.New(fault.BadInput, "descent: %s has an entry below 0: weights of assignments are "+
				"no probabilities then", factorOver(p.given, p.given.Tables[t].Scope))
		}
	}
	return nil
}

// factorOver names a factor by its variables.
func factorOver(e *sumproduct.Expression, scope []int) string {
	var names []string
	for v, i := range e.Variables {
		if slices.Contains(scope, i) {
			names = append(names, fmt.Sprint(v))
		}
	}
	const most = 12
	if len(names) > most {
		names = append(names[:most], "…")
	}
	if len(names) == 0 {
		return "a factor over observed variables"
	}
	return "the factor over variables " + strings.Join(names, ", ")
}

// Terms are the tables: for assignments drawn and the most probable one their terms are the network's, one for one.
func (p *Prepared) Terms() *sumproduct.Expression { return p.simple }

// Assignment returns the values of the variables from the values of Terms' indices.
func (p *Prepared) Assignment(indices []int) []int {
	return p.assignment(indices, make([]int, len(p.given.Dims)))
}

// Weigh returns an assignment by the values of Terms' indices, with its weight.
func (p *Prepared) Weigh(indices []int) *btn.Found {
	given := make([]int, len(p.given.Dims))
	values := p.assignment(indices, given)
	return &btn.Found{Values: values, Weight: number(weight(p.given, given)), Close: p.rounded()}
}

// Slack bounds the difference between the logarithms of a term of the network and of Terms, of which ln is the larger one's magnitude.
func (p *Prepared) Slack(ln float64) float64 { return p.slack(nil, ln) }

// Domains returns the domain sizes of the variables.
func (p *Prepared) Domains() []int {
	d := make([]int, len(p.net.Variables))
	for v := range d {
		d[v] = p.net.Variables[v].Domain
	}
	return d
}

// Hypergraph returns the shape of the tables.
func (p *Prepared) Hypergraph() contractionorder.Hypergraph { return p.simple.Hypergraph() }

// Shape returns the digest of Hypergraph and of the set of its maximised indices.
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

// assignment returns the values of the variables from the values of the simplified tables' indices,
// and in into the values of the given tables' indices.
func (p *Prepared) assignment(simple []int, into []int) []int {
	for i := range into {
		into[i] = simple[i]
		if p.origin == nil {
			continue
		}
		o := p.origin[i]
		at := 0
		if o.Index >= 0 && len(o.From) > 1 {
			at = simple[o.Index]
		}
		into[i] = o.From[at]
	}

	values := make([]int, len(p.net.Variables))
	for v, i := range p.given.Variables {
		values[v] = into[i]
		if s := p.given.Support[i]; s != nil {
			values[v] = s[into[i]]
		}
	}
	return values
}
