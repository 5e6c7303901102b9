// Writing a native model file.

package modeljson

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Encode writes m so that Decode returns it again, the same bytes for the same model: a factor a line, every
// number with the digits that identify it. Values per count are written plainly when they carry no exponents,
// else as mantissas and exponents. A model that is not valid returns the error of Model.Validate.
func Encode(w io.Writer, m *factorgraph.Model) error {
	if err := m.Validate(); err != nil {
		return fmt.Errorf("modeljson: %w", err)
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "{\n  \"basetensor_model\": %d,\n", Version)
	if m.Bayes {
		fmt.Fprint(b, "  \"bayes\": true,\n")
	}

	// variables
	fmt.Fprint(b, "  \"variables\": [")
	for i, d := range m.Domains {
		v := variable{Domain: &d}
		if m.Names != nil {
			v.Name = m.Names[i]
		}
		if m.States != nil && len(m.States[i]) > 0 {
			v.Domain, v.States = nil, m.States[i] // as many as the domain has
		}
		if m.Aliases != nil {
			v.Display = m.Aliases[i]
		}
		if m.Layout != nil {
			v.Place = m.Layout[2*i : 2*i+2]
		}
		if err := writeLine(b, i, v); err != nil {
			return err
		}
	}

	// factors
	fmt.Fprint(b, "\n  ],\n  \"factors\": [")
	for j, f := range m.Factors {
		if err := writeLine(b, j, encodeFactor(f)); err != nil {
			return err
		}
	}
	fmt.Fprint(b, "\n  ]\n}\n")
	return b.Flush()
}

// writeLine writes item i of a list on a line of its own.
func writeLine(b *bufio.Writer, i int, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("modeljson: %w", err)
	}
	if i > 0 {
		_ = b.WriteByte(',') // b keeps its first error, and Flush returns it
	}
	fmt.Fprint(b, "\n    ")
	_, err = b.Write(data)
	return err
}

// encodeFactor returns a factor as it is written, in the form of its table.
func encodeFactor(f factorgraph.Factor) factor {
	written := factor{Scope: &scope{positions: append([]int{}, f.Scope...)}}
	switch t := f.Table.(type) {
	case *tensor.Dense:
		written.Dense = &dense{Values: &table{values: append([]float64{}, t.Data...)}}
	case *tensor.CP:
		written.CP = &cp{Weights: append([]float64{}, t.Weights...), Vectors: make([][]decimal.Floats, len(t.Vectors))}
		for position, v := range t.Vectors {
			if v == nil {
				continue
			}
			written.CP.Vectors[position] = []decimal.Floats{}
			for d := t.Shape[position]; len(v) > 0; v = v[d:] { // d numbers for each term
				written.CP.Vectors[position] = append(written.CP.Vectors[position], v[:d])
			}
		}
	case *tensor.Symmetric:
		written.Symmetric = &symmetric{Levels: encodeLevels(t.Levels, t.Shape), counts: encodeCounts(t.Values)}
	case *tensor.SymmetryCP:
		written.SymmetryCP = &symmetryCP{Levels: encodeLevels(t.Levels, t.Shape), Terms: make([]term, len(t.Terms))}
		for i, s := range t.Terms {
			written.SymmetryCP.Terms[i] = term{Alpha: decimal.Number(s.Alpha), counts: encodeCounts(s.S)}
			for _, r := range s.R {
				written.SymmetryCP.Terms[i].Vectors = append(written.SymmetryCP.Terms[i].Vectors, r)
			}
		}
	}
	return written
}

// encodeCounts returns a vector as it is written: plain values or, if it has exponents, mantissas and exponents.
func encodeCounts(v scaled.Vector) counts {
	if v.Exp == nil {
		return counts{Values: v.Mant}
	}
	list := &scaledList{Mantissas: make([]float64, v.Len()), Exponents: make([]int64, v.Len())}
	for i := range list.Mantissas {
		n := v.At(i)
		list.Mantissas[i], list.Exponents[i] = n.Mant, n.Exp
	}
	return counts{Scaled: list}
}
