package chart

// The numbers behind a figure: rows of a struct type whose fields with a csv tag, NAME or NAME,FORMAT, are the columns.

import (
	"bytes"
	"encoding"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/pkg/fault"
)

// column is a field of a row.
type column struct {
	name   string
	format string // of a float64; empty: the digits that identify it
	index  []int
}

func columnsOf[T any]() (list []column) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name, format, _ := strings.Cut(f.Tag.Get("csv"), ","); name != "" {
			list = append(list, column{name, format, f.Index})
		}
	}
	return list
}

// Columns returns the names of the columns of T, in the sequence of its fields.
func Columns[T any]() (names []string) {
	for _, c := range columnsOf[T]() {
		names = append(names, c.name)
	}
	return names
}

// WriteCSV writes a head and a line per row: text, whole numbers, truth values, encoding.TextMarshaler, and float64, "inf" and "-inf", with
// nothing for NaN and for a nil pointer. Where it is sparse, columns without anything in any row are left out.
func WriteCSV[T any](w io.Writer, rows []T, sparse bool) error {
	columns, lines := columnsOf[T](), make([][]string, 1+len(rows))
	for _, c := range columns {
		cells, empty := []string{c.name}, sparse
		for _, row := range rows {
			text := cell(reflect.ValueOf(row).FieldByIndex(c.index), c.format)
			cells, empty = append(cells, text), empty && text == ""
		}
		for k := range lines {
			if !empty {
				lines[k] = append(lines[k], cells[k])
			}
		}
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// WriteFile writes a file with the text that write makes, once that is whole.
func WriteFile(path string, write func(io.Writer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return fault.Wrap(fault.Internal, err)
	}
	return fault.Wrap(fault.Infrastructure, os.WriteFile(path, text.Bytes(), 0o644))
}

func cell(v reflect.Value, format string) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case encoding.TextMarshaler:
		text, _ := x.MarshalText()
		return string(text)
	case float64:
		switch {
		case math.IsNaN(x):
			return ""
		case math.IsInf(x, 0):
			return map[bool]string{true: "inf", false: "-inf"}[x > 0]
		case format != "":
			return fmt.Sprintf(format, x)
		}
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}

// ReadCSV reads rows of WriteCSV by the names in the head. Other columns are passed over, the needed ones must be there. Fields without a
// cell, or with an empty one, are NaN if they are float64, else zero. Errors are bad input and name the line.
func ReadCSV[T any](r io.Reader, needed ...string) (rows []T, err error) {
	in := csv.NewReader(r)
	head, err := in.Read()
	if err != nil {
		return nil, fault.New(fault.BadInput, "the head: %w", err)
	}
	for _, name := range needed {
		if !slices.Contains(head, name) {
			return nil, fault.New(fault.BadInput, "no column %q", name)
		}
	}
	columns := columnsOf[T]()
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fault.Wrap(fault.BadInput, err) // names the line itself
		}
		line, _ := in.FieldPos(0)
		var row T
		for _, c := range columns {
			text := ""
			if k := slices.Index(head, c.name); k >= 0 {
				text = cells[k]
			}
			if err := parse(reflect.ValueOf(&row).Elem().FieldByIndex(c.index), text); err != nil {
				return nil, fault.New(fault.BadInput, "line %d: %s: %w", line, c.name, err)
			}
		}
		rows = append(rows, row)
	}
}

func parse(v reflect.Value, text string) error {
	if text == "" {
		if v.Kind() == reflect.Float64 {
			v.SetFloat(math.NaN())
		}
		return nil
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(text == "true")
	case reflect.Float64:
		var x float64
		if x, err = strconv.ParseFloat(text, 64); math.IsNaN(x) {
			err = strconv.ErrSyntax
		}
		v.SetFloat(x)
	case reflect.Uint64:
		var x uint64
		x, err = strconv.ParseUint(text, 10, 64)
		v.SetUint(x)
	default:
		var x int64
		x, err = strconv.ParseInt(text, 10, 64)
		v.SetInt(x)
	}
	if err != nil {
		return fmt.Errorf("%q is no number", text)
	}
	return nil
}
