// Reading a native model file.

package modeljson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/basetensor/basetensor/internal/base/jsontext"
	"github.com/basetensor/basetensor/internal/base/nearest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Decode reads a model and validates it. Unknown and duplicate fields, nulls in number lists, fields of the
// wrong type, missing fields and anything after the document are ErrSyntax; models that Model.Validate refuses, lengths
// that do not fit and level numbers out of range are ErrModel, with the factor; sizes above the limits are ErrLimit. All
// carry fault.BadInput. Another version of the format is ErrVersion and
// fault.Unsupported. Errors of r pass unchanged.
func Decode(r io.Reader, limits Limits) (*factorgraph.Model, error) {
	l := limits.withDefaults()
	data, err := io.ReadAll(io.LimitReader(r, l.Bytes+1)) // one byte more shows that there are too many
	if err != nil {
		return nil, fmt.Errorf("modeljson: %w", err)
	}
	m, err := decode(data, l)
	if err != nil {
		return nil, &fault.Error{Code: codeOf(err), Err: fmt.Errorf("modeljson: %w", err)}
	}
	return m, nil
}

// codeOf returns the code of an error: unsupported for another version of the format, else bad_input.
func codeOf(err error) fault.Code {
	if errors.Is(err, ErrVersion) {
		return fault.Unsupported
	}
	return fault.BadInput
}

// decode reads a model from the text of a file.
func decode(data []byte, l Limits) (*factorgraph.Model, error) {
	if int64(len(data)) > l.Bytes {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrLimit, l.Bytes)
	}
	if i := invalidUTF8(data); i >= 0 {
		return nil, syntaxError("%s: the text is not in UTF-8", positionText(data, i))
	}

	// check what encoding/json lets through: quickly, or, if that does not accept the text, thoroughly
	places, isAccepted := scanQuickly(data)
	if !isAccepted {
		var err error
		if places, err = scan(data); err != nil {
			return nil, err
		}
	}

	// decode
	f := file{places: places}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&f)
	if err != nil && isAccepted { // the error of scan has its place
		if _, err := scan(data); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, explain(data, err)
	}

	// the model
	m, err := f.model(data, l)
	if err != nil {
		return nil, err
	}
	if values, limit := m.Values(int64(len(data))); values > limit {
		return nil, fmt.Errorf(
			"%w: the variables have %d values together, at most the file's bytes and 2^20 are read: %d", ErrLimit, values, limit,
		)
	}
	return m, nil
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8; −1 if there is none.
func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	i := 0
	for r, size := utf8.DecodeRune(data); r != utf8.RuneError || size > 1; r, size = utf8.DecodeRune(data[i:]) {
		i += size
	}
	return i
}

// positionText returns the line and the column of an offset in words.
func positionText(data []byte, offset int) string {
	lineStart := 1 + bytes.LastIndexByte(data[:offset], '\n')
	line, column := 1+bytes.Count(data[:offset], []byte("\n")), 1+utf8.RuneCount(data[lineStart:offset])
	return fmt.Sprintf("line %d, column %d", line, column)
}

// explain returns an error of encoding/json in words, with its place if that is known.
func explain(data []byte, err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Offset > 0 {
		return syntaxError("%s: %w", positionText(data, int(kind.Offset)-1), jsontext.Explain(nil, err))
	}
	return syntaxError("%w", jsontext.Explain(data, err))
}

