// Reading a native model file.

package modeljson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/basetensor/basetensor/internal/base/jsontext"
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
	data, err := io.ReadAll(io.LimitReader(r, l.Bytes+1))
	if err != nil {
		return nil, fmt.Errorf("modeljson: %w", err)
	}
	m, err := decode(data, l)
	if err != nil {
		return nil, &fault.Error{Code: codeOf(err), Err: fmt.Errorf("modeljson: %w", err)}
	}
	return m, nil
}

// codeOf is bad_input but for another version of the format.
func codeOf(err error) fault.Code {
	if errors.Is(err, ErrVersion) {
		return fault.Unsupported
	}
	return fault.BadInput
}

func decode(data []byte, l Limits) (*factorgraph.Model, error) {
	if int64(len(data)) > l.Bytes {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrLimit, l.Bytes)
	}
	if i := invalidUTF8(data); i >= 0 {
		return nil, syntaxError("%s: the text is not in UTF-8", position(data, i))
	}
	passed := quick(data)
	if !passed {
		if err := scan(data); err != nil {
			return nil, err
		}
	}
	var f file
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&f)
	if err != nil && passed { // scan says where
		if err := scan(data); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, syntaxError("%w", jsontext.Explain(data, err))
	}
	m, err := f.model(l)
	if err != nil {
		return nil, err
	}
	if all, most := m.Values(int64(len(data))); all > most {
		return nil, fmt.Errorf(
			"%w: the variables have %d values together, at most the file's bytes and 2^20 are read: %d", ErrLimit, all, most,
		)
	}
	return m, nil
}

// invalidUTF8 is the place of the first byte that is no UTF-8, −1 if there is none.
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

// position is a place in words.
func position(data []byte, i int) string {
	before := data[:i]
	line, column := 1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(before[1+bytes.LastIndexByte(before, '\n'):])
	return fmt.Sprintf("line %d, column %d", line, column)
}

func (f *file) model(l Limits) (*factorgraph.Model, error) {
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
	if err := f.variables(m, l); err != nil {
		return nil, err
	}
	left := room{l.Levels, tensor.MostStatistic}
	for j := range f.Factors {
		t, err := f.Factors[j].table(m.Domains, &left)
		if err != nil {
			return nil, fmt.Errorf("factor %d: %w", j, err)
		}
		m.Factors[j] = factorgraph.Factor{Scope: f.Factors[j].Scope, Table: t}
	}
	return m, m.Validate()
}

// variables reads the variables' domains and names into m.
func (f *file) variables(m *factorgraph.Model, l Limits) error {
	if slices.ContainsFunc(f.Variables, func(v variable) bool { return v.Name != "" }) {
		m.Names = make([]string, len(f.Variables))
	}
	if slices.ContainsFunc(f.Variables, func(v variable) bool { return v.States != nil }) {
		m.States = make([][]string, len(f.Variables))
	}
	for i, v := range f.Variables {
		switch {
		case v.Domain == nil && v.States == nil:
			return modelError("variable %d: neither a domain nor states", i)
		case v.Domain == nil:
			m.Domains[i] = len(v.States)
		default:
			m.Domains[i] = *v.Domain
		}
		switch d := m.Domains[i]; {
		case d < 1:
			return modelError("variable %d: domain of size %d, at least 1 is needed", i, d)
		case d > l.Domain:
			return fmt.Errorf("%w: variable %d: domain of size %d, at most %d is read", ErrLimit, i, d, l.Domain)
		case v.States != nil && len(v.States) != d:
			return modelError("variable %d: %d states, the domain is of size %d", i, len(v.States), d)
		}
		if m.Names != nil {
			m.Names[i] = v.Name
		}
		if m.States != nil {
			m.States[i] = v.States
		}
	}
	return nil
}
