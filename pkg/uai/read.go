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
	p := &modelReader{scanner: newScanner(r, l.Bytes), limits: l, entriesLeft: l.Entries, legsLeft: l.Legs, model: &factorgraph.Model{}}
	for _, section := range []func() error{p.readKind, p.readDomains, p.readScopes, p.readTables, p.scanner.expectEnd} {
		if err := section(); err != nil {
			return nil, err
		}
	}
	if values, limit := p.model.Values(l.Bytes - p.scanner.bytesLeft); values > limit { // of the bytes read
		return nil, p.scanner.fail(ErrLimit,
			"the variables have %d values together, at most the file's bytes and 2^20 are read: %d", values, limit)
	}
	return p.model, nil
}

// modelReader is a model as far as it is read.
type modelReader struct {
	scanner     *scanner
	limits      Limits
	entriesLeft int // the number of entries that tables may still have
	legsLeft    int // the number of variables that further scopes may have together
	model       *factorgraph.Model

	rowLines []int // the lines on which the rows of the last table begin, of a Bayesian network

	ints   arena.Slab[int]          // memory of scopes and shapes
	reals  arena.Slab[float64]      // memory of entries
	tables arena.Slab[tensor.Dense] // memory of tables
}

// readKind reads the word MARKOV or BAYES.
func (p *modelReader) readKind() error {
	if err := p.scanner.nextOrFail(itemName{text: "MARKOV or BAYES"}); err != nil {
		return err
	}
	switch word := string(p.scanner.word); {
	case strings.EqualFold(word, "MARKOV"):
	case strings.EqualFold(word, "BAYES"):
		p.model.Bayes = true
	default:
		return p.scanner.fail(ErrSyntax, "%s where MARKOV or BAYES is needed", p.scanner.quotedWord())
	}
	return nil
}

// readCount reads a number of things, from 0 to a limit.
func (p *modelReader) readCount(what string, limit int) (int, error) {
	n, err := p.scanner.readInteger(itemName{text: "the number of " + what})
	switch {
	case err != nil:
		return 0, err
	case n < 0:
		return 0, p.scanner.fail(ErrModel, "%d %s", n, what)
	case n > limit:
		return 0, p.scanner.fail(ErrLimit, "%d %s, at most %d are read", n, what, limit)
	}
	return n, nil
}

// readDomains reads the number of variables, and the domain of each.
func (p *modelReader) readDomains() error {
	n, err := p.readCount("variables", p.limits.Variables)
	if err != nil {
		return err
	}
	p.model.Domains = make([]int, 0, min(n, firstAllocation))
	for i := range n {
		d, err := p.scanner.readInteger(itemName{"the domain of variable %d", i, 0}) // 0: the text has one number only
		switch {
		case err != nil:
			return err
		case d < 1:
			return p.scanner.fail(ErrModel, "variable %d: domain of size %d, at least 1 is needed", i, d)
		case d > p.limits.Domain:
			return p.scanner.fail(ErrLimit, "variable %d: domain of size %d, at most %d is read", i, d, p.limits.Domain)
		}
		p.model.Domains = append(p.model.Domains, d)
	}
	return nil
}

// firstAllocation bounds the items allocated on the word of a header; from there on a list doubles as it is read.
const firstAllocation = 1024

// readScopes reads the number of factors, and the scope of each.
func (p *modelReader) readScopes() error {
	n, err := p.readCount("factors", p.limits.Factors)
	if err != nil {
		return err
	}
	p.model.Factors = make([]factorgraph.Factor, 0, min(n, firstAllocation))
	lastFactor := make([]int, len(p.model.Domains)) // 1 + the last factor that has the variable
	for j := range n {
		scope, err := p.readScope(j, lastFactor)
		if err != nil {
			return err
		}
		p.model.Factors = append(p.model.Factors, factorgraph.Factor{Scope: scope})
	}
	return nil
}

