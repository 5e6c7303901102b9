// Package libdai reads and writes libDAI's factor graphs (.fg).
//
// A file lists factors: the labels of their variables, the numbers of their values, and the entries that are not 0 with their positions,
// the first variable fastest. Variables are in the sequence of their labels; where these are not 0, 1, … they are names.
package libdai

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/internal/models/words"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// spare bounds the entries of tables beyond the bytes of their file.
const spare = 1 << 20

// Read reads a factor graph. A factor's scope is the file's in reverse, so that its table has the file's sequence. Errors name line, factor
// and reason, wrap uai's sentinels and carry fault.BadInput; those of r pass.
func Read(r io.Reader, l uai.Limits) (*factorgraph.Model, error) {
	l.Bytes = cmp.Or(l.Bytes, 256<<20)
	l.Variables = cmp.Or(l.Variables, 1<<22)
	l.Factors = cmp.Or(l.Factors, 1<<23)
	l.Domain = cmp.Or(l.Domain, 1<<20)
	l.Legs = cmp.Or(l.Legs, 1<<26)
	l.Entries = cmp.Or(l.Entries, 1<<27)
	p := &graph{Scanner: words.New("fg", r, l.Bytes), limits: l, sizes: map[int]int{}}
	factors := p.readCount("factors", l.Factors)
	for j := 0; j < factors && p.Err == nil; j++ {
		p.readFactor(j)
	}
	if p.Err == nil && p.nextWord() {
		p.FailInput(uai.ErrSyntax, "%.40q after the last of %d factors", p.Word, factors)
	}
	return p.model()
}

// graph is a file as far as it is read.
type graph struct {
	*words.Scanner
	limits  uai.Limits
	sizes   map[int]int          // the number of values of each variable, by its label
	factors []factorgraph.Factor // with labels as their scopes
	entries int                  // of all tables together
	legs    int                  // variables in all scopes, each counted in each scope
}

// nextWord reads the next word outside comments, and reports whether there is one.
func (p *graph) nextWord() bool {
	for p.Next() {
		if !p.OpensLine || !strings.HasPrefix(p.Word, "#") {
			return true
		}
		p.SkipLine()
	}
	return false
}

// readInteger reads an integer of at least 0; 0 after an error. what names it in errors.
func (p *graph) readInteger(what string) int {
	if !p.nextWord() {
		p.FailInput(uai.ErrSyntax, "the file ends where %s is needed", what)
		return 0
	}
	n := p.ParseInteger(p.Word, what)
	if n < 0 {
		p.FailInput(uai.ErrModel, "%s is %d", what, n)
		return 0
	}
	return n
}

// readCount reads a number of things, at most limit; 0 after an error.
func (p *graph) readCount(what string, limit int) int {
	n := p.readInteger("the number of " + what)
	if n > limit {
		p.FailInput(uai.ErrLimit, "%d %s, at most %d are read", n, what, limit)
	}
	if p.Err != nil {
		return 0
	}
	return n
}

// readFactor reads factor j: the labels of its variables, their numbers of values, and its entries. Its scope has
// labels until model replaces them by positions.
func (p *graph) readFactor(j int) {
	// labels
	labels, inScope := make([]int, 0, 4), map[int]bool{}
	order := p.readCount(fmt.Sprintf("variables of factor %d", j), p.limits.Legs-p.legs)
	p.legs += order
	for k := 0; k < order && p.Err == nil; k++ {
		label := p.readInteger(fmt.Sprintf("a label of factor %d", j))
		if inScope[label] && p.Err == nil {
			p.FailInput(uai.ErrModel, "factor %d: variable %d is twice among its labels", j, label)
		}
		inScope[label] = true
		labels = append(labels, label)
	}

	// numbers of values
	for _, label := range labels {
		p.setSize(j, label, p.readInteger(fmt.Sprintf("the number of values of variable %d of factor %d", label, j)))
	}
	if p.Err != nil {
		return
	}

	// the table, whose last variable is the fastest
	slices.Reverse(labels) // in the file the first variable is the fastest
	shape := make([]int, len(labels))
	for k, label := range labels {
		shape[k] = p.sizes[label]
	}
	if t := p.readTable(j, shape); t != nil {
		p.factors = append(p.factors, factorgraph.Factor{Scope: labels, Table: t})
	}
}

