package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/basetensor/basetensor/internal/base/arena"
)

// Reader decodes values by their shape. It checks everything that Scan has checked as well: each is
// safe without the other.
type Reader struct {
	cursor
	allowance int // bytes of memory that the rest of the message may still take

	// Memory of lists: many short ones are cut from few long ones.
	ints   arena.Slab[int]
	floats arena.Slab[float64]
	lists  arena.Slab[[]float64]

	shortStrings map[string]string // some that came before, to share their memory
}

// Unmarshal decodes the message of this name into the struct that v points to. It takes memory of
// at most 1 MiB and 32 times the message.
func Unmarshal(name string, b []byte, limit int, v any) error {
	if err := Scan(b, limit); err != nil {
		return err
	}

	r := &Reader{cursor: cursor{b: b}, allowance: 1<<20 + 32*len(b)}
	if err := r.checkEnvelope(name); err != nil {
		return err
	}

	r.i = 0 // from the beginning again, for the content
	value := reflect.ValueOf(v).Elem()
	return r.read(shapeOf(value.Type()), value)
}

// checkEnvelope returns an error if the message does not have this name and the version that this program reads.
func (r *Reader) checkEnvelope(name string) error {
	gotName, version, hasVersion, err := r.readEnvelope()
	switch {
	case err != nil:
		return err
	case !hasVersion:
		return Missing(keyVersion)
	case version != Version:
		return fmt.Errorf("%w: %d, this program reads version %d", ErrVersion, version, Version)
	case gotName != name:
		return fmt.Errorf("%w: a %q where a %q belongs", ErrMalformed, gotName, name)
	}
	return nil
}

// readEnvelope returns the name and the version of a message, "" if it has no name. Their keys may be anywhere in the outermost map. It
// ends when it has found both: Scan has made sure that no key comes twice.
func (r *Reader) readEnvelope() (name string, version int64, hasVersion bool, err error) {
	h, err := r.readHead()
	if err != nil {
		return "", 0, false, err
	}
	if h.class != classMap {
		return "", 0, false, r.malformed("a message is a map, this is a %s", h.class)
	}
	for range h.length {
		if hasVersion && name != "" {
			break
		}
		key, err := r.readKey()
		if err != nil {
			return "", 0, false, err
		}
		switch string(key) {
		case keyName:
			h, err := r.readHeadOf(classString)
			if err != nil {
				return "", 0, false, WithField(keyName, err)
			}
			name = string(r.readBytes(h.length))
		case keyVersion:
			h, err := r.readHeadOf(classInt)
			if err != nil {
				return "", 0, false, WithField(keyVersion, err)
			}
			version = int64(h.bits)
			hasVersion = true
		default:
			if err := r.skip(MaxDepth); err != nil {
				return "", 0, false, err
			}
		}
	}
	return name, version, hasVersion, nil
}

// readHeadOf reads the header of the next value. It returns an error if the value is not of the class wanted.
func (r *Reader) readHeadOf(wanted class) (head, error) {
	h, err := r.readHead()
	if err == nil && h.class != wanted {
		err = r.malformed("%s expected, not %s", wanted, h.class)
	}
	return h, err
}

// Value decodes the next value into the variable that v points to.
func (r *Reader) Value(v any) error {
	x := reflect.ValueOf(v).Elem()
	return r.read(shapeOf(x.Type()), x)
}

// Peek returns the string at a key of the map that comes next, empty if there is none. It reads nothing: the map is still the next value.
func (r *Reader) Peek(key string) string {
	value := Reader{cursor: cursor{b: Part(r.b[r.i:], key)}}
	h, err := value.readHeadOf(classString)
	if err != nil {
		return ""
	}
	return string(value.readBytes(h.length))
}

// Charge subtracts n elements of type t from the memory allowance, before they are made.
func (r *Reader) Charge(n int, t reflect.Type) error {
	if size := int(t.Size()); size > 0 && n > r.allowance/size {
		return fmt.Errorf("%w: at byte %d: %d elements of %d bytes", ErrTooLarge, r.i, n, size)
	}
	r.allowance -= n * int(t.Size())
	return nil
}

// read decodes the next value into v, where s is the shape of the type of v. Null sets a v that may be nil to nil.
func (r *Reader) read(s *shape, v reflect.Value) error {
	start := r.i
	h, err := r.readHead()
	if err != nil {
		return err
	}

	mayBeNil := s.form >= formBytes && s.form != formStruct // the forms before formBytes are those of strings and numbers
	if h.class == classNil && mayBeNil {
		v.SetZero()
		return nil
	}

	switch s.form {
	case formInts, formSlice:
		return r.readList(h, s, v)
	case formMap:
		return r.readMap(h, s, v)
	case formStruct:
		return r.readStruct(h, s, v)
	case formStreamed:
		if h.class != classArray {
			return r.unexpected("array", h)
		}
		return v.Addr().Interface().(Streamed).Decode(r, h.length)
	case formPointer:
		if err := r.Charge(1, s.elem.typ); err != nil { // of the memory that the message may take
			return err
		}
		v.Set(reflect.New(s.elem.typ))
		r.i = start // the header is read again, for the value behind the pointer
		return r.read(s.elem, v.Elem())
	}
	return r.readScalar(h, s, v)
}