// readScope reads the scope of factor j. lastFactor has, for each variable, 1 + the last factor that has it in its scope.
func (p *modelReader) readScope(j int, lastFactor []int) ([]int, error) {
	arity, err := p.scanner.readInteger(itemName{"the order of factor %d", j, 0}) // 0: the text has one number only
	switch {
	case err != nil:
		return nil, err
	case arity < 0 || arity > len(lastFactor):
		return nil, p.scanner.fail(ErrModel, "factor %d: %d variables in the scope, the model has %d", j, arity, len(lastFactor))
	case arity > p.legsLeft:
		return nil, p.scanner.fail(ErrLimit, "factor %d: more than %d variables in all scopes together", j, p.limits.Legs)
	}
	p.legsLeft -= arity
	scope := p.ints.Make(min(arity, firstAllocation))[:0]
	for position := range arity {
		v, err := p.scanner.readInteger(itemName{"variable %d of factor %d's scope", position, j})
		switch {
		case err != nil:
			return nil, err
		case v < 0 || v >= len(lastFactor):
			return nil, p.scanner.fail(ErrModel, "factor %d: scope position %d: variable %d, the model has %d", j, position, v, len(lastFactor))
		case lastFactor[v] == j+1:
			return nil, p.scanner.fail(ErrModel, "factor %d: variable %d is twice in the scope", j, v)
		}
		lastFactor[v] = j + 1
		scope = append(scope, v)
	}
	return scope, nil
}

// readTables reads the tables of all factors.
func (p *modelReader) readTables() error {
	for j := range p.model.Factors {
		f := &p.model.Factors[j]
		shape := p.ints.Make(len(f.Scope))
		for position, v := range f.Scope {
			shape[position] = p.model.Domains[v]
		}
		data, line, err := p.readTable(j, shape)
		if err != nil {
			return err
		}
		t := &p.tables.Make(1)[0] // cut from memory for many tables
		t.Shape, t.Data = shape, data
		f.Table = t
		if p.model.Bayes {
			p.model.Lines = append(p.model.Lines, line)
			p.model.SetRowLines(j, p.rowLines)
		}
	}
	return nil
}

// readTable reads the table of factor j, whose scope has a shape: the number of its entries, and then the entries, the last variable
// fastest. It returns the entries, and the line on which the table begins. p.rowLines gets the lines on which the rows of a Bayesian
// network's table begin.
func (p *modelReader) readTable(j int, shape []int) (entries []float64, line int, err error) {
	// its length
	announced, err := p.scanner.readInteger(itemName{"the length of factor %d's table", j, 0}) // 0: the text has one number only
	if err != nil {
		return nil, 0, err
	}
	line = p.scanner.line
	size := decimal.Entries(shape)
	switch {
	case announced != size && size < math.MaxInt: // MaxInt stands for any larger size, too
		return nil, 0, p.scanner.fail(ErrModel, "factor %d: %d entries, its scope needs %d", j, announced, size)
	case size > p.entriesLeft:
		return nil, 0, p.scanner.fail(ErrLimit, "factor %d: its scope needs %s entries, at most %d are read in all tables together",
			j, decimal.EntriesText(size), p.limits.Entries)
	}
	p.entriesLeft -= size

	// its entries
	data := p.reals.Make(min(size, firstAllocation))[:0] // grows: a file may announce more entries than it has
	p.rowLines = p.rowLines[:0]
	rowLength := 1
	if len(shape) > 0 {
		rowLength = shape[len(shape)-1]
	}
	what, isZero := itemName{"factor %d: an entry", j, 0}, true // isZero: all entries so far are 0
	for i := range size {
		v, err := p.scanner.readNumber(what)
		switch {
		case err != nil:
			return nil, 0, err
		case v < 0:
			return nil, 0, p.scanner.fail(ErrModel, "factor %d: entry %d is %v, a probability model needs at least 0", j, i, v)
		}
		if isRowStart := i%rowLength == 0; p.model.Bayes && isRowStart {
			p.rowLines = append(p.rowLines, p.scanner.line)
		}
		isZero = isZero && v == 0
		data = append(data, v)
	}
	if isZero {
		return nil, 0, p.scanner.fail(ErrModel, "factor %d: all entries are 0", j)
	}
	return slices.Clip(data), line, nil
}
