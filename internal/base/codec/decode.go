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

	// Many short lists are cut from few long ones.
	ints  arena.Slab[int]
	reals arena.Slab[float64]
	lists arena.Slab[[]float64]

	known map[string]string // short strings that came before
}

// Unmarshal decodes the message of this name into the struct that v points to. It takes memory of
// at most 1 MiB and 32 times the message.
func Unmarshal(name string, b []byte, limit int, v any) error {
	if err := Scan(b, limit); err != nil {
		return err
	}

	r := &Reader{cursor: cursor{b: b}, allowance: 1<<20 + 32*len(b)}
	if err := r.envelope(name); err != nil {
		return err
	}

	r.i = 0
	value := reflect.ValueOf(v).Elem()
	return r.read(shapeOf(value.Type()), value)
}

// envelope checks the common keys, at any position in the outermost map, of a message that Scan has
// passed: the content after them has no such keys.
func (r *Reader) envelope(name string) error {
	h, err := r.next()
	if err != nil {
		return err
	}
	if h.class != classMap {
		return r.malformed("a message is a map, this is a %s", h.class)
	}

	var gotName string
	version := int64(0)
	hasVersion := false
	for range h.n {
		if hasVersion && gotName != "" {
			break
		}
		key, err := r.key()
		if err != nil {
			return err
		}
		switch string(key) {
		case keyName:
			h, err := r.expect(classString)
			if err != nil {
				return Under(keyName, err)
			}
			gotName = string(r.take(h.n))
		case keyVersion:
			h, err := r.expect(classInt)
			if err != nil {
				return Under(keyVersion, err)
			}
			version = int64(h.u)
			hasVersion = true
		default:
			if err := r.skip(MaxDepth); err != nil {
				return err
			}
		}
	}

	switch {
	case !hasVersion:
		return Missing(keyVersion)
	case version != Version:
		return fmt.Errorf("%w: %d, this program reads version %d", ErrVersion, version, Version)
	case gotName != name:
		return fmt.Errorf("%w: a %q where a %q belongs", ErrMalformed, gotName, name)
	}
	return nil
}

// expect reads the header of a value that must be of a class.
func (r *Reader) expect(k class) (head, error) {
	h, err := r.next()
	if err == nil && h.class != k {
		err = r.malformed("%s expected, not %s", k, h.class)
	}
	return h, err
}

// Value decodes the next value into the variable that v points to.
func (r *Reader) Value(v any) error {
	x := reflect.ValueOf(v).Elem()
	return r.read(shapeOf(x.Type()), x)
}

// Peek returns the string at a key of the map that comes next, and stays before it; empty where there is none.
func (r *Reader) Peek(key string) string {
	value := Reader{cursor: cursor{b: Part(r.b[r.i:], key)}}
	h, err := value.expect(classString)
	if err != nil {
		return ""
	}
	return string(value.take(h.n))
}

// Charge subtracts n elements of type t from the memory allowance, before they are made.
func (r *Reader) Charge(n int, t reflect.Type) error {
	if size := int(t.Size()); size > 0 && n > r.allowance/size {
		return fmt.Errorf("%w: at byte %d: %d elements of %d bytes", ErrTooLarge, r.i, n, size)
	}
	r.allowance -= n * int(t.Size())
	return nil
}

