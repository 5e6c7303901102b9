// Package jsontext reads JSON written by people: one value, with known fields only, each once and as it is written. Errors give the line
// and the fault in words of JSON.
package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// Strict reads one JSON value into v. It returns an error for a field that v does not have or that is written in another case, for a key
// that comes twice in one object, and for text after the value. The keys of a value with a decoder of its own are not checked.
func Strict(b []byte, v any) error {
	if err := checkKeys(b, reflect.TypeOf(v)); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return Explain(b, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%ssomething follows the end of the JSON value", linePrefix(b, d.InputOffset()))
	}
	return nil
}

// Explain puts an error of encoding/json about the text b into plain words, and returns other errors unchanged.
func Explain(b []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("%s%s", linePrefix(b, syntax.Offset), strings.Replace(syntax.Error(), "JSON input", "the text", 1))
	case errors.As(err, &kind):
		field := ""
		if path := keysOf(kind.Field); path != "" {
			field = fmt.Sprintf("field %s: ", path)
		}
		return fmt.Errorf("%s%s%s, where %s is needed", linePrefix(b, kind.Offset), field, describeValue(kind.Value), describeType(kind.Type))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%sit ends in the middle", linePrefix(b, int64(len(b))))
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown field %s", field)
	}
	if strings.HasPrefix(err.Error(), "json: ") { // such as an invalid number literal
		return errors.New("a number is needed")
	}
	return err
}

// keysOf returns the path of a field without the names of embedded types, which begin with a capital.
func keysOf(path string) string {
	keys := slices.DeleteFunc(strings.Split(path, "."), func(name string) bool { return name != "" && unicode.IsUpper(rune(name[0])) })
	return strings.Join(keys, ".")
}

// linePrefix returns the beginning of an error about the byte at an offset: the number of its line, counted from 1, or nothing for a text
// of one line.
func linePrefix(text []byte, offset int64) string {
	if !bytes.Contains(text, []byte("\n")) {
		return ""
	}
	before := text[:min(max(offset, 0), int64(len(text)))]
	return fmt.Sprintf("line %d: ", 1+bytes.Count(before, []byte("\n")))
}

// describeValue returns words for the value of a json.UnmarshalTypeError, such as "array" or "number 1e400".
func describeValue(value string) string {
	kind, number, _ := strings.Cut(value, " ")
	switch {
	case kind == "array":
		return "a list"
	case kind == "object":
		return "an object"
	case kind == "bool":
		return "true or false"
	case number != "":
		return number
	}
	return "a " + kind
}

// describeType returns words for the values that a type takes.
func describeType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.String:
		return "a string"
	case reflect.Float64:
		return "a number"
	case reflect.Pointer:
		return describeType(t.Elem())
	}
	return "an integer in range"
}
