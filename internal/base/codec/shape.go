package codec

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// form is the encoded form of a Go type.
type form byte

const (
	formString form = iota
	formBool
	formInt
	formUint
	formFloat
	formBytes  // bin
	formFloats // bin: little-endian float64
	formInts   // array of integers
	formSlice  // array
	formMap    // map with free string keys
	formStruct // map with known keys
	formPointer
	formStreamed // array: see Streamed
)

// Streamed is implemented by pointers to lists that are encoded and decoded element by element, so
// that the encoded form never exists for all elements at once. It is an array.
type Streamed interface {
	Encode(w *Writer) error
	Decode(r *Reader, n int) error // n elements
}

// Uniform is Streamed where all elements have one form.
type Uniform interface {
	Streamed
	Element() any // points to an element as it is encoded
}

var streamedType = reflect.TypeFor[Streamed]()

// shape is a Go type prepared for encoding and decoding.
type shape struct {
	form   form
	typ    reflect.Type
	elem   *shape         // of slices, maps, pointers
	fields []field        // of structs
	byName map[string]int // positions in fields
}

// field is one key of a struct. A field with omitempty may be absent; all others are required.
type field struct {
	name       string
	key        []byte // the encoded name
	index      []int  // for reflect.Value.FieldByIndex
	shape      *shape // of its type
	isOptional bool   // it may be absent
}

// valueIn returns the value of the field in a struct.
func (f *field) valueIn(v reflect.Value) reflect.Value {
	if len(f.index) == 1 {
		return v.Field(f.index[0])
	}
	return v.FieldByIndex(f.index)
}

var shapes sync.Map // reflect.Type → *shape

// shapeOf returns the shape of t, which is prepared once. It panics on a type that no message can
// have: that is an error of this program, not of data.
func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s, _ := shapes.LoadOrStore(t, newShape(t, "msgpack")) // that of another goroutine if it came first
	return s.(*shape)
}

// newShape returns the shape of a type. tag is the struct tag that has the keys of fields, "msgpack" or "json". A struct without msgpack
// tags is keyed by its json tags, with all types below it. It panics on a type that no message can have.
func newShape(t reflect.Type, tag string) *shape {
	s := &shape{typ: t}
	if reflect.PointerTo(t).Implements(streamedType) {
		s.form = formStreamed
		if list, ok := reflect.New(t).Interface().(Uniform); ok {
			s.elem = newShape(reflect.TypeOf(list.Element()).Elem(), tag) // Element returns a pointer
		}
		return s
	}
	switch t.Kind() {
	case reflect.String:
		s.form = formString
	case reflect.Bool:
		s.form = formBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.form = formInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.form = formUint
	case reflect.Float64:
		s.form = formFloat
	case reflect.Pointer:
		s.form, s.elem = formPointer, newShape(t.Elem(), tag)
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.Uint8:
			s.form = formBytes
		case reflect.Float64:
			s.form = formFloats
			// Values keyed as in JSON are also read by people and other languages, so these are
			// plain numbers.
			if tag == "json" {
				s.form, s.elem = formSlice, newShape(t.Elem(), tag)
			}
		case reflect.Int, reflect.Int64:
			s.form = formInts
		default:
			s.form, s.elem = formSlice, newShape(t.Elem(), tag)
		}
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			panic(fmt.Sprintf("codec: map keys of %v", t))
		}
		s.form, s.elem = formMap, newShape(t.Elem(), tag)
	case reflect.Struct:
		s.form = formStruct
		s.setFields(t, tag)
	default:
		panic(fmt.Sprintf("codec: no message can hold a %v", t))
	}
	return s
}

// setFields sets the fields of the shape of a struct type. It panics if there are too many, or if two have one key.
func (s *shape) setFields(t reflect.Type, tag string) {
	if !hasTag(t, "msgpack") {
		tag = "json"
	}
	s.addFields(t, nil, tag)
	if len(s.fields) > MaxKeys {
		panic(fmt.Sprintf("codec: %d fields in %v", len(s.fields), t))
	}
	s.byName = make(map[string]int, len(s.fields))
	for i, f := range s.fields {
		if _, isDuplicate := s.byName[f.name]; isDuplicate {
			panic(fmt.Sprintf("codec: key %q twice in %v", f.name, t))
		}
		s.byName[f.name] = i
	}
}

// hasTag reports whether a field of t, or of a struct embedded in it, has the tag.
func hasTag(t reflect.Type, tag string) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		if _, ok := f.Tag.Lookup(tag); ok || f.Anonymous && hasTag(f.Type, tag) {
			return true
		}
	}
	return false
}

// addFields adds the fields of t, and those of structs embedded in it. parent is the index of t in the outermost struct, for
// reflect.Value.FieldByIndex; nil if t is that struct.
func (s *shape) addFields(t reflect.Type, parent []int, tag string) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(append([]int(nil), parent...), i)
		name, options, _ := strings.Cut(f.Tag.Get(tag), ",")

		switch {
		case f.Anonymous && name == "":
			s.addFields(f.Type, index, tag)
		case !f.IsExported() || name == "-":
		case name == "":
			panic(fmt.Sprintf("codec: field %s of %v has no key", f.Name, t))
		default:
			key, err := msgpack.Marshal(name)
			if err != nil {
				panic(err)
			}
			s.fields = append(s.fields, field{name, key, index, newShape(f.Type, tag), options == "omitempty"})
		}
	}
}
