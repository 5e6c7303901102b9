package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// CheckUniqueKeys returns an error if a key comes twice in an object of a JSON text. The error has the place of the key.
func CheckUniqueKeys(b []byte) error { return checkKeys(b, nil) }

// checkKeys returns an error if a key of a JSON text comes twice in an object, or differs from a field of type t only in case:
// encoding/json takes the last of both. t is the type that the text is read into, nil for any. A text that is no JSON, and values with a
// decoder of their own, are not errors.
func checkKeys(b []byte, t reflect.Type) error {
	c := keyChecker{text: b, decoder: json.NewDecoder(bytes.NewReader(b))}
	c.decoder.UseNumber() // a number of any size is for the decoder to judge
	c.checkValue(t, "", 0)
	return c.err
}

// keyChecker goes through a JSON text together with the type that it is read into.
type keyChecker struct {
	text    []byte
	decoder *json.Decoder // of text
	err     error         // of a wrong key
}

// maxDepth is the depth of nested values from which encoding/json refuses a text.
const maxDepth = 10_000

// checkValue checks the keys in the next value, which is read into type t. path is the path of its field, depth its depth. It returns false
// if the check is over: after a wrong key, or in a text that is no JSON.
func (c *keyChecker) checkValue(t reflect.Type, path string, depth int) (goesOn bool) {
	for t != nil && t.Kind() == reflect.Pointer && !decodesItself(t) {
		t = t.Elem()
	}
	if t != nil && decodesItself(t) {
		var raw json.RawMessage
		return c.decoder.Decode(&raw) == nil
	}
	token, err := c.decoder.Token()
	if err != nil || depth > maxDepth {
		return false
	}
	switch token {
	case json.Delim('{'):
		return c.checkObject(t, path, depth)
	case json.Delim('['):
		var element reflect.Type
		if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
			element = t.Elem()
		}
		for i := 0; c.decoder.More(); i++ {
			if !c.checkValue(element, fmt.Sprintf("%s[%d]", path, i), depth+1) {
				return false
			}
		}
		_, err = c.decoder.Token() // ]
	}
	return err == nil
}

// checkObject checks the keys of an object behind its {, and those of its values. The object is read into type t, nil if that is unknown;
// path is the path of its field, and depth its depth. It returns false if the check is over: after a wrong key, or in a text that is no
// JSON.
func (c *keyChecker) checkObject(t reflect.Type, path string, depth int) (goesOn bool) {
	fields := fieldsOf(t)
	isSeen := map[string]bool{}
	for c.decoder.More() {
		token, err := c.decoder.Token()
		key, isKey := token.(string)
		if err != nil || !isKey {
			return false
		}
		if isSeen[key] {
			return c.refuse(path, "the key %.80q comes twice", key)
		}
		isSeen[key] = true
		element, isField := fields[key]
		if !isField && fields != nil {
			for name := range fields {
				if strings.EqualFold(name, key) { // encoding/json would take it for that field
					return c.refuse(path, "the key %.80q is written %q", key, name)
				}
			}
		}
		if t != nil && t.Kind() == reflect.Map {
			element = t.Elem()
		}
		if !c.checkValue(element, strings.TrimPrefix(path+"."+key, "."), depth+1) {
			return false
		}
	}
	_, err := c.decoder.Token() // }
	return err == nil
}

// refuse sets the error of a wrong key in the object at path, and returns false, which ends the check.
func (c *keyChecker) refuse(path, format string, args ...any) (goesOn bool) {
	if path != "" {
		path = fmt.Sprintf("%.200s: ", path)
	}
	c.err = fmt.Errorf("%s%s%s", linePrefix(c.text, c.decoder.InputOffset()), path, fmt.Sprintf(format, args...))
	return false
}

// decodesItself reports whether a type has a decoder of its own.
func decodesItself(t reflect.Type) bool {
	return t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler)
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// fieldCache has the results of fieldsOf for types that were read before.
var fieldCache sync.Map // reflect.Type → map[string]reflect.Type

// fieldsOf returns the types of a struct's fields by their JSON keys, with those of embedded structs. It returns nil if t is no struct.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	if cached, ok := fieldCache.Load(t); ok {
		return cached.(map[string]reflect.Type)
	}
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-" || !f.IsExported(), f.Anonymous && tag == "": // no key; the fields of an embedded struct are visible themselves
		case tag != "":
			fields[tag] = f.Type
		default:
			fields[f.Name] = f.Type
		}
	}
	fieldCache.Store(t, fields)
	return fields
}