// read decodes the next value into v, whose shape is s. Null is the zero value of types that may be
// nil.
func (r *Reader) read(s *shape, v reflect.Value) error {
	start := r.i
	h, err := r.next()
	if err != nil {
		return err
	}

	if h.class == classNil && s.form >= formBytes && s.form != formStruct {
		v.SetZero()
		return nil
	}

	wrong := func(want string) error { return r.malformed("%s expected, not %s", want, h.class) }

	switch s.form {
	case formString:
		if h.class != classString {
			return wrong("string")
		}
		v.SetString(r.text(h.n))
	case formBool:
		if h.class != classBool {
			return wrong("bool")
		}
		v.SetBool(h.u == 1)
	case formInt:
		x, err := r.integer(h, s.typ)
		if err != nil {
			return err
		}
		v.SetInt(x)
	case formUint:
		if h.class != classInt {
			return wrong("integer")
		}
		if h.neg || v.OverflowUint(h.u) {
			return r.malformed("integer out of the range of %v", s.typ.Kind())
		}
		v.SetUint(h.u)
	case formFloat:
		x, ok := number(h)
		if !ok {
			return wrong("float")
		}
		v.SetFloat(x)
	case formBytes:
		if h.class != classBin {
			return wrong("bin")
		}
		v.SetBytes(append(make([]byte, 0, h.n), r.take(h.n)...))
	case formFloats:
		x, err := r.floats(h)
		if err != nil {
			return err
		}
		if p, ok := v.Addr().Interface().(*[]float64); ok {
			*p = x
		} else {
			v.Set(reflect.ValueOf(x).Convert(s.typ))
		}
	case formInts, formSlice:
		return r.list(h, s, v)
	case formMap:
		return r.freeMap(h, s, v)
	case formStruct:
		return r.object(h, s, v)
	case formStreamed:
		if h.class != classArray {
			return wrong("array")
		}
		return v.Addr().Interface().(Streamed).Decode(r, h.n)
	case formPointer:
		if err := r.Charge(1, s.elem.typ); err != nil {
			return err
		}
		v.Set(reflect.New(s.elem.typ))
		r.i = start
		return r.read(s.elem, v.Elem())
	}
	return nil
}

// Bounds of the strings that share one copy: names of kinds, a few that a network repeats millions
// of times.
const (
	mostKnown  = 64 // number of strings
	knownBytes = 16 // length of one
)

// text reads a string of n bytes.
func (r *Reader) text(n int) string {
	b := r.take(n)
	if s, ok := r.known[string(b)]; ok {
		return s
	}

	s := string(b)
	if len(s) <= knownBytes && len(r.known) < mostKnown {
		if r.known == nil {
			r.known = map[string]string{}
		}
		r.known[s] = s
	}
	return s
}

// integer returns the integer of a header as a value of the signed type t.
func (r *Reader) integer(h head, t reflect.Type) (int64, error) {
	if h.class != classInt {
		return 0, r.malformed("integer expected, not %s", h.class)
	}
	x := int64(h.u)
	if h.neg != (x < 0) || t.OverflowInt(x) {
		return 0, r.malformed("integer out of the range of %v", t.Kind())
	}
	return x, nil
}

// number returns the float of a header, or an integer that a float64 holds exactly.
func number(h head) (float64, bool) {
	switch {
	case h.class == classFloat:
		return math.Float64frombits(h.u), true
	case h.class != classInt:
		return 0, false
	case h.neg:
		return float64(int64(h.u)), int64(h.u) >= -1<<53
	}
	return float64(h.u), h.u <= 1<<53
}

