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
	name  string
	key   []byte // the encoded name
	index []int  // for reflect.Value.FieldByIndex
	shape *shape
	omit  bool // may be absent
}

// of returns the field of a struct.
func (f *field) of(v reflect.Value) reflect.Value {
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
	s, _ := shapes.LoadOrStore(t, compile(t, "msgpack"))
	return s.(*shape)
}

// compile prepares a type by the struct tags named tag. A struct that has json tags only, with all
// below it, is keyed by those.
func compile(t reflect.Type, tag string) *shape {
	s := &shape{typ: t}
	if reflect.PointerTo(t).Implements(streamedType) {
		s.form = formStreamed
		if list, ok := reflect.New(t).Interface().(Uniform); ok {
			s.elem = compile(reflect.TypeOf(list.Element()).Elem(), tag)
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
		s.form, s.elem = formPointer, compile(t.Elem(), tag)
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.Uint8:
			s.form = formBytes
		case reflect.Float64:
			s.form = formFloats
			// Values keyed as in JSON are also read by people and other languages, so these are
			// plain numbers.
			if tag == "json" {
				s.form, s.elem = formSlice, compile(t.Elem(), tag)
			}
		case reflect.Int, reflect.Int64:
			s.form = formInts
		default:
			s.form, s.elem = formSlice, compile(t.Elem(), tag)
		}
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			panic(fmt.Sprintf("codec: map keys of %v", t))
		}
		s.form, s.elem = formMap, compile(t.Elem(), tag)
	case reflect.Struct:
		s.form = formStruct
		if !tagged(t, "msgpack") {
			tag = "json"
		}
		s.addFields(t, nil, tag)

		if len(s.fields) > MaxKeys {
			panic(fmt.Sprintf("codec: %d fields in %v", len(s.fields), t))
		}
		s.byName = make(map[string]int, len(s.fields))
		for i, f := range s.fields {
			if _, twice := s.byName[f.name]; twice {
				panic(fmt.Sprintf("codec: key %q twice in %v", f.name, t))
			}
			s.byName[f.name] = i
		}
	default:
		panic(fmt.Sprintf("codec: no message can hold a %v", t))
	}
	return s
}

// tagged reports whether a field of t, or of a struct embedded in it, has the tag.
func tagged(t reflect.Type, tag string) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		if _, ok := f.Tag.Lookup(tag); ok || f.Anonymous && tagged(f.Type, tag) {
			return true
		}
	}
	return false
}

// addFields adds the fields of t, which is at that index, and the fields of structs embedded in it.
func (s *shape) addFields(t reflect.Type, at []int, tag string) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(append([]int(nil), at...), i)
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
			s.fields = append(s.fields, field{name, key, index, compile(f.Type, tag), options == "omitempty"})
		}
	}
}
