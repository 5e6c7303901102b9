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

// ReadBIF reads a BIF file: variables with their states, and the table of each.
func ReadBIF(r io.Reader, limits uai.Limits) (*factorgraph.Model, error) {
	n, err := newNetwork(lexicon{format: "bif", stops: structure, comments: []string{"//"}, hasBlockComments: true}, r, limits)
	if err != nil {
		return nil, err
	}
	p := &bif{n}
	for !p.atEnd() {
		offset := p.offset
		switch word := p.readWord(); word {
		case "network":
			p.beginModel(offset, "network")
			p.readName()
			p.expect('{', "after network")
			for !p.accept('}') && p.err == nil {
				p.readProperty("network")
			}
		case "variable":
			p.readVariable(offset)
		case "probability":
			p.readDistribution(offset)
		default:
			p.offset = offset
			p.failWanted("network, variable or probability", "between blocks")
		}
	}
	return p.finish()
}

// bif reads a BIF file.
type bif struct{ *network }

// readProperty reads `property text;` and returns the text.
func (p *bif) readProperty(place string) string {
	offset := p.offset
	if p.readWord() != "property" {
		p.offset = offset
		p.failWanted("a property or '}'", "in the block %s", place)
		return ""
	}
	start := p.offset
	p.skipTo(';', "after a property of %s", place)
	return strings.Trim(strings.TrimSuffix(p.text[min(start, p.offset):p.offset], ";"), "\" \t\r\n")
}

// declaredFunction returns the function by which a property declares a table, the text behind the word function; empty
// if it declares none.
func declaredFunction(property string) string {
	if words := strings.Fields(property); len(words) > 1 && words[0] == "function" {
		return strings.Join(words[1:], " ")
	}
	return ""
}

// readVariable reads a variable with its states and adds it. offset is where it begins.
func (p *bif) readVariable(offset int) {
	name := p.readName()
	p.expect('{', "after variable %s", quote(name))
	var states []string
	for !p.accept('}') && p.err == nil {
		p.peek() // skips white space and comments
		start := p.offset
		if p.readWord() != "type" {
			p.offset = start
			p.setPositionFrom(len(p.m.Domains), p.readProperty("variable "+quote(name))) // of the node that is added below
			continue
		}
		if states != nil {
			p.fail(start, uai.ErrSyntax, "variable %s has two types", quote(name))
			return
		}
		states = p.readStates(name)
	}
	p.addNode(offset, name, states)
}

// readStates reads `discrete [ 2 ] { yes, no };` and returns the names.
func (p *bif) readStates(name string) []string {
	announced := p.readDiscrete("variable", name, fault.BadInput)
	if announced == 0 {
		return nil
	}
	p.accept('=') // if it is there
	p.expect('{', "in the type of variable %s", quote(name))
	states := p.readStateList("variable", name, announced)
	p.accept(';') // if it is there
	return states
}

// readDiscrete reads `discrete [ 2 ]` and returns the number of states. It returns 0, after an error with the code, if
// the type is another one. what and name are the variable in errors.
func (p *network) readDiscrete(what, name string, code fault.Code) int {
	p.peek() // skips white space and comments
	offset := p.offset
	if kind := p.readWord(); kind != "discrete" {
		p.failAs(code, offset, uai.ErrModel, "%s %s has the type %s, discrete is read", what, quote(name), quote(kind))
		return 0
	}
	return p.readCount(name)
}

// readStateList reads the names of states and the brace that closes them. It is an error if there are not as many as
// announced.
func (p *network) readStateList(what, name string, announced int) []string {
	p.peek() // skips white space and comments
	offset := p.offset
	states, ok := p.readLabels('}', announced, nil) // nil: every name may stand there
	if !ok {
		p.fail(offset, uai.ErrModel, "%s %s has %d states, %d are announced", what, quote(name), len(states), announced)
	}
	return states
}

// readCount reads `[ 2 ]` and returns the number of states; 0 after an error.
func (p *network) readCount(name string) int {
	p.expect('[', "in the type of variable %s", quote(name))
	offset, n := p.offset, 0
	for _, c := range p.readWord() {
		if n = 10*n + int(c-'0'); c < '0' || c > '9' || n > p.mostStates {
			n = 0
			break
		}
	}
	if n == 0 {
		p.fail(offset, uai.ErrModel, "variable %s: the number of states is 1 to %d", quote(name), p.mostStates)
	}
	p.expect(']', "in the type of variable %s", quote(name))
	return n
}