// model returns the model of a decoded file. data is its text, for the places of errors.
func (f *file) model(data []byte, l Limits) (*factorgraph.Model, error) {
	switch {
	case f.Version == nil:
		return nil, syntaxError("the field basetensor_model is missing")
	case *f.Version != Version:
		return nil, fmt.Errorf("%w: %d, this program reads %d", ErrVersion, *f.Version, Version)
	case f.Variables == nil:
		return nil, syntaxError("the field variables is missing")
	case f.Factors == nil:
		return nil, syntaxError("the field factors is missing")
	}
	m := &factorgraph.Model{
		Bayes:   f.Bayes,
		Domains: make([]int, len(f.Variables)),
		Factors: make([]factorgraph.Factor, len(f.Factors)),
	}
	if err := f.readVariables(m, data, l); err != nil {
		return nil, err
	}
	if err := f.readFactors(m, data, l); err != nil {
		return nil, err
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if !m.Bayes {
		m.Lines = nil // no warning names them
	}
	return m, nil
}

// readFactors reads the factors into m.
func (f *file) readFactors(m *factorgraph.Model, data []byte, l Limits) error {
	labels, err := m.Labels()
	if err != nil {
		return f.namesError(data, err)
	}
	m.Lines = linesOf(data, f.places.factors)
	remaining := budget{l.Levels, tensor.MostStatistic} // of values with levels, and of numbers of low-rank factors
	for j := range f.Factors {
		item := &f.Factors[j]
		if item.Scope == nil {
			err = syntaxError("the field scope is missing")
		} else {
			err = item.Scope.resolve(labels)
		}
		if err == nil {
			m.Factors[j].Scope = item.Scope.positions
			m.Factors[j].Table, err = item.decodeTable(m, &remaining)
		}
		if err != nil {
			return fmt.Errorf("factor %d%s (%s): %w", j, overScope(m, m.Factors[j].Scope), positionText(data, f.places.factors[j]), err)
		}
	}
	return nil
}

// overScope names the variables of a scope for an error, as " over a, b"; "" if the scope is not known or variables
// have no names.
func overScope(m *factorgraph.Model, scope []int) string {
	if len(scope) == 0 || m.Names == nil {
		return ""
	}
	return " over " + strings.Join(describeScope(m, scope), ", ")
}

// namesError adds to an error of a model's labels the place of the variable whose name, or one of whose states, is
// there twice.
func (f *file) namesError(data []byte, err error) error {
	firstOf := map[string]int{}
	for i, v := range f.Variables {
		first, isTwice := firstOf[v.Name]
		if isTwice && v.Name != "" {
			return fmt.Errorf("variable %d (%s): %w, first at %s", i, positionText(data, f.places.variables[i]), err,
				positionText(data, f.places.variables[first]))
		}
		firstOf[v.Name] = i
		_, statesErr := factorgraph.NewLabels([]int{len(v.States)}, nil, [][]string{v.States}) // as if it were the only variable
		if statesErr != nil {
			return fmt.Errorf("variable %s (%s): %w", nameOrNumber(i, v.Name), positionText(data, f.places.variables[i]), err)
		}
	}
	return err
}

// linesOf returns the line of each offset in data. Offsets increase.
func linesOf(data []byte, offsets []int) []int {
	list := make([]int, len(offsets))
	line, counted := 1, 0 // the line at the offset counted
	for k, offset := range offsets {
		line += bytes.Count(data[counted:offset], []byte("\n"))
		list[k], counted = line, offset
	}
	return list
}

// readVariables reads the variables into m: domains, names, states, display names and places.
func (f *file) readVariables(m *factorgraph.Model, data []byte, l Limits) error {
	// the lists that the model needs: of names, states and display names if a variable has one, of places if all have one
	if slices.ContainsFunc(f.Variables, func(v variable) bool { return v.Name != "" }) {
		m.Names = make([]string, len(f.Variables))
	}
	if slices.ContainsFunc(f.Variables, func(v variable) bool { return v.States != nil }) {
		m.States = make([][]string, len(f.Variables))
	}
	if slices.ContainsFunc(f.Variables, func(v variable) bool { return v.Display != "" }) {
		m.Aliases = make([]string, len(f.Variables))
	}
	if len(f.Variables) > 0 && !slices.ContainsFunc(f.Variables, func(v variable) bool { return v.Place == nil }) {
		m.Layout = make([]float64, 0, 2*len(f.Variables))
	}

	// fill them
	for i, v := range f.Variables {
		if m.Names != nil {
			m.Names[i] = v.Name
		}
		if m.Aliases != nil {
			m.Aliases[i] = v.Display
		}
		if m.Layout != nil {
			m.Layout = append(m.Layout, v.Place...)
		}
		if err := v.readValues(m, i, l); err != nil {
			return fmt.Errorf("variable %s (%s): %w", nameOrNumber(i, v.Name), positionText(data, f.places.variables[i]), err)
		}
	}
	return nil
}

// nameOrNumber returns the name of variable i in quotes, for an error, or i if it has no name.
func nameOrNumber(i int, name string) string {
	if name == "" {
		return strconv.Itoa(i)
	}
	return strconv.Quote(nearest.Shorten(name))
}

// readValues reads the domain and the states of variable i into m.
func (v *variable) readValues(m *factorgraph.Model, i int, l Limits) error {
	switch {
	case v.Domain == nil && v.States == nil:
		return modelError("neither a domain nor states")
	case v.Domain == nil:
		m.Domains[i] = len(v.States)
	default:
		m.Domains[i] = *v.Domain
	}
	switch d := m.Domains[i]; {
	case d < 1:
		return modelError("domain of size %d, at least 1 is needed", d)
	case d > l.Domain:
		return fmt.Errorf("%w: domain of size %d, at most %d is read", ErrLimit, d, l.Domain)
	case v.Place != nil && len(v.Place) != 2:
		return modelError("a place of %d numbers, x and y are needed", len(v.Place))
	case v.States != nil && len(v.States) != d:
		return modelError("%d states, the domain is of size %d", len(v.States), d)
	}
	if m.States != nil {
		m.States[i] = v.States
	}
	return nil
}