// setSize notes the number of values of a variable, which must be the same in all factors.
func (p *graph) setSize(j, label, size int) {
	earlier, ok := p.sizes[label]
	switch {
	case p.Err != nil:
	case size < 1:
		p.FailInput(uai.ErrModel, "factor %d: variable %d has %d values, at least 1 is needed", j, label, size)
	case size > p.limits.Domain:
		p.FailInput(uai.ErrLimit, "factor %d: variable %d has %d values, at most %d are read", j, label, size, p.limits.Domain)
	case ok && earlier != size:
		p.FailInput(uai.ErrModel, "factor %d: variable %d has %d values, in an earlier factor it has %d", j, label, size, earlier)
	case !ok && len(p.sizes) == p.limits.Variables:
		p.FailInput(uai.ErrLimit, "more than %d variables", p.limits.Variables)
	default:
		p.sizes[label] = size
	}
}

// readTable reads a table of the shape: the entries that are not 0, each with its position. It returns nil after an error.
func (p *graph) readTable(j int, shape []int) *tensor.Dense {
	size := decimal.Entries(shape)
	// A short file may list few entries of huge tables: all tables together may have spare entries more than the file has bytes so far.
	if mostEntries := min(int64(p.limits.Entries), p.BytesRead+spare); int64(size) > mostEntries-int64(p.entries) {
		p.FailInput(uai.ErrLimit, "factor %d: its table needs %s entries, this file may have %d in all tables together", j,
			decimal.EntriesText(size), mostEntries)
		return nil
	}
	p.entries += size
	t := &tensor.Dense{Shape: shape, Data: make([]float64, size)}
	isListed := make([]bool, size)
	entries := p.readCount(fmt.Sprintf("entries of factor %d", j), size)
	entryTitle := fmt.Sprintf("factor %d: an entry", j)
	positionTitle := fmt.Sprintf("the position of an entry of factor %d", j)
	for i := 0; i < entries && p.Err == nil; i++ {
		index := p.readInteger(positionTitle)
		if index >= size {
			p.FailInput(uai.ErrModel, "factor %d: position %d, its table has %d entries", j, index, size)
			return nil
		}
		if isListed[index] {
			p.FailInput(uai.ErrModel, "factor %d: position %d is there twice", j, index)
			return nil
		}
		isListed[index], t.Data[index] = true, p.readEntry(entryTitle)
	}
	if p.Err != nil {
		return nil
	}
	return t
}

// readEntry reads an entry of a table, a number of at least 0.
func (p *graph) readEntry(what string) float64 {
	if !p.nextWord() {
		p.FailInput(uai.ErrSyntax, "the file ends where %s is needed", what)
		return 0
	}
	v := p.ParseNumber(p.Word, what)
	if v < 0 {
		p.FailInput(uai.ErrModel, "%s is %v, a probability model needs at least 0", what, v)
	}
	return v
}

// model returns the factor graph. Its variables are in the sequence of their labels.
func (p *graph) model() (*factorgraph.Model, error) {
	labels := make([]int, 0, len(p.sizes))
	for label := range p.sizes {
		labels = append(labels, label)
	}
	slices.Sort(labels)

	// variables, without names if their labels are 0, 1, …
	m := &factorgraph.Model{Factors: p.factors}
	position := make(map[int]int, len(labels))
	for v, label := range labels {
		position[label] = v
		m.Domains = append(m.Domains, p.sizes[label])
		m.Names = append(m.Names, strconv.Itoa(label))
	}
	if len(labels) == 0 || labels[len(labels)-1] == len(labels)-1 { // they ascend, so the last one tells
		m.Names = nil
	}

	// scopes by position
	for _, f := range m.Factors {
		for k, label := range f.Scope {
			f.Scope[k] = position[label]
		}
	}
	if values, limit := m.Values(p.BytesRead); values > limit {
		p.FailInput(uai.ErrLimit, "the variables have %d values together, at most the file's bytes and 2^20 are read: %d", values, limit)
	}
	if p.Err != nil {
		return nil, p.Err
	}
	return m, nil
}

// mostWritten bounds the table that a factor of another form is written out as.
const mostWritten = 1 << 20