// readDistribution reads the table of a node: rows, a whole table, a default row, or a property that declares a
// function, which is an error if rows are missing. offset is where it begins.
func (p *bif) readDistribution(offset int) {
	rows := p.openRows(offset)
	if rows == nil {
		return
	}
	for !p.accept('}') && p.err == nil {
		p.peek() // skips white space and comments
		start := p.offset
		if p.accept('(') { // a row with the states of the parents
			if states, ok := p.readLabels(')', len(rows.scope)-1, rows.isState); !ok {
				p.fail(start, uai.ErrModel, "node %s: a row names %d states, it has %d parents",
					p.nameOf(rows.child()), len(states), len(rows.scope)-1)
			} else if r := rows.rowOf(start, states); p.err == nil {
				rows.readRow(start, r)
			}
			continue
		}
		switch p.readWord() {
		case "table":
			rows.readWholeTable(start)
		case "default":
			rows.readDefault(start)
		default:
			p.offset = start
			if f := declaredFunction(p.readProperty("probability of " + p.nameOf(rows.child()))); f != "" {
				rows.function, rows.functionOffset = f, start
			}
		}
	}
	rows.fillMissing(offset)
}

// readScope reads `( node | parent, parent )` and returns the parents in their order, then the node. find returns the
// variable of a name.
func (p *network) readScope(what string, find func(offset int, name string) int) []int {
	p.expect('(', "after %s", what)
	var scope []int
	for !p.accept(')') && p.err == nil {
		p.peek() // skips white space and comments
		offset := p.offset
		name := p.readName()
		if name == "" {
			p.failWanted("a node", "after %s", what)
		}
		scope = append(scope, find(offset, name))
		if len(scope) == 1 && p.accept('|') {
			continue
		}
		p.accept(',') // if it is there
	}
	if len(scope) == 0 {
		p.failWanted("a node", "after %s", what)
		return nil
	}
	return append(scope[1:], scope[0])
}

// openTable reads the scope of a table up to the brace after it, and adds the table. It returns a nil table after an
// error.
func (p *network) openTable(offset int, what string, find func(offset int, name string) int) ([]int, *tensor.Dense) {
	scope := p.readScope(what, find)
	p.expect('{', "after %s", what)
	return scope, p.addTable(offset, scope)
}

// openRows reads the scope of a table up to the brace after it, and returns a reader of its rows; nil after an error.
func (p *network) openRows(offset int) *rowReader {
	scope, t := p.openTable(offset, "probability", p.findVariable)
	if t == nil {
		return nil
	}
	count := len(t.Data) / t.Shape[len(t.Shape)-1]
	return &rowReader{network: p, scope: scope, table: t, isRead: make([]bool, count), lines: make([]int, count)}
}

// rowReader fills a table row by row.
type rowReader struct {
	network     *network
	scope       []int         // the parents, then the node
	table       *tensor.Dense // the node fastest, then its last parent
	isRead      []bool        // per row, whether the file has it
	lines       []int         // per row, its line in the file; 0 if it has none of its own
	defaultRow  []float64     // the default: the numbers of rows that the file does not have; nil if there is none
	defaultLine int           // the line of the default

	function       string // the function that gives the node in place of numbers; empty if there is none
	functionOffset int    // where the function is in the text
}

// child returns the node whose table is read.
func (r *rowReader) child() int { return r.scope[len(r.scope)-1] }

// isState reports whether the parent at this position of the scope has a state of this name.
func (r *rowReader) isState(parent int, name string) bool {
	_, ok := r.network.values[r.scope[parent]][name]
	return ok
}

// rowOf returns the index of the row for these states of the parents.
func (r *rowReader) rowOf(offset int, states []string) (row int) {
	for k, name := range states {
		row = row*r.table.Shape[k] + r.network.findState(offset, r.scope[k], name)
	}
	return row
}

// readNumbers reads as many numbers as list has, and the semicolon after them.
func (r *rowReader) readNumbers(list []float64) {
	for i := range list {
		r.network.accept(',') // if it is there
		list[i] = r.network.readProbability("node %s", r.network.nameOf(r.child()))
		if r.network.err != nil {
			return
		}
	}
	r.network.accept(',') // if it is there
	if !r.network.accept(';') {
		r.network.failWanted("';'", "node %s, after %d numbers", r.network.nameOf(r.child()), len(list))
	}
}

