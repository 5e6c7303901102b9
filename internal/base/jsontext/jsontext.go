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

// Strict reads one JSON value into v. Fields unknown to v, or of another case, keys that come twice in one object, and text after the
// value, are errors. A value that has a decoder of its own answers for its keys.
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
		return fmt.Errorf("%ssomething follows the end of the JSON value", line(b, d.InputOffset()))
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
		return fmt.Errorf("%s%s", line(b, syntax.Offset), strings.Replace(syntax.Error(), "JSON input", "the text", 1))
	case errors.As(err, &kind):
		field := ""
		if path := keysOf(kind.Field); path != "" {
			field = fmt.Sprintf("field %s: ", path)
		}
		return fmt.Errorf("%s%s%s, where %s is needed", line(b, kind.Offset), field, given(kind.Value), wanted(kind.Type))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%sit ends in the middle", line(b, int64(len(b))))
	}
	if rest, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown field %s", rest)
	}
	if strings.HasPrefix(err.Error(), "json: ") {
		return errors.New("a number is needed")
	}
	return err
}

// keysOf returns the keys in the path of a field, without the types that are embedded on the way: their names begin with a capital.
func keysOf(path string) string {
	keys := slices.DeleteFunc(strings.Split(path, "."), func(name string) bool { return name != "" && unicode.IsUpper(rune(name[0])) })
	return strings.Join(keys, ".")
}

// line names the line of a byte in a text, counted from 1; it is empty for a text of one line.
func line(b []byte, at int64) string {
	if !bytes.Contains(b, []byte("\n")) {
		return ""
	}
	return fmt.Sprintf("line %d: ", 1+bytes.Count(b[:min(max(at, 0), int64(len(b)))], []byte("\n")))
}

// given is a value in a sentence.
func given(value string) string {
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

// wanted is a type in a sentence.
func wanted(t reflect.Type) string {
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
		return wanted(t.Elem())
	}
	return "an integer in range"
}