// unexpected returns the error that a value, whose header h was read, is not of the class that is wanted.
func (r *Reader) unexpected(want string, h head) error {
	return r.malformed("%s expected, not %s", want, h.class)
}

// readScalar decodes a value that has no others in it, whose header h was read, into v of shape s. A list of floats counts as one, since it
// is a bin in the message.
func (r *Reader) readScalar(h head, s *shape, v reflect.Value) error {
	switch s.form {
	case formString:
		if h.class != classString {
			return r.unexpected("string", h)
		}
		v.SetString(r.readText(h.length))
	case formBool:
		if h.class != classBool {
			return r.unexpected("bool", h)
		}
		v.SetBool(h.bits == 1)
	case formInt:
		x, err := r.integer(h, s.typ)
		if err != nil {
			return err
		}
		v.SetInt(x)
	case formUint:
		if h.class != classInt {
			return r.unexpected("integer", h)
		}
		if h.isNegative || v.OverflowUint(h.bits) {
			return r.malformed("integer out of the range of %v", s.typ.Kind())
		}
		v.SetUint(h.bits)
	case formFloat:
		x, ok := h.number()
		if !ok {
			return r.unexpected("float", h)
		}
		v.SetFloat(x)
	case formBytes:
		if h.class != classBin {
			return r.unexpected("bin", h)
		}
		v.SetBytes(append(make([]byte, 0, h.length), r.readBytes(h.length)...)) // a copy: the bytes read are the message's
	case formFloats:
		x, err := r.readFloats(h)
		if err != nil {
			return err
		}
		if p, ok := v.Addr().Interface().(*[]float64); ok {
			*p = x
		} else { // a slice type with a name
			v.Set(reflect.ValueOf(x).Convert(s.typ))
		}
	}
	return nil
}

// Bounds of the strings that share one copy: names of kinds, a few that a network repeats millions
// of times.
const (
	maxShortStrings    = 64 // their number
	maxShortStringSize = 16 // bytes of one
)

// readText reads a string of n bytes. Some short ones share the memory of an equal one that came before.
func (r *Reader) readText(n int) string {
	b := r.readBytes(n)
	if s, ok := r.shortStrings[string(b)]; ok {
		return s
	}

	s := string(b)
	if len(s) <= maxShortStringSize && len(r.shortStrings) < maxShortStrings {
		if r.shortStrings == nil {
			r.shortStrings = map[string]string{}
		}
		r.shortStrings[s] = s
	}
	return s
}

// integer returns the integer in a header. It returns an error if the value is no integer, or if the signed type t does not hold it.
func (r *Reader) integer(h head, t reflect.Type) (int64, error) {
	if h.class != classInt {
		return 0, r.malformed("integer expected, not %s", h.class)
	}
	x := int64(h.bits)
	isBeyondInt64 := h.isNegative != (x < 0)
	if isBeyondInt64 || t.OverflowInt(x) {
		return 0, r.malformed("integer out of the range of %v", t.Kind())
	}
	return x, nil
}

// number returns the float in a header, or the integer as a float. ok is false if the value is no number, or an integer that a float64 may
// not hold exactly.
func (h head) number() (x float64, ok bool) {
	switch {
	case h.class == classFloat:
		return math.Float64frombits(h.bits), true
	case h.class != classInt:
		return 0, false
	case h.isNegative:
		return float64(int64(h.bits)), int64(h.bits) >= -1<<53
	}
	return float64(h.bits), h.bits <= 1<<53
}