// readRow reads the numbers of a row.
func (r *rowReader) readRow(offset, row int) {
	if r.isRead[row] {
		r.network.fail(offset, uai.ErrModel, "node %s: row %s is there twice", r.network.nameOf(r.child()), r.network.rowText(r.scope, row))
		return
	}
	r.isRead[row], r.lines[row] = true, r.network.lineAt(offset)
	d := r.table.Shape[len(r.table.Shape)-1]
	r.readNumbers(r.table.Data[row*d : (row+1)*d])
}

// readWholeTable reads the numbers of all rows: the node slowest, and the last parent fastest.
func (r *rowReader) readWholeTable(offset int) {
	if r.defaultRow != nil {
		r.network.fail(offset, uai.ErrModel, "node %s has a default and a table", r.network.nameOf(r.child()))
		return
	}
	for row, isRead := range r.isRead {
		if isRead {
			r.network.fail(offset, uai.ErrModel, "node %s: row %s is there twice", r.network.nameOf(r.child()), r.network.rowText(r.scope, row))
			return
		}
		r.isRead[row] = true
	}
	if len(r.lines) == 1 { // a single row
		r.lines[0] = r.network.lineAt(offset)
	}
	d := r.table.Shape[len(r.table.Shape)-1]
	numbers := make([]float64, len(r.table.Data))
	r.readNumbers(numbers)
	for i, v := range numbers {
		row, x := i%len(r.isRead), i/len(r.isRead) // x is the node's state
		r.table.Data[row*d+x] = v
	}
}

// readDefault reads the row that stands for all rows that the file does not have.
func (r *rowReader) readDefault(offset int) {
	if r.defaultRow != nil {
		r.network.fail(offset, uai.ErrModel, "node %s has two defaults", r.network.nameOf(r.child()))
		return
	}
	r.defaultRow, r.defaultLine = make([]float64, r.table.Shape[len(r.table.Shape)-1]), r.network.lineAt(offset)
	r.readNumbers(r.defaultRow)
}

// fillMissing gives the default to rows that the file does not have. Without a default a missing row is an error. But a table without any
// numbers, which no function replaces, is marked as unknown, for learning to fill in.
func (r *rowReader) fillMissing(offset int) {
	d := r.table.Shape[len(r.table.Shape)-1]
	if r.defaultRow == nil && r.function == "" && !slices.Contains(r.isRead, true) {
		r.network.markUnknown(r.table)
		return
	}
	for row, isRead := range r.isRead {
		switch {
		case r.network.err != nil:
			return
		case isRead: // it has its numbers
		case r.defaultRow == nil && r.function != "":
			r.network.failAs(fault.Unsupported, r.functionOffset, uai.ErrModel, "node %s is given by the function %s, rows of numbers are read",
				r.network.nameOf(r.child()), quote(r.function))
		case r.defaultRow == nil:
			r.network.fail(offset, uai.ErrModel, "node %s: no row for %s", r.network.nameOf(r.child()), r.network.rowText(r.scope, row))
		default:
			copy(r.table.Data[row*d:], r.defaultRow)
			r.lines[row] = r.defaultLine
		}
	}
	r.network.m.SetRowLines(len(r.network.m.Factors)-1, r.lines)
}

// WriteBIF writes a Bayesian network as a BIF file that ReadBIF reads back with the same bits.
func WriteBIF(to io.Writer, m *factorgraph.Model) error {
	w, err := newNetworkWriter("bif", to, m)
	if err != nil {
		return err
	}
	w.WriteString("network unknown {\n}\n")
	names, states := mapNames(bifName, w.names), make([][]string, len(w.states))
	for v := range names {
		states[v] = mapNames(bifName, w.states[v])
		fmt.Fprintf(w, "variable %s {\n  type discrete [ %d ] { %s };\n}\n", names[v], len(states[v]), strings.Join(states[v], ", "))
	}
	// The word table stands before the row of a node without parents; states are called by their names.
	w.writeDistributions(names, "table ", ") ", func(v, x int) string { return states[v][x] })
	return w.finish()
}

// bifName returns a name as BIF has it: in quotes if it is no word.
func bifName(name string) string {
	if name == "" || strings.ContainsAny(name, structure+" =\t\r\n\v\f\x00\\") ||
		strings.Contains(name, "//") || strings.Contains(name, "/*") {
		return quoteName(name)
	}
	return name
}

// mapNames returns the results of a function for each name.
func mapNames(convert func(string) string, names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = convert(name)
	}
	return list
}
