package costs

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// ReadCFN reads a CFN file: JSON, or its dialect in which quotes, commas and colons may be left out and braces and brackets are the same.
// It has the members problem, variables and functions in this sequence.
//
// A function is a table of costs in the sequence of the values, its last variable fastest; or a default cost and the combinations that
// cost something else; or the name of another function whose table it shares. "mustbe" has the bound, and asks for the least cost (<)
// or the largest (>). Functions with a type are read where they are comparisons of two variables; others, such as salldiff, are
// refused with fault.Unsupported. Errors name line and function; those of r pass.
func ReadCFN(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	n := newNetwork("cfn", r, limits)
	p := &cfn{network: n, lexer: lexer{in: n.Scanner}, sign: 1, index: map[string]int{}}
	p.advance()
	p.open("the problem")
	p.member("problem")
	p.problem()
	p.member("variables")
	p.variables()
	p.member("functions")
	p.functions()
	p.resolve()
	if p.kind == closeToken { // files without the last brace are common
		p.advance()
	}
	if p.kind != endToken {
		p.wanted("the end of the file")
	}
	return p.model()
}

// cfn reads a CFN file.
type cfn struct {
	*network
	lexer
	sign    float64        // −1 where the largest cost is the best: costs are negated
	index   map[string]int // variables by name
	values  []map[string]int
	tables  map[string]*tensor.Dense // of functions, the last one of a name
	pending []pending
}

// pending is a function that shares the table of a later one.
type pending struct {
	called, source string
	line           int
	table          *tensor.Dense
}

// wanted is an error: something else is next.
func (p *cfn) wanted(what string) {
	token := "the file ends"
	if p.kind != endToken {
		token = fmt.Sprintf("%.40q", p.text)
	}
	p.Line = p.line
	p.Bad(uai.ErrSyntax, "%s where %s is needed", token, what)
}

// open passes an opening brace or bracket.
func (p *cfn) open(block string) {
	if p.kind != openToken {
		p.wanted("the brace or bracket of " + block)
		return
	}
	p.advance()
}

// member passes the name of a member, which the dialect may leave out.
func (p *cfn) member(name string) bool {
	if p.kind == wordToken && strings.TrimSuffix(p.text, ":") == name {
		p.advance()
		return true
	}
	return false
}

// more reports whether a list has another item, and passes its end.
func (p *cfn) more(list string) bool {
	switch {
	case p.Err != nil:
		return false
	case p.kind == closeToken:
		p.advance()
		return false
	case p.kind == endToken:
		p.wanted("the end of " + list)
		return false
	}
	return true
}

// word returns the current word and passes it; errors are at its line until the next one.
func (p *cfn) word(what string) (text string) {
	if p.kind != wordToken {
		p.wanted(what)
		return ""
	}
	line := p.line
	text = p.text
	p.advance()
	p.Line = line
	return text
}

// problem reads the name and the bound.
func (p *cfn) problem() {
	p.open("problem")
	p.member("name")
	p.word("the problem's name")
	p.member("mustbe")
	bound := p.word("the bound, < or > and a number")
	text, maximal := strings.CutPrefix(bound, ">")
	if maximal {
		p.sign = -1
	} else if text, maximal = strings.CutPrefix(bound, "<"); !maximal && p.Err == nil {
		p.Bad(uai.ErrSyntax, "mustbe is %.40q: < or > and a number is needed", bound)
	}
	if p.Err == nil {
		p.top = p.value(text, "mustbe")
	}
	if p.more("problem") {
		p.wanted("the end of problem")
	}
}

// variables reads names and values.
func (p *cfn) variables() {
	for p.open("variables"); p.more("variables"); {
		name := ""
		if p.kind == wordToken && (p.key || !numeric(p.text)) {
			name = p.word("a variable")
		}
		called := name
		if name == "" {
			called = strconv.Itoa(len(p.domains))
		}
		if _, twice := p.index[called]; twice {
			p.Bad(uai.ErrModel, "variable %.40q is there twice", called)
		}
		p.index[called] = len(p.domains)
		states := p.domain(called)
		p.names, p.states = append(p.names, name), append(p.states, states)
	}
	if strings.Join(p.names, "") == "" {
		p.names = nil
	}
}

// domain reads the values of a variable: their number, negative for an interval, or their names.
func (p *cfn) domain(called string) (states []string) {
	values := map[string]int{}
	p.values = append(p.values, values)
	if p.kind != openToken {
		size := p.Integer(p.word("the values of variable "+called), "the number of values of variable "+called)
		p.variable(called, max(size, -size))
		return nil
	}
	for p.advance(); p.more("the values of variable " + called); {
		value := p.word("a value of variable " + called)
		if numeric(value) {
			p.Bad(uai.ErrModel, "variable %s: a value is called %.40q, names do not begin as numbers do", called, value)
		}
		if _, twice := values[value]; twice {
			p.Bad(uai.ErrModel, "variable %s: value %.40q is there twice", called, value)
		}
		values[value] = len(states)
		states = append(states, value)
	}
	p.variable(called, len(states))
	return states
}

// functions reads all functions.
func (p *cfn) functions() {
	p.tables = map[string]*tensor.Dense{}
	for p.open("functions"); p.more("functions"); {
		called := fmt.Sprintf("function %d", len(p.network.functions))
		name := ""
		if p.kind == wordToken {
			name = p.word("a function")
			called = fmt.Sprintf("function %.40q", name)
		}
		p.open(called)
		p.member("scope")
		if scope := p.scope(called); p.scoped(called, scope) {
			p.definition(called, name, scope)
		}
	}
}