// readFloats reads the content of a bin, whose header was read, as little-endian float64s.
func (r *Reader) readFloats(h head) ([]float64, error) {
	if h.class != classBin {
		return nil, r.malformed("bin of float64 expected, not %s", h.class)
	}
	if h.length%8 != 0 {
		return nil, r.malformed("a bin of %d bytes cannot be a list of float64", h.length)
	}
	if err := r.Charge(h.length/8, floatType); err != nil {
		return nil, err
	}

	b := r.readBytes(h.length)
	x := r.floats.Make(len(b) / 8)
	for i := range x {
		x[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return x, nil
}

// readFloatLists reads len(lists) lists of floats into lists, null as nil.
func (r *Reader) readFloatLists(lists [][]float64) error {
	for i := range lists {
		h, err := r.readHead()
		if err == nil && h.class != classNil {
			lists[i], err = r.readFloats(h)
		}
		if err != nil {
			return WithField(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

// readList reads the elements of an array, whose header h was read, into the slice v of shape s. Slices of the usual types are read without
// reflection on each element.
func (r *Reader) readList(h head, s *shape, v reflect.Value) error {
	if h.class != classArray {
		return r.malformed("array expected, not %s", h.class)
	}
	if err := r.Charge(h.length, s.typ.Elem()); err != nil {
		return err
	}

	if p, ok := v.Addr().Interface().(*[]int); ok {
		*p = r.ints.Make(h.length)
		return r.readInts(*p)
	}

	if p, ok := v.Addr().Interface().(*[][]float64); ok && s.elem.form == formFloats {
		*p = r.lists.Make(h.length)
		return r.readFloatLists(*p)
	}

	v.Set(reflect.MakeSlice(s.typ, h.length, h.length))
	for i := range h.length {
		var err error
		if s.form == formSlice {
			err = r.read(s.elem, v.Index(i))
		} else { // formInts: integers of another type than int, or a slice type with a name
			var x int64
			if x, err = r.readInt(s.typ.Elem()); err == nil {
				v.Index(i).SetInt(x)
			}
		}
		if err != nil {
			return WithField(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

// readInt reads an integer of the signed type t.
func (r *Reader) readInt(t reflect.Type) (int64, error) {
	h, err := r.readHead()
	if err != nil {
		return 0, err
	}
	return r.integer(h, t)
}

// readInts reads len(list) integers into list.
func (r *Reader) readInts(list []int) error {
	for i := range list {
		x, err := r.readInt(intType)
		if err != nil {
			return WithField(fmt.Sprintf("[%d]", i), err)
		}
		list[i] = int(x)
	}
	return nil
}

var (
	intType   = reflect.TypeFor[int]()
	floatType = reflect.TypeFor[float64]()
)

// readMap reads the pairs of a map, whose header h was read, into the Go map v of shape s. It may have any keys.
func (r *Reader) readMap(h head, s *shape, v reflect.Value) error {
	if h.class != classMap {
		return r.malformed("map expected, not %s", h.class)
	}
	if err := r.Charge(h.length, s.elem.typ); err != nil {
		return err
	}

	v.Set(reflect.MakeMapWithSize(s.typ, h.length))
	for range h.length {
		key, err := r.readKey()
		if err != nil {
			return err
		}
		x := reflect.New(s.elem.typ).Elem()
		if err := r.read(s.elem, x); err != nil {
			return WithField(string(key), err)
		}
		v.SetMapIndex(reflect.ValueOf(string(key)).Convert(s.typ.Key()), x)
	}
	return nil
}

// readStruct reads the pairs of a map, whose header h was read, into the struct v of shape s. Unknown keys are skipped. A required field
// that is missing is an error.
func (r *Reader) readStruct(h head, s *shape, v reflect.Value) error {
	if h.class != classMap {
		return r.malformed("map expected, not %s", h.class)
	}

	var seen uint64 // bit k is set if field k was read
	next := 0       // the field that the next key probably names, since fields are written in their sequence
	for range h.length {
		key, err := r.readKey()
		if err != nil {
			return err
		}
		k, isKnown := s.fieldOf(key, next)
		if !isKnown {
			if err := r.skip(MaxDepth); err != nil {
				return err
			}
			continue
		}
		next = k + 1
		seen |= 1 << k
		f := &s.fields[k]
		if err := r.read(f.shape, f.valueIn(v)); err != nil {
			return WithField(f.name, err)
		}
	}

	for k := range s.fields {
		isSeen := seen>>k&1 != 0
		if !isSeen && !s.fields[k].isOptional {
			return Missing(s.fields[k].name)
		}
	}
	return nil
}

// fieldOf returns the field with a key. Messages have their fields in sequence, so it looks first at the fields from next on, up to the
// first required one, which no message leaves out. Only then it looks into the map of all names.
func (s *shape) fieldOf(key []byte, next int) (k int, isKnown bool) {
	for k = next; k < len(s.fields); k++ {
		if s.fields[k].name == string(key) {
			return k, true
		}
		if !s.fields[k].isOptional {
			break
		}
	}
	k, isKnown = s.byName[string(key)]
	return k, isKnown
}

// fieldError is an error with the path of the field that it is about.
type fieldError struct {
	path string
	err  error
}

// Error returns the path and the error.
func (e *fieldError) Error() string { return e.path + ": " + e.err.Error() }

// Unwrap returns the error without the path.
func (e *fieldError) Unwrap() error { return e.err }

// Missing returns the error of a required field that is not there.
func Missing(name string) error {
	return &fieldError{name, fmt.Errorf("%w: required field is missing", ErrMalformed)}
}

// WithField returns an error with a name put before the path of its field: the name of the field that has it, or [i] of the element. It
// returns nil for nil.
func WithField(name string, err error) error {
	inner, hasPath := err.(*fieldError)
	switch {
	case err == nil:
		return nil
	case !hasPath:
		return &fieldError{name, err}
	case strings.HasPrefix(inner.path, "["):
		return &fieldError{name + inner.path, inner.err}
	}
	return &fieldError{name + "." + inner.path, inner.err}
}