// Write writes a model; labels are the names where all of these are numbers, else positions. Factors that are not tables are written as
// tables of at most 2^20 entries, and a variable in no factor gets one of ones. A negative entry is refused with fault.Unsupported.
func Write(to io.Writer, m *factorgraph.Model) error {
	if err := m.Validate(); err != nil {
		return fmt.Errorf("fg: %w", err)
	}
	w := bufio.NewWriterSize(to, 1<<16)
	labels, _ := Labels(m) // whether names are lost is said by formats.Losses
	unused := unusedVariables(m)
	fmt.Fprintf(w, "%d\n", len(m.Factors)+len(unused))
	for j, f := range m.Factors {
		t, ok := f.Table.(*tensor.Dense)
		if !ok {
			var err error
			if t, err = tensor.ToDense(f.Table, mostWritten); err != nil {
				return fault.New(fault.Unsupported, "fg: factor %d: the format holds tables only: %w", j, err)
			}
		}
		if i := slices.IndexFunc(t.Data, func(v float64) bool { return v < 0 }); i >= 0 {
			return fault.New(fault.Unsupported, "fg: %w: factor %d: entry %d is %v, at least 0 is needed", uai.ErrModel, j, i, t.Data[i])
		}
		writeFactor(w, labels, f.Scope, t)
	}
	for _, v := range unused {
		writeFactor(w, labels, []int{v}, &tensor.Dense{Shape: []int{m.Domains[v]}, Data: slices.Repeat([]float64{1}, m.Domains[v])})
	}
	return w.Flush()
}

// unusedVariables returns the variables that are in no factor.
func unusedVariables(m *factorgraph.Model) (list []int) {
	hasFactor := make([]bool, len(m.Domains))
	for _, f := range m.Factors {
		for _, v := range f.Scope {
			hasFactor[v] = true
		}
	}
	for v := range hasFactor {
		if !hasFactor[v] {
			list = append(list, v)
		}
	}
	return list
}

// Labels returns the label of each variable in a file: its name if all names are ascending numbers, else its position.
// isComplete is false if the file loses names, of variables or of values.
func Labels(m *factorgraph.Model) (labels []int, isComplete bool) {
	// are all names numbers, in ascending sequence?
	areNumbers := true
	for v := range m.Domains {
		areNumbers = areNumbers && m.Names != nil && isLabel(m.Names[v]) && (v == 0 || parseLabel(m.Names[v-1]) < parseLabel(m.Names[v]))
	}
	labels = make([]int, len(m.Domains))
	for v := range labels {
		labels[v] = v
		if areNumbers {
			labels[v] = parseLabel(m.Names[v])
		}
	}

	hasStateNames := slices.ContainsFunc(m.States, func(s []string) bool { return len(s) > 0 })
	hasNames := strings.Join(m.Names, "") != ""
	return labels, !hasStateNames && (areNumbers || !hasNames)
}

// isLabel reports whether a name is a number from 0 on, without leading zeros, as labels are written.
func isLabel(name string) bool {
	return parseLabel(name) >= 0 && name == strconv.Itoa(parseLabel(name))
}

// parseLabel returns a name as a number from 0 on; −1 if it is none.
func parseLabel(name string) int {
	if n, err := strconv.Atoi(name); err == nil && n >= 0 {
		return n
	}
	return -1
}

// writeFactor writes a factor: the labels and numbers of values of its variables, the last one of the scope first, and
// the entries that are not 0 with their positions.
func writeFactor(w *bufio.Writer, labels, scope []int, t *tensor.Dense) {
	// labels and numbers of values
	fmt.Fprintf(w, "\n%d\n", len(scope))
	for k := len(scope) - 1; k >= 0; k-- {
		fmt.Fprintf(w, "%d ", labels[scope[k]])
	}
	w.WriteByte('\n')
	for k := len(scope) - 1; k >= 0; k-- {
		fmt.Fprintf(w, "%d ", t.Shape[k])
	}

	// entries that are not 0
	zeros := 0
	for _, v := range t.Data {
		if v == 0 {
			zeros++
		}
	}
	fmt.Fprintf(w, "\n%d\n", len(t.Data)-zeros)
	for i, v := range t.Data {
		if v != 0 {
			line := append(strconv.AppendInt(w.AvailableBuffer(), int64(i), 10), ' ') // in the writer's own memory
			_, _ = w.Write(append(decimal.Append(line, v), '\n'))                     // the error comes again with Flush
		}
	}
}
