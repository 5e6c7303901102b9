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
	p := &cfn{network: n, lexer: lexer{in: n.Scanner}, sign: 1, index: map[string]int{}} // sign 1: the least cost is sought
	p.advance()
	p.open("the problem")
	p.acceptMember("problem")
	p.readProblem()
	p.acceptMember("variables")
	p.readVariables()
	p.acceptMember("functions")
	p.readFunctions()
	p.resolvePending()
	if p.kind == closeToken { // files without the last brace are common
		p.advance()
	}
	if p.kind != endToken {
		p.failWanted("the end of the file")
	}
	return p.model()
}

// cfn reads a CFN file.
type cfn struct {
	*network
	lexer
	sign    float64                  // −1 if the largest cost is sought: costs are negated as they are read
	index   map[string]int           // the number of each variable, by its name
	values  []map[string]int         // per variable, the position of each value by its name
	tables  map[string]*tensor.Dense // the costs of the last function of each name
	pending []pending                // functions that share the table of another one
}

// pending is a function that shares the table of a later one.
type pending struct {
	title  string        // the function in errors
	source string        // the name of the function that has the table
	line   int           // of the reference
	table  *tensor.Dense // to be filled
}

// failWanted notes the error that the current token is found where something else is needed.
func (p *cfn) failWanted(what string) {
	token := "the file ends"
	if p.kind != endToken {
		token = fmt.Sprintf("%.40q", p.text)
	}
	p.Line = p.line
	p.FailInput(uai.ErrSyntax, "%s where %s is needed", token, what)
}

// open passes an opening brace or bracket.
func (p *cfn) open(block string) {
	if p.kind != openToken {
		p.failWanted("the brace or bracket of " + block)
		return
	}
	p.advance()
}

// acceptMember passes the name of a member if it is next, and reports whether it was: the dialect may leave it out.
func (p *cfn) acceptMember(name string) bool {
	if p.kind == wordToken && strings.TrimSuffix(p.text, ":") == name {
		p.advance()
		return true
	}
	return false
}

// hasMore reports whether a list has another item. If the closing brace is next instead, it reads past it and returns false.
func (p *cfn) hasMore(list string) bool {
	switch {
	case p.Err != nil:
		return false
	case p.kind == closeToken:
		p.advance()
		return false
	case p.kind == endToken:
		p.failWanted("the end of " + list)
		return false
	}
	return true
}

// readWord returns the current word and moves on to the next token. Errors still refer to the word's line until another token is read. what
// names the word in an error.
func (p *cfn) readWord(what string) (text string) {
	if p.kind != wordToken {
		p.failWanted(what)
		return ""
	}
	line := p.line
	text = p.text
	p.advance()
	p.Line = line
	return text
}

// readProblem reads the problem's name and its bound, which says too whether the least or the largest cost is sought.
func (p *cfn) readProblem() {
	p.open("problem")
	p.acceptMember("name")
	p.readWord("the problem's name")
	p.acceptMember("mustbe")
	bound := p.readWord("the bound, < or > and a number")
	number, isMaximisation := strings.CutPrefix(bound, ">")
	if isMaximisation {
		p.sign = -1 // of costs to be minimised
	} else {
		var isMinimisation bool
		if number, isMinimisation = strings.CutPrefix(bound, "<"); !isMinimisation && p.Err == nil {
			p.FailInput(uai.ErrSyntax, "mustbe is %.40q: < or > and a number is needed", bound)
		}
	}
	if p.Err == nil {
		p.top = p.parseCost(number, "mustbe")
	}
	if p.hasMore("problem") { // at the closing brace hasMore reads past it and returns false
		p.failWanted("the end of problem")
	}
}

// readVariables reads the names and the values of all variables.
func (p *cfn) readVariables() {
	for p.open("variables"); p.hasMore("variables"); {
		name := ""
		if p.kind == wordToken && (p.isKey || !looksNumeric(p.text)) { // else it is the number of values: the variable has no name
			name = p.readWord("a variable")
		}
		title := name
		if name == "" {
			title = strconv.Itoa(len(p.domains))
		}
		if _, twice := p.index[title]; twice {
			p.FailInput(uai.ErrModel, "variable %.40q is there twice", title)
		}
		p.index[title] = len(p.domains)
		states := p.readDomain(title)
		p.names, p.states = append(p.names, name), append(p.states, states)
	}
	if strings.Join(p.names, "") == "" {
		p.names = nil
	}
}

