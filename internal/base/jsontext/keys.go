package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// Once returns an error for a key that comes twice in an object of a JSON text, with its place.
func Once(b []byte) error { return checkKeys(b, nil) }

// checkKeys returns an error for a key that comes twice in an object, or differs from a field of the type only in case: encoding/json takes
// the last of both. It says nothing of a text that is no JSON, nor of values with a decoder of their own.
func checkKeys(b []byte, t reflect.Type) error {
	w := keyWalk{text: b, d: json.NewDecoder(bytes.NewReader(b))}
	w.d.UseNumber() // a number of any size is for the decoder to judge
	w.value(t, "", 0)
	return w.err
}

// keyWalk goes through a text beside the type that it is read into.
type keyWalk struct {
	text []byte
	d    *json.Decoder
	err  error
}

// mostNested is the depth from which on encoding/json refuses a text.
const mostNested = 10_000

// value walks the next value, and reports whether to go on.
func (w *keyWalk) value(t reflect.Type, place string, depth int) bool {
	for t != nil && t.Kind() == reflect.Pointer && !decodesItself(t) {
		t = t.Elem()
	}
	if t != nil && decodesItself(t) {
		var raw json.RawMessage
		return w.d.Decode(&raw) == nil
	}
	token, err := w.d.Token()
	if err != nil || depth > mostNested {
		return false
	}
	switch token {
	case json.Delim('{'):
		return w.object(t, place, depth)
	case json.Delim('['):
		var element reflect.Type
		if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
			element = t.Elem()
		}
		for i := 0; w.d.More(); i++ {
			if !w.value(element, fmt.Sprintf("%s[%d]", place, i), depth+1) {
				return false
			}
		}
		_, err = w.d.Token()
	}
	return err == nil
}

// object walks the fields of an object.
func (w *keyWalk) object(t reflect.Type, place string, depth int) bool {
	fields := fieldsOf(t)
	seen := map[string]bool{}
	for w.d.More() {
		token, err := w.d.Token()
		key, isKey := token.(string)
		if err != nil || !isKey {
			return false
		}
		if seen[key] {
			return w.refuse(place, "the key %.80q comes twice", key)
		}
		seen[key] = true
		element, known := fields[key]
		if !known && fields != nil {
			for name := range fields {
				if strings.EqualFold(name, key) {
					return w.refuse(place, "the key %.80q is written %q", key, name)
				}
			}
		}
		if t != nil && t.Kind() == reflect.Map {
			element = t.Elem()
		}
		if !w.value(element, strings.TrimPrefix(place+"."+key, "."), depth+1) {
			return false
		}
	}
	_, err := w.d.Token()
	return err == nil
}

// refuse notes an error at the present place, and ends the walk.
func (w *keyWalk) refuse(place, format string, args ...any) bool {
	if place != "" {
		place = fmt.Sprintf("%.200s: ", place)
	}
	w.err = fmt.Errorf("%s%s%s", line(w.text, w.d.InputOffset()), place, fmt.Sprintf(format, args...))
	return false
}

// decodesItself reports whether a type has a decoder of its own.
func decodesItself(t reflect.Type) bool {
	return t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler)
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// known are the fields of types that were read before.
var known sync.Map // reflect.Type → map[string]reflect.Type

// fieldsOf returns the types of a struct's fields by their keys, those of embedded structs too; nil for another type.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	if have, ok := known.Load(t); ok {
		return have.(map[string]reflect.Type)
	}
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-" || !f.IsExported(), f.Anonymous && tag == "":
		case tag != "":
			fields[tag] = f.Type
		default:
			fields[f.Name] = f.Type
		}
	}
	known.Store(t, fields)
	return fields
}