// scope reads a function's variables.
func (p *cfn) scope(called string) (scope []int) {
	scope = []int{}
	for p.open("the scope of " + called); p.more("the scope of " + called); {
		word := p.word("a variable of " + called)
		v, ok := p.index[word]
		if number, err := strconv.Atoi(word); !ok && err == nil {
			v, ok = number, number >= 0 && number < len(p.domains)
		}
		if !ok {
			p.Bad(uai.ErrModel, "%s: there is no variable %.40q", called, word)
			return nil
		}
		scope = append(scope, v)
	}
	return scope
}

// definition reads the costs of a function, in any form, and its end.
func (p *cfn) definition(called, name string, scope []int) {
	switch {
	case p.member("type"):
		p.typed(called, scope)
		return
	case p.member("defaultcost"):
		p.sparse(called, name, scope, p.cost("the default cost of "+called))
	case !p.member("costs"):
		p.wanted("costs, defaultcost or type of " + called)
	case p.kind == wordToken:
		t := p.function(called, scope, 0)
		p.pending = append(p.pending, pending{called, p.text, p.line, t})
		p.advance()
	default:
		p.dense(called, name, scope)
	}
	if p.more(called) {
		p.wanted("the end of " + called)
	}
}

// cost reads a cost: a number, or inf for a forbidden combination.
func (p *cfn) cost(what string) float64 { return p.value(p.word(what), what) }

// value is a word as a cost. Infinity without a sign forbids; with one it must not be the best of all.
func (p *cfn) value(word, what string) float64 {
	switch sign := strings.TrimSuffix(word, "inf"); {
	case word == sign || sign != "" && sign != "+" && sign != "-":
		return p.sign * p.Number(word, what)
	case sign != "" && (sign == "-") == (p.sign > 0):
		p.Bad(uai.ErrModel, "%s is %s, better than anything: costs are finite, or inf for what is forbidden", what, word)
		return 0
	}
	return math.Inf(1)
}

// dense reads the cost of every combination of values.
func (p *cfn) dense(called, name string, scope []int) {
	t := p.function(called, scope, 0)
	if t == nil {
		return
	}
	p.tables[name] = t
	i, list, cost := 0, "the costs of "+called, "a cost of "+called
	for p.open(list); p.more(list); i++ {
		if i == len(t.Data) {
			p.Bad(uai.ErrModel, "%s: more than %d costs", called, i)
			return
		}
		t.Data[i] = p.cost(cost)
	}
	if i < len(t.Data) {
		p.Bad(uai.ErrModel, "%s: %d costs, its scope needs %d", called, i, len(t.Data))
	}
}

// sparse reads combinations of values, each with its cost.
func (p *cfn) sparse(called, name string, scope []int, cost float64) {
	t := p.function(called, scope, cost)
	if t == nil {
		return
	}
	p.tables[name] = t
	if !p.member("costs") {
		p.wanted("costs of " + called)
		return
	}
	if p.kind == wordToken {
		p.Fail(fault.Unsupported, uai.ErrModel, "%s has a default cost and shares the table of %.40q", called, p.text)
		return
	}
	isListed := make([]bool, len(t.Data))
	for p.open("the costs of " + called); p.more("the costs of " + called); {
		index := p.combination(called, scope, t.Shape)
		c := p.cost("a cost of " + called)
		if p.Err == nil && isListed[index] {
			p.Bad(uai.ErrModel, "%s: the combination of values at place %d of its table is there twice", called, index)
		}
		if p.Err != nil {
			return
		}
		isListed[index], t.Data[index] = true, c
	}
}

// combination reads a value for every variable of a scope, by name or position.
func (p *cfn) combination(called string, scope, shape []int) int {
	values := make([]int, len(scope))
	for k, v := range scope {
		word := p.word("a value of " + called)
		x, ok := p.values[v][word]
		if number, err := strconv.Atoi(word); !ok && err == nil {
			x, ok = number, number >= 0 && number < shape[k]
		}
		if !ok {
			p.Bad(uai.ErrModel, "%s: variable %s has no value %.40q", called, p.called(v), word)
			return 0
		}
		values[k] = x
	}
	return position(shape, values)
}

// typed reads a function that parameters define.
func (p *cfn) typed(called string, scope []int) {
	kind := p.text
	if _, ok := arithmetic(kind); !ok {
		p.refuse(called, kind)
		return
	}
	p.advance()
	if !p.member("params") {
		p.wanted("params of " + called)
		return
	}
	var parameters []float64
	for p.open("the parameters of " + called); p.more("the parameters of " + called); {
		if len(parameters) == 3 {
			p.wanted("the end of the parameters of " + called)
			return
		}
		parameters = append(parameters, p.Number(p.word("a parameter of "+called), "a parameter of "+called))
	}
	if p.sign < 0 && p.Err == nil {
		p.Fail(fault.Unsupported, uai.ErrModel, "%s is %.40q in a problem that asks for the largest value", called, kind)
		return
	}
	p.compare(called, kind, scope, parameters)
	if p.more(called) {
		p.wanted("the end of " + called)
	}
}

// resolve copies the tables that functions share.
func (p *cfn) resolve() {
	for _, f := range p.pending {
		if p.Err != nil {
			return
		}
		t := p.tables[f.source]
		if p.Line = f.line; t == nil {
			p.Bad(uai.ErrModel, "%s shares the costs of %.40q, and no function of this name has any", f.called, f.source)
		} else if !slices.Equal(t.Shape, f.table.Shape) {
			p.Bad(uai.ErrModel, "%s: its variables have %v values, those of %.40q have %v", f.called, f.table.Shape, f.source, t.Shape)
		} else {
			copy(f.table.Data, t.Data)
		}
	}
}

// numeric reports whether a word begins as numbers do.
func numeric(word string) bool {
	return word == "" || strings.IndexByte("0123456789-.+", word[0]) >= 0
}