// readDomain reads the values of a variable and adds it: their number, negative for an interval that begins at 0, or
// their names, which it returns.
func (p *cfn) readDomain(title string) (states []string) {
	values := map[string]int{} // by name; empty if the values have none
	p.values = append(p.values, values)
	if p.kind != openToken {
		size := p.ParseInteger(p.readWord("the values of variable "+title), "the number of values of variable "+title)
		p.addVariable(title, max(size, -size))
		return nil
	}
	for p.advance(); p.hasMore("the values of variable " + title); {
		value := p.readWord("a value of variable " + title)
		if looksNumeric(value) {
			p.FailInput(uai.ErrModel, "variable %s: a value is called %.40q, names do not begin as numbers do", title, value)
		}
		if _, twice := values[value]; twice {
			p.FailInput(uai.ErrModel, "variable %s: value %.40q is there twice", title, value)
		}
		values[value] = len(states)
		states = append(states, value)
	}
	p.addVariable(title, len(states))
	return states
}

// readFunctions reads all functions.
func (p *cfn) readFunctions() {
	p.tables = map[string]*tensor.Dense{}
	for p.open("functions"); p.hasMore("functions"); {
		title := fmt.Sprintf("function %d", len(p.network.functions))
		name := ""
		if p.kind == wordToken {
			name = p.readWord("a function")
			title = fmt.Sprintf("function %.40q", name)
		}
		p.open(title)
		p.acceptMember("scope")
		if scope := p.readScope(title); p.checkScope(title, scope) {
			p.readDefinition(title, name, scope)
		}
	}
}

// readScope reads the variables of a function, by name or by number.
func (p *cfn) readScope(title string) (scope []int) {
	scope = []int{}
	for p.open("the scope of " + title); p.hasMore("the scope of " + title); {
		word := p.readWord("a variable of " + title)
		v, ok := p.index[word]
		if number, err := strconv.Atoi(word); !ok && err == nil {
			v, ok = number, number >= 0 && number < len(p.domains)
		}
		if !ok {
			p.FailInput(uai.ErrModel, "%s: there is no variable %.40q", title, word)
			return nil
		}
		scope = append(scope, v)
	}
	return scope
}

// readDefinition reads the costs of a function, in any of their forms, and the closing brace. name is the function's
// name; title names it in errors.
func (p *cfn) readDefinition(title, name string, scope []int) {
	switch {
	case p.acceptMember("type"):
		p.readTyped(title, scope)
		return
	case p.acceptMember("defaultcost"):
		p.readSparse(title, name, scope, p.readCost("the default cost of "+title))
	case !p.acceptMember("costs"):
		p.failWanted("costs, defaultcost or type of " + title)
	case p.kind == wordToken:
		t := p.addFunction(title, scope, 0) // filled later: the word names a function that may come after this one
		p.pending = append(p.pending, pending{title, p.text, p.line, t})
		p.advance()
	default:
		p.readDense(title, name, scope)
	}
	if p.hasMore(title) { // at the closing brace hasMore reads past it and returns false
		p.failWanted("the end of " + title)
	}
}

// readCost reads a cost: a number, or inf for a forbidden combination.
func (p *cfn) readCost(what string) float64 { return p.parseCost(p.readWord(what), what) }

// parseCost returns a word as a cost to be minimised, +∞ if it is forbidden. Infinity without a sign always forbids; an
// infinity that would be better than every number is an error.
func (p *cfn) parseCost(word, what string) float64 {
	sign, isInfinite := strings.CutSuffix(word, "inf")
	isInfinite = isInfinite && (sign == "" || sign == "+" || sign == "-")
	isMinimisation := p.sign > 0 // sign is −1 if the largest value is sought: its negative is then the cost
	switch {
	case !isInfinite:
		return p.sign * p.ParseNumber(word, what)
	case sign != "" && (sign == "-") == isMinimisation:
		p.FailInput(uai.ErrModel, "%s is %s, better than anything: costs are finite, or inf for what is forbidden", what, word)
		return 0
	}
	return math.Inf(1)
}

