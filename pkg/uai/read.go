// Reading a model.

package uai

import (
	"io"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Read reads a MARKOV or BAYES model: kind, number of variables, domains, number of factors, per factor its scope, per
// factor its table (last scope variable fastest). Words are separated by any white space.
//
// It refuses, with line, factor and reason: a domain below 1, a scope index out of range or repeated, a table
// whose length is not the product of its domains, NaN, Inf and numbers beyond float64, negative entries (both
// kinds are probability models), a factor of zeros only, an early end, anything after the end, and models
// that exceed limits. Errors wrap ErrSyntax, ErrModel or ErrLimit and carry fault.BadInput; errors of r pass
// unchanged but for the line.
func Read(r io.Reader, limits Limits) (*factorgraph.Model, error) {
	l := limits.withDefaults()
	p := &modelReader{s: newScanner(r, l.Bytes), l: l, left: l.Entries, legs: l.Legs, m: &factorgraph.Model{}}
	for _, section := range []func() error{p.kind, p.domains, p.scopes, p.contents, p.s.end} {
		if err := section(); err != nil {
			return nil, err
		}
	}
	if all, most := p.m.Values(l.Bytes - p.s.left); all > most {
		return nil, p.s.fail(ErrLimit, "the variables have %d values together, at most the file's bytes and 2^20 are read: %d", all, most)
	}
	return p.m, nil
}

type modelReader struct {
	s    *scanner
	l    Limits
	left int // entries that may still be read
	legs int // scope positions that may still be read
	m    *factorgraph.Model

	rowLines []int // of a Bayesian network, of the table that was read last

	ints   arena.Slab[int] // scopes and shapes
	reals  arena.Slab[float64]
	tables arena.Slab[tensor.Dense]
}

func (p *modelReader) kind() error {
	if err := p.s.need(place{text: "MARKOV or BAYES"}); err != nil {
		return err
	}
	switch word := string(p.s.word); {
	case strings.EqualFold(word, "MARKOV"):
	case strings.EqualFold(word, "BAYES"):
		p.m.Bayes = true
	default:
		return p.s.fail(ErrSyntax, "%s where MARKOV or BAYES is needed", p.s.quoted())
	}
	return nil
}

// count reads a non-negative number of things within a limit.
func (p *modelReader) count(what string, limit int) (int, error) {
	n, err := p.s.integer(place{text: "the number of " + what})
	switch {
	case err != nil:
		return 0, err
	case n < 0:
		return 0, p.s.fail(ErrModel, "%d %s", n, what)
	case n > limit:
		return 0, p.s.fail(ErrLimit, "%d %s, at most %d are read", n, what, limit)
	}
	return n, nil
}

func (p *modelReader) domains() error {
	n, err := p.count("variables", p.l.Variables)
	if err != nil {
		return err
	}
	p.m.Domains = make([]int, 0, min(n, firstAllocation))
	for i := range n {
		d, err := p.s.integer(place{"the domain of variable %d", i, 0})
		switch {
		case err != nil:
			return err
		case d < 1:
			return p.s.fail(ErrModel, "variable %d: domain of size %d, at least 1 is needed", i, d)
		case d > p.l.Domain:
			return p.s.fail(ErrLimit, "variable %d: domain of size %d, at most %d is read", i, d, p.l.Domain)
		}
		p.m.Domains = append(p.m.Domains, d)
	}
	return nil
}

// firstAllocation bounds the items allocated on the word of a header; from there on a list doubles as it is read.
const firstAllocation = 1024

func (p *modelReader) scopes() error {
	n, err := p.count("factors", p.l.Factors)
	if err != nil {
		return err
	}
	p.m.Factors = make([]factorgraph.Factor, 0, min(n, firstAllocation))
	seen := make([]int, len(p.m.Domains)) // 1 + the last factor that has the variable
	for j := range n {
		scope, err := p.scope(j, seen)
		if err != nil {
			return err
		}
		p.m.Factors = append(p.m.Factors, factorgraph.Factor{Scope: scope})
	}
	return nil
}

func (p *modelReader) scope(j int, seen []int) ([]int, error) {
	arity, err := p.s.integer(place{"the order of factor %d", j, 0})
	switch {
	case err != nil:
		return nil, err
	case arity < 0 || arity > len(seen):
		return nil, p.s.fail(ErrModel, "factor %d: %d variables in the scope, the model has %d", j, arity, len(seen))
	case arity > p.legs:
		return nil, p.s.fail(ErrLimit, "factor %d: more than %d variables in all scopes together", j, p.l.Legs)
	}
	p.legs -= arity
	scope := p.ints.Make(min(arity, firstAllocation))[:0]
	for pos := range arity {
		v, err := p.s.integer(place{"variable %d of factor %d's scope", pos, j})
		switch {
		case err != nil:
			return nil, err
		case v < 0 || v >= len(seen):
			return nil, p.s.fail(ErrModel, "factor %d: scope position %d: variable %d, the model has %d", j, pos, v, len(seen))
		case seen[v] == j+1:
			return nil, p.s.fail(ErrModel, "factor %d: variable %d is twice in the scope", j, v)
		}
		seen[v] = j + 1
		scope = append(scope, v)
	}
	return scope, nil
}

func (p *modelReader) contents() error {
	for j := range p.m.Factors {
		f := &p.m.Factors[j]
		shape := p.ints.Make(len(f.Scope))
		for pos, v := range f.Scope {
			shape[pos] = p.m.Domains[v]
		}
		data, line, err := p.table(j, shape)
		if err != nil {
			return err
		}
		t := &p.tables.Make(1)[0]
		t.Shape, t.Data = shape, data
		f.Table = t
		if p.m.Bayes {
			p.m.Lines = append(p.m.Lines, line)
			p.m.SetRowLines(j, p.rowLines)
		}
	}
	return nil
}

// table reads the entries of a factor, and the line on which it begins.
func (p *modelReader) table(j int, shape []int) (entries []float64, line int, err error) {
	said, err := p.s.integer(place{"the length of factor %d's table", j, 0})
	if err != nil {
		return nil, 0, err
	}
	line = p.s.line
	size := decimal.Entries(shape)
	switch {
	case said != size && size < math.MaxInt:
		return nil, 0, p.s.fail(ErrModel, "factor %d: %d entries, its scope needs %d", j, said, size)
	case size > p.left:
		return nil, 0, p.s.fail(ErrLimit, "factor %d: its scope needs %s entries, at most %d are read in all tables together",
			j, decimal.EntriesText(size), p.l.Entries)
	}
	p.left -= size
	data := p.reals.Make(min(size, firstAllocation))[:0]
	p.rowLines = p.rowLines[:0]
	length := 1 // of a row
	if len(shape) > 0 {
		length = shape[len(shape)-1]
	}
	what, zero := place{"factor %d: an entry", j, 0}, true
	for i := range size {
		v, err := p.s.number(what)
		switch {
		case err != nil:
			return nil, 0, err
		case v < 0:
			return nil, 0, p.s.fail(ErrModel, "factor %d: entry %d is %v, a probability model needs at least 0", j, i, v)
		}
		if p.m.Bayes && i%length == 0 {
			p.rowLines = append(p.rowLines, p.s.line)
		}
		zero = zero && v == 0
		data = append(data, v)
	}
	if zero {
		return nil, 0, p.s.fail(ErrModel, "factor %d: all entries are 0", j)
	}
	return slices.Clip(data), line, nil
}
