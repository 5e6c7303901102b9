package bayesnet

// BIF, the interchange format of JavaBayes, as bnlearn, pgmpy and aGrUM write it.
//
// Rows name the states of the parents. States may be intervals without quotes, as (0,20] and [0;20[. A list after `table` has the node
// slowest and the last parent fastest (JavaBayes, pgmpy, aGrUM agree), and for a node without parents that is its distribution. `default`
// stands for the rows that are not there.

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// ReadBIF reads a BIF file.
func ReadBIF(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	n, err := newNetwork(lexicon{"bif", structure, []string{"//"}, true}, r, limits)
	if err != nil {
		return nil, err
	}
	p := &bif{n}
	for !p.done() {
		at := p.at
		switch word := p.word(); word {
		case "network":
			p.begin(at, "network")
			p.name()
			p.expect('{', "after network")
			for !p.take('}') && p.err == nil {
				p.property("network")
			}
		case "variable":
			p.declaration(at)
		case "probability":
			p.distribution(at)
		default:
			p.at = at
			p.wanted("network, variable or probability", "between blocks")
		}
	}
	return p.finish()
}

// bif reads a BIF file.
type bif struct{ *network }

// property returns the text of a property.
func (p *bif) property(where string) string {
	at := p.at
	if p.word() != "property" {
		p.at = at
		p.wanted("a property or '}'", "in the block %s", where)
		return ""
	}
	from := p.at
	p.skip(';', "after a property of %s", where)
	return strings.Trim(strings.TrimSuffix(p.text[min(from, p.at):p.at], ";"), "\" \t\r\n")
}

// functionOf is the function by which a property declares a table; empty if it declares none.
func functionOf(property string) string {
	if words := strings.Fields(property); len(words) > 1 && words[0] == "function" {
		return strings.Join(words[1:], " ")
	}
	return ""
}

// declaration reads a variable with its states.
func (p *bif) declaration(at int) {
	name := p.name()
	p.expect('{', "after variable %s", quoted(name))
	var states []string
	for !p.take('}') && p.err == nil {
		p.peek()
		from := p.at
		if p.word() != "type" {
			p.at = from
			p.drawBy(len(p.m.Domains), p.property("variable "+quoted(name)))
			continue
		}
		if states != nil {
			p.fail(from, uai.ErrSyntax, "variable %s has two types", quoted(name))
			return
		}
		states = p.states(name)
	}
	p.node(at, name, states)
}

// states reads `discrete [ 2 ] { yes, no };`.
func (p *bif) states(name string) []string {
	said := p.discrete("variable", name, fault.BadInput)
	if said == 0 {
		return nil
	}
	p.take('=')
	p.expect('{', "in the type of variable %s", quoted(name))
	states := p.list("variable", name, said)
	p.take(';')
	return states
}

// discrete reads `discrete [ 2 ]`, the number of states; 0 for another type, which is an error with the code.
func (p *network) discrete(what, name string, code fault.Code) int {
	p.peek()
	at := p.at
	if kind := p.word(); kind != "discrete" {
		p.failAs(code, at, uai.ErrModel, "%s %s has the type %s, discrete is read", what, quoted(name), quoted(kind))
		return 0
	}
	return p.count(name)
}

// list reads the names of the announced number of states, and the brace that closes them.
func (p *network) list(what, name string, said int) []string {
	p.peek()
	at := p.at
	states, ok := p.labels('}', said, nil)
	if !ok {
		p.fail(at, uai.ErrModel, "%s %s has %d states, %d are announced", what, quoted(name), len(states), said)
	}
	return states
}

// count reads `[ 2 ]`, the number of states.
func (p *network) count(name string) int {
	p.expect('[', "in the type of variable %s", quoted(name))
	at, n := p.at, 0
	for _, c := range p.word() {
		if n = 10*n + int(c-'0'); c < '0' || c > '9' || n > p.domain {
			n = 0
			break
		}
	}
	if n == 0 {
		p.fail(at, uai.ErrModel, "variable %s: the number of states is 1 to %d", quoted(name), p.domain)
	}
	p.expect(']', "in the type of variable %s", quoted(name))
	return n
}

// distribution reads the table of a node.
func (p *bif) distribution(at int) {
	rows := p.rows(at)
	if rows == nil {
		return
	}
	for !p.take('}') && p.err == nil {
		p.peek()
		from := p.at
		if p.take('(') {
			if states, ok := p.labels(')', len(rows.scope)-1, rows.isState); !ok {
				p.fail(from, uai.ErrModel, "node %s: a row names %d states, it has %d parents",
					p.called(rows.child()), len(states), len(rows.scope)-1)
			} else if r := rows.named(from, states); p.err == nil {
				rows.fill(from, r)
			}
			continue
		}
		switch p.word() {
		case "table":
			rows.whole(from)
		case "default":
			rows.fallback(from)
		default:
			p.at = from
			if f := functionOf(p.property("probability of " + p.called(rows.child()))); f != "" {
				rows.function, rows.stated = f, from
			}
		}
	}
	rows.close(at)
}

// scope reads `( node | parent, parent )`: the parents in their order, then the node. find says which variable a name is.
func (p *network) scope(what string, find func(at int, name string) int) []int {
	p.expect('(', "after %s", what)
	var scope []int
	for !p.take(')') && p.err == nil {
		p.peek()
		at := p.at
		name := p.name()
		if name == "" {
			p.wanted("a node", "after %s", what)
		}
		scope = append(scope, find(at, name))
		if len(scope) == 1 && p.take('|') {
			continue
		}
		p.take(',')
	}
	if len(scope) == 0 {
		p.wanted("a node", "after %s", what)
		return nil
	}
	return append(scope[1:], scope[0])
}