// readDense reads the cost of every combination of values, the last variable fastest.
func (p *cfn) readDense(title, name string, scope []int) {
	t := p.addFunction(title, scope, 0)
	if t == nil {
		return
	}
	p.tables[name] = t
	i, list, costTitle := 0, "the costs of "+title, "a cost of "+title
	for p.open(list); p.hasMore(list); i++ {
		if i == len(t.Data) {
			p.FailInput(uai.ErrModel, "%s: more than %d costs", title, i)
			return
		}
		t.Data[i] = p.readCost(costTitle)
	}
	if i < len(t.Data) {
		p.FailInput(uai.ErrModel, "%s: %d costs, its scope needs %d", title, i, len(t.Data))
	}
}

// readSparse reads a list of combinations of values, each with its cost. All others have the default cost.
func (p *cfn) readSparse(title, name string, scope []int, defaultCost float64) {
	t := p.addFunction(title, scope, defaultCost)
	if t == nil {
		return
	}
	p.tables[name] = t
	if !p.acceptMember("costs") {
		p.failWanted("costs of " + title)
		return
	}
	if p.kind == wordToken {
		p.Fail(fault.Unsupported, uai.ErrModel, "%s has a default cost and shares the table of %.40q", title, p.text)
		return
	}
	isListed := make([]bool, len(t.Data))
	for p.open("the costs of " + title); p.hasMore("the costs of " + title); {
		index := p.readCombination(title, scope, t.Shape)
		c := p.readCost("a cost of " + title)
		if p.Err == nil && isListed[index] {
			p.FailInput(uai.ErrModel, "%s: the combination of values at place %d of its table is there twice", title, index)
		}
		if p.Err != nil {
			return
		}
		isListed[index], t.Data[index] = true, c
	}
}

// readCombination reads a value of every variable of a scope, by name or position, and returns the index of this
// combination in a table of the shape.
func (p *cfn) readCombination(title string, scope, shape []int) int {
	values := make([]int, len(scope))
	for k, v := range scope {
		word := p.readWord("a value of " + title)
		x, ok := p.values[v][word]
		if number, err := strconv.Atoi(word); !ok && err == nil {
			x, ok = number, number >= 0 && number < shape[k]
		}
		if !ok {
			p.FailInput(uai.ErrModel, "%s: variable %s has no value %.40q", title, p.nameOf(v), word)
			return 0
		}
		values[k] = x
	}
	return indexOf(shape, values)
}

// readTyped reads a function that a formula with parameters defines. The current word is its type.
func (p *cfn) readTyped(title string, scope []int) {
	kind := p.text
	if _, ok := formulaParameters(kind); !ok {
		p.failKind(title, kind)
		return
	}
	p.advance()
	if !p.acceptMember("params") {
		p.failWanted("params of " + title)
		return
	}
	var parameters []float64
	for p.open("the parameters of " + title); p.hasMore("the parameters of " + title); {
		if len(parameters) == 3 { // no formula has more
			p.failWanted("the end of the parameters of " + title)
			return
		}
		parameters = append(parameters, p.ParseNumber(p.readWord("a parameter of "+title), "a parameter of "+title))
	}
	if p.sign < 0 && p.Err == nil {
		p.Fail(fault.Unsupported, uai.ErrModel, "%s is %.40q in a problem that asks for the largest value", title, kind)
		return
	}
	p.addFormula(title, kind, scope, parameters)
	if p.hasMore(title) { // at the closing brace hasMore reads past it and returns false
		p.failWanted("the end of " + title)
	}
}

// resolvePending fills the tables of functions that share the table of another one.
func (p *cfn) resolvePending() {
	for _, f := range p.pending {
		if p.Err != nil {
			return
		}
		t := p.tables[f.source]
		if p.Line = f.line; t == nil { // errors name the line of the function that shares
			p.FailInput(uai.ErrModel, "%s shares the costs of %.40q, and no function of this name has any", f.title, f.source)
		} else if !slices.Equal(t.Shape, f.table.Shape) {
			p.FailInput(uai.ErrModel, "%s: its variables have %v values, those of %.40q have %v", f.title, f.table.Shape, f.source, t.Shape)
		} else {
			copy(f.table.Data, t.Data)
		}
	}
}

// looksNumeric reports whether a word begins as numbers do; an empty one does.
func looksNumeric(word string) bool {
	return word == "" || strings.IndexByte("0123456789-.+", word[0]) >= 0
}