// floats decodes a bin of little-endian float64.
func (r *Reader) floats(h head) ([]float64, error) {
	if h.class != classBin {
		return nil, r.malformed("bin of float64 expected, not %s", h.class)
	}
	if h.n%8 != 0 {
		return nil, r.malformed("a bin of %d bytes cannot be a list of float64", h.n)
	}
	if err := r.Charge(h.n/8, floatType); err != nil {
		return nil, err
	}

	b := r.take(h.n)
	x := r.reals.Make(len(b) / 8)
	for i := range x {
		x[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return x, nil
}

// vectors decodes lists of floats into x, null as nil.
func (r *Reader) vectors(x [][]float64) error {
	for i := range x {
		h, err := r.next()
		if err == nil && h.class != classNil {
			x[i], err = r.floats(h)
		}
		if err != nil {
			return Under(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

// list decodes an array into a list.
func (r *Reader) list(h head, s *shape, v reflect.Value) error {
	if h.class != classArray {
		return r.malformed("array expected, not %s", h.class)
	}
	if err := r.Charge(h.n, s.typ.Elem()); err != nil {
		return err
	}

	if p, ok := v.Addr().Interface().(*[]int); ok {
		*p = r.ints.Make(h.n)
		return r.integers(*p)
	}

	if p, ok := v.Addr().Interface().(*[][]float64); ok && s.elem.form == formFloats {
		*p = r.lists.Make(h.n)
		return r.vectors(*p)
	}

	v.Set(reflect.MakeSlice(s.typ, h.n, h.n))
	for i := range h.n {
		err := error(nil)
		if s.form == formSlice {
			err = r.read(s.elem, v.Index(i))
		} else if h, e := r.next(); e != nil {
			err = e
		} else {
			var x int64
			x, err = r.integer(h, s.typ.Elem())
			v.Index(i).SetInt(x)
		}
		if err != nil {
			return Under(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

// integers decodes len(x) integers into x.
func (r *Reader) integers(x []int) error {
	for i := range x {
		h, err := r.next()
		if err != nil {
			return Under(fmt.Sprintf("[%d]", i), err)
		}
		n, err := r.integer(h, intType)
		if err != nil {
			return Under(fmt.Sprintf("[%d]", i), err)
		}
		x[i] = int(n)
	}
	return nil
}

var (
	intType   = reflect.TypeFor[int]()
	floatType = reflect.TypeFor[float64]()
)

// freeMap decodes a map with any string keys.
func (r *Reader) freeMap(h head, s *shape, v reflect.Value) error {
	if h.class != classMap {
		return r.malformed("map expected, not %s", h.class)
	}
	if err := r.Charge(h.n, s.elem.typ); err != nil {
		return err
	}

	v.Set(reflect.MakeMapWithSize(s.typ, h.n))
	for range h.n {
		key, err := r.key()
		if err != nil {
			return err
		}
		x := reflect.New(s.elem.typ).Elem()
		if err := r.read(s.elem, x); err != nil {
			return Under(string(key), err)
		}
		v.SetMapIndex(reflect.ValueOf(string(key)).Convert(s.typ.Key()), x)
	}
	return nil
}

// object decodes a struct: unknown keys are skipped, and a missing required one is an error.
func (r *Reader) object(h head, s *shape, v reflect.Value) error {
	if h.class != classMap {
		return r.malformed("map expected, not %s", h.class)
	}

	var seen uint64 // by field
	likely := 0     // the field that the next key probably names: they are written in this sequence
	for range h.n {
		key, err := r.key()
		if err != nil {
			return err
		}
		for likely < len(s.fields) && s.fields[likely].omit && s.fields[likely].name != string(key) {
			likely++
		}
		k := likely
		if k == len(s.fields) || s.fields[k].name != string(key) {
			known := false
			if k, known = s.byName[string(key)]; !known {
				if err := r.skip(MaxDepth); err != nil {
					return err
				}
				continue
			}
		}
		likely = k + 1
		seen |= 1 << k
		f := &s.fields[k]
		if err := r.read(f.shape, f.of(v)); err != nil {
			return Under(f.name, err)
		}
	}

	for k := range s.fields {
		if seen>>k&1 == 0 && !s.fields[k].omit {
			return Missing(s.fields[k].name)
		}
	}
	return nil
}

// placed is an error with the path of its field.
type placed struct {
	path string
	err  error
}

func (p *placed) Error() string { return p.path + ": " + p.err.Error() }
func (p *placed) Unwrap() error { return p.err }

// Missing returns the error of a required field that is not there.
func Missing(name string) error {
	return &placed{name, fmt.Errorf("%w: required field is missing", ErrMalformed)}
}

// Under puts a field's name, or an element's [i], before the path of an error.
func Under(name string, err error) error {
	p, ok := err.(*placed)
	switch {
	case err == nil:
		return nil
	case !ok:
		return &placed{name, err}
	case strings.HasPrefix(p.path, "["):
		return &placed{name + p.path, p.err}
	}
	return &placed{name + "." + p.path, p.err}
}