// opened reads the scope of a table up to the brace after it, and adds the table; nil: it cannot be.
func (p *network) opened(at int, what string, find func(at int, name string) int) ([]int, *tensor.Dense) {
	scope := p.scope(what, find)
	p.expect('{', "after %s", what)
	return scope, p.table(at, scope)
}

// rows begins the table of a node; nil: it cannot be.
func (p *network) rows(at int) *rows {
	scope, t := p.opened(at, "probability", p.variable)
	if t == nil {
		return nil
	}
	count := len(t.Data) / t.Shape[len(t.Shape)-1]
	return &rows{n: p, scope: scope, t: t, there: make([]bool, count), lines: make([]int, count)}
}

// rows fills a table row by row.
type rows struct {
	n         *network
	scope     []int
	t         *tensor.Dense
	there     []bool    // per row
	lines     []int     // per row, 0 where a row has none of its own
	other     []float64 // of rows that are not there
	otherLine int

	function string // in place of the numbers, and its place in the text
	stated   int
}

func (r *rows) child() int { return r.scope[len(r.scope)-1] }

// isState reports whether a parent has a state of this name.
func (r *rows) isState(parent int, name string) bool {
	_, ok := r.n.values[r.scope[parent]][name]
	return ok
}

// named is the row of these states of the parents.
func (r *rows) named(at int, states []string) (row int) {
	for k, name := range states {
		row = row*r.t.Shape[k] + r.n.state(at, r.scope[k], name)
	}
	return row
}

// list reads numbers up to a semicolon.
func (r *rows) list(into []float64) {
	for i := range into {
		r.n.take(',')
		into[i] = r.n.probability("node %s", r.n.called(r.child()))
		if r.n.err != nil {
			return
		}
	}
	r.n.take(',')
	if !r.n.take(';') {
		r.n.wanted("';'", "node %s, after %d numbers", r.n.called(r.child()), len(into))
	}
}

// fill reads the numbers of a row.
func (r *rows) fill(at, row int) {
	if r.there[row] {
		r.n.fail(at, uai.ErrModel, "node %s: row %s is there twice", r.n.called(r.child()), r.n.row(r.scope, row))
		return
	}
	r.there[row], r.lines[row] = true, r.n.line(at)
	d := r.t.Shape[len(r.t.Shape)-1]
	r.list(r.t.Data[row*d : (row+1)*d])
}

// whole reads a table with the node slowest.
func (r *rows) whole(at int) {
	if r.other != nil {
		r.n.fail(at, uai.ErrModel, "node %s has a default and a table", r.n.called(r.child()))
		return
	}
	for row, there := range r.there {
		if there {
			r.n.fail(at, uai.ErrModel, "node %s: row %s is there twice", r.n.called(r.child()), r.n.row(r.scope, row))
			return
		}
		r.there[row] = true
	}
	if len(r.lines) == 1 {
		r.lines[0] = r.n.line(at)
	}
	d := r.t.Shape[len(r.t.Shape)-1]
	read := make([]float64, len(r.t.Data))
	r.list(read)
	for i, v := range read {
		r.t.Data[i%len(r.there)*d+i/len(r.there)] = v
	}
}

// fallback reads the row that stands for missing ones.
func (r *rows) fallback(at int) {
	if r.other != nil {
		r.n.fail(at, uai.ErrModel, "node %s has two defaults", r.n.called(r.child()))
		return
	}
	r.other, r.otherLine = make([]float64, r.t.Shape[len(r.t.Shape)-1]), r.n.line(at)
	r.list(r.other)
}

// close fills missing rows, or reports one.
func (r *rows) close(at int) {
	d := r.t.Shape[len(r.t.Shape)-1]
	if r.other == nil && r.function == "" && !slices.Contains(r.there, true) {
		r.n.isUnknown(r.t)
		return
	}
	for row, there := range r.there {
		switch {
		case r.n.err != nil:
			return
		case there:
		case r.other == nil && r.function != "":
			r.n.failAs(fault.Unsupported, r.stated, uai.ErrModel, "node %s is given by the function %s, rows of numbers are read",
				r.n.called(r.child()), quoted(r.function))
		case r.other == nil:
			r.n.fail(at, uai.ErrModel, "node %s: no row for %s", r.n.called(r.child()), r.n.row(r.scope, row))
		default:
			copy(r.t.Data[row*d:], r.other)
			r.lines[row] = r.otherLine
		}
	}
	r.n.m.SetRowLines(len(r.n.m.Factors)-1, r.lines)
}

// WriteBIF writes a Bayesian network as a BIF file that ReadBIF reads back with the same bits.
func WriteBIF(to io.Writer, m *factorgraph.Model) error {
	w, err := newWritten("bif", to, m)
	if err != nil {
		return err
	}
	w.WriteString("network unknown {\n}\n")
	names, states := each(plain, w.names), make([][]string, len(w.states))
	for v := range names {
		states[v] = each(plain, w.states[v])
		fmt.Fprintf(w, "variable %s {\n  type discrete [ %d ] { %s };\n}\n", names[v], len(states[v]), strings.Join(states[v], ", "))
	}
	w.distributions(names, "table ", ") ", func(v, x int) string { return states[v][x] })
	return w.close()
}

// plain is a name as BIF and DSC have it: in quotes where it is no word.
func plain(name string) string {
	if name == "" || strings.ContainsAny(name, structure+" =\t\r\n\v\f\x00\\") ||
		strings.Contains(name, "//") || strings.Contains(name, "/*") {
		return inQuotes(name)
	}
	return name
}

// each maps names by a function.
func each(of func(string) string, names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = of(name)
	}
	return list
}
