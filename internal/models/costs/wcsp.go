package costs

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// ReadWCSP reads a WCSP file: a name, the numbers of variables, of values at most and of functions, the bound; the domains; the functions,
// each with its scope, a default cost and the combinations of values that cost something else. Variables and values have no names.
//
// A negative number of variables (order) makes a function available to later ones, which share it by a negative number of combinations.
// A later function of up to three variables takes the whole table. One of more variables takes the listed combinations only, and all others
// have its own default cost. toulbar2 does so.
//
// Costs are integers or decimals of at least 0, and from the bound on forbidden. Functions that a keyword and parameters define are
// read where they are comparisons of two variables; others, such as salldiff, are refused with fault.Unsupported. Errors name line and
// function; those of r pass.
func ReadWCSP(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	p := &wcsp{network: newNetwork("wcsp", r, limits)}
	p.NextOrFail("the problem's name") // which is not needed
	variables := p.ReadCount("variables", p.limits.Variables)
	p.NextOrFail("the largest number of values")
	p.ParseInteger(p.Word, "the largest number of values") // the domains tell it: it only has to be an integer
	functions := p.ReadCount("cost functions", p.limits.Factors)
	p.top = p.readCost("the upper bound")
	for v := 0; v < variables && p.NextOrFail(fmt.Sprintf("the number of values of variable %d", v)); v++ {
		size := p.ParseInteger(p.Word, fmt.Sprintf("the number of values of variable %d", v))
		if size < 0 {
			size = -size // an interval from 0 on
		}
		p.addVariable(strconv.Itoa(v), size)
	}
	for j := 0; j < functions && p.Err == nil; j++ {
		p.readFunction(fmt.Sprintf("cost function %d", j))
	}
	if p.Err == nil && p.Next() {
		p.FailInput(uai.ErrSyntax, "%.40q after the last of %d cost functions", p.Word, functions)
	}
	return p.model()
}

// wcsp reads a WCSP file.
type wcsp struct {
	*network
	shared []shared // in the sequence of the file
}

// shared is a function whose table later functions may take.
type shared struct {
	table    *tensor.Dense
	isListed []bool // per entry of the table, whether the file lists it; the others have the default cost
}

// mostOrderWithDefault is the largest number of variables of a function of which the default cost is shared, too.
const mostOrderWithDefault = 3

// readCost reads a cost of at least 0; what names it in errors.
func (p *wcsp) readCost(what string) float64 {
	if !p.NextOrFail(what) {
		return 0
	}
	c := p.ParseNumber(p.Word, what)
	if c < 0 {
		p.FailInput(uai.ErrModel, "%s is %v, costs are at least 0", what, c)
	}
	return c
}

// readFunction reads one cost function: its order, which is the number of its variables, negative if later functions
// may take its table; its scope, its default cost and the number of its combinations, or −1 and a keyword; then the
// combinations or the parameters.
func (p *wcsp) readFunction(title string) {
	if !p.NextOrFail("the order of " + title) {
		return
	}
	order := p.ParseInteger(p.Word, "the order of "+title)
	isShared := order < 0
	scope := p.readScope(title, max(order, -order))
	if !p.checkScope(title, scope) || !p.NextOrFail("the default cost of "+title) {
		return
	}
	line := p.Line
	defaultCost := p.ParseNumber(p.Word, "the default cost of "+title)
	if !p.NextOrFail("the number of combinations of " + title) {
		return
	}
	size, err := strconv.Atoi(p.Word)
	switch {
	case err != nil && defaultCost < 0: // −1 and a keyword
		p.readFormula(title, p.Word, scope)
		return
	case err != nil:
		p.ParseInteger(p.Word, "the number of combinations of "+title) // notes the error
	case defaultCost < 0:
		p.Line = line
		p.FailInput(uai.ErrModel, "the default cost of %s is %v, costs are at least 0", title, defaultCost)
	}
	if p.Err == nil {
		p.readTable(title, scope, defaultCost, size, isShared)
	}
}

// readScope reads a scope of this many variables.
func (p *wcsp) readScope(title string, order int) []int {
	if order < 0 || order > len(p.domains) { // below 0: the caller negates a negative order, and the least integer has no negation
		p.FailInput(uai.ErrModel, "%s: %d variables in the scope, there are %d", title, order, len(p.domains))
	}
	scope := []int{}
	for k := 0; k < order && p.NextOrFail("a variable of "+title); k++ {
		v := p.ParseInteger(p.Word, "a variable of "+title)
		if v < 0 || v >= len(p.domains) {
			p.FailInput(uai.ErrModel, "%s: variable %d, there are %d", title, v, len(p.domains))
			break
		}
		scope = append(scope, v)
	}
	return scope
}

// readTable adds a function and reads its combinations: size of them, or, if size is negative, the table of the shared
// function −size. All others have the default cost.
func (p *wcsp) readTable(title string, scope []int, defaultCost float64, size int, isShared bool) {
	t := p.addFunction(title, scope, defaultCost)
	if t == nil {
		return
	}
	if size < 0 {
		p.copyShared(title, size, t)
		return
	}
	isListed := make([]bool, len(t.Data))
	valueTitle, costTitle := "a value of "+title, "a cost of "+title
	for range size {
		index := p.readCombination(valueTitle, t.Shape)
		c := p.readCost(costTitle)
		if p.Err == nil && isListed[index] {
			p.FailInput(uai.ErrModel, "%s: the combination of values at place %d of its table is there twice", title, index)
		}
		if p.Err != nil {
			return
		}
		isListed[index], t.Data[index] = true, c
	}
	if isShared {
		p.shared = append(p.shared, shared{t, isListed})
	}
}

// copyShared fills table t from a shared function: number −1 is the first shared function of the file, −2 the second.
// If the function has more than three variables, only its listed combinations are copied, and the others keep t's
// default cost.
func (p *wcsp) copyShared(title string, number int, t *tensor.Dense) {
	if number < -len(p.shared) {
		p.FailInput(uai.ErrModel, "%s: shared cost function %d, there are %d by now", title, number, len(p.shared))
		return
	}
	s := p.shared[-number-1]
	if !slices.Equal(s.table.Shape, t.Shape) {
		p.FailInput(uai.ErrModel, "%s: its variables have %v values, shared cost function %d has %v", title, t.Shape, -number, s.table.Shape)
		return
	}
	for i, isListed := range s.isListed {
		if isListed || len(t.Shape) <= mostOrderWithDefault {
			t.Data[i] = s.table.Data[i]
		}
	}
}

// readCombination reads a value of every variable of a shape, and returns the index of this combination in a table of
// the shape.
func (p *wcsp) readCombination(what string, shape []int) (index int) {
	for k, size := range shape {
		if !p.NextOrFail(what) {
			return 0
		}
		x := p.ParseInteger(p.Word, what)
		if x < 0 || x >= size {
			p.FailInput(uai.ErrModel, "%s: %d of variable %d of its scope, which has %d", what, x, k, size)
			return 0
		}
		index = index*size + x
	}
	return index
}

// readFormula reads a function that a keyword and parameters define.
func (p *wcsp) readFormula(title, kind string, scope []int) {
	size, ok := formulaParameters(kind)
	if !ok {
		p.failKind(title, kind)
		return
	}
	parameters := make([]float64, size)
	for k := range parameters {
		if !p.NextOrFail("a parameter of " + title) {
			return
		}
		parameters[k] = p.ParseNumber(p.Word, "a parameter of "+title)
	}
	p.addFormula(title, kind, scope, parameters)
}
