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
// each with its scope, a default cost and the combinations of values that cost something else. A negative order makes a function
// available to later ones, and a negative number of combinations takes it: its table up to three variables, of more its combinations beside
// the later function's own default cost, as toulbar2 does. Variables and values have no names.
//
// Costs are integers or decimals of at least 0, and from the bound on forbidden. Functions that a keyword and parameters define are
// read where they are comparisons of two variables; others, such as salldiff, are refused with fault.Unsupported. Errors name line and
// function; those of r pass.
func ReadWCSP(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	p := &wcsp{network: newNetwork("wcsp", r, limits)}
	p.Need("the problem's name")
	variables := p.Count("variables", p.limits.Variables)
	p.Need("the largest number of values")
	p.Integer(p.Word, "the largest number of values")
	functions := p.Count("cost functions", p.limits.Factors)
	p.top = p.cost("the upper bound")
	for v := 0; v < variables && p.Need(fmt.Sprintf("the number of values of variable %d", v)); v++ {
		size := p.Integer(p.Word, fmt.Sprintf("the number of values of variable %d", v))
		if size < 0 {
			size = -size // an interval from 0 on
		}
		p.variable(strconv.Itoa(v), size)
	}
	for j := 0; j < functions && p.Err == nil; j++ {
		p.next(fmt.Sprintf("cost function %d", j))
	}
	if p.Err == nil && p.Next() {
		p.Bad(uai.ErrSyntax, "%.40q after the last of %d cost functions", p.Word, functions)
	}
	return p.model()
}

// wcsp reads a WCSP file.
type wcsp struct {
	*network
	shared []shared // in their sequence
}

// shared is a function that later ones take.
type shared struct {
	table    *tensor.Dense
	isListed []bool // of each combination
}

// sharesTable is the largest order of a function that is shared with its default cost.
const sharesTable = 3

// cost reads a cost of at least 0.
func (p *wcsp) cost(what string) float64 {
	if !p.Need(what) {
		return 0
	}
	c := p.Number(p.Word, what)
	if c < 0 {
		p.Bad(uai.ErrModel, "%s is %v, costs are at least 0", what, c)
	}
	return c
}

// next reads a function.
func (p *wcsp) next(called string) {
	if !p.Need("the order of " + called) {
		return
	}
	order := p.Integer(p.Word, "the order of "+called)
	isShared := order < 0
	scope := p.scope(called, max(order, -order))
	if !p.scoped(called, scope) || !p.Need("the default cost of "+called) {
		return
	}
	word, line := p.Word, p.Line
	cost := p.Number(word, "the default cost of "+called)
	if !p.Need("the number of combinations of " + called) {
		return
	}
	size, err := strconv.Atoi(p.Word)
	switch {
	case err != nil && cost < 0:
		p.keyword(called, p.Word, scope)
		return
	case err != nil:
		p.Integer(p.Word, "the number of combinations of "+called)
	case cost < 0:
		p.Line = line
		p.Bad(uai.ErrModel, "the default cost of %s is %v, costs are at least 0", called, cost)
	}
	if p.Err == nil {
		p.table(called, scope, cost, size, isShared)
	}
}

// scope reads that many variables.
func (p *wcsp) scope(called string, order int) []int {
	if order < 0 || order > len(p.domains) { // −order of the least integer is below 0
		p.Bad(uai.ErrModel, "%s: %d variables in the scope, there are %d", called, order, len(p.domains))
	}
	scope := []int{}
	for k := 0; k < order && p.Need("a variable of "+called); k++ {
		v := p.Integer(p.Word, "a variable of "+called)
		if v < 0 || v >= len(p.domains) {
			p.Bad(uai.ErrModel, "%s: variable %d, there are %d", called, v, len(p.domains))
			break
		}
		scope = append(scope, v)
	}
	return scope
}

// table reads the combinations of a function, or takes those of an earlier one where their number is negative.
func (p *wcsp) table(called string, scope []int, cost float64, size int, isShared bool) {
	t := p.function(called, scope, cost)
	if t == nil {
		return
	}
	if size < 0 {
		p.share(called, size, t)
		return
	}
	isListed := make([]bool, len(t.Data))
	value, entry := "a value of "+called, "a cost of "+called
	for range size {
		index := p.combination(value, t.Shape)
		c := p.cost(entry)
		if p.Err == nil && isListed[index] {
			p.Bad(uai.ErrModel, "%s: the combination of values at place %d of its table is there twice", called, index)
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

// share fills a table from an earlier function, by its number among the shared ones: from −1 on downwards.
func (p *wcsp) share(called string, number int, t *tensor.Dense) {
	if number < -len(p.shared) {
		p.Bad(uai.ErrModel, "%s: shared cost function %d, there are %d by now", called, number, len(p.shared))
		return
	}
	s := p.shared[-number-1]
	if !slices.Equal(s.table.Shape, t.Shape) {
		p.Bad(uai.ErrModel, "%s: its variables have %v values, shared cost function %d has %v", called, t.Shape, -number, s.table.Shape)
		return
	}
	for i, isListed := range s.isListed {
		if isListed || len(t.Shape) <= sharesTable {
			t.Data[i] = s.table.Data[i]
		}
	}
}

// combination reads a value for every variable of a shape, and returns the place in the table.
func (p *wcsp) combination(what string, shape []int) (index int) {
	for k, size := range shape {
		if !p.Need(what) {
			return 0
		}
		x := p.Integer(p.Word, what)
		if x < 0 || x >= size {
			p.Bad(uai.ErrModel, "%s: %d of variable %d of its scope, which has %d", what, x, k, size)
			return 0
		}
		index = index*size + x
	}
	return index
}

// keyword reads a function that is no table.
func (p *wcsp) keyword(called, kind string, scope []int) {
	size, ok := arithmetic(kind)
	if !ok {
		p.refuse(called, kind)
		return
	}
	parameters := make([]float64, size)
	for k := range parameters {
		if !p.Need("a parameter of " + called) {
			return
		}
		parameters[k] = p.Number(p.Word, "a parameter of "+called)
	}
	p.compare(called, kind, scope, parameters)
}
