package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/basetensor/basetensor/internal/arena"
)

// Reader reads values against their shape. It trusts nothing that Scan has checked: both guard alone.
type Reader struct {
	cursor
	allowance int // bytes of memory that the rest of the message may still take

	ints    arena.Slab[int] // lists are pieces of few long ones
	reals   arena.Slab[float64]
	vectors arena.Slab[[]float64]
	known   map[string]string // short strings that came before
}

// Unmarshal reads the message of this name into the struct that v points to.
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

// envelope checks the common keys, wherever in the outermost map they stand.
func (r *Reader) envelope(name string) error {
	h, err := r.next()
	if err != nil {
		return err
	}
	if h.class != classMap {
		return r.malformed("a message is a map, this is a %s", h.class)
	}
	var gotName string
	version, hasVersion := int64(0), false
	for range h.n {
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
			version, hasVersion = int64(h.u), true
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

func (r *Reader) expect(k class) (head, error) {
	h, err := r.next()
	if err == nil && h.class != k {
		err = r.malformed("%s expected, not %s", k, h.class)
	}
	return h, err
}

// Value reads the next value into what v points to.
func (r *Reader) Value(v any) error {
	x := reflect.ValueOf(v).Elem()
	return r.read(shapeOf(x.Type()), x)
}

// Charge takes n elements of t from the allowance, before they are made.
func (r *Reader) Charge(n int, t reflect.Type) error {
	if size := int(t.Size()); size > 0 && n > r.allowance/size {
		return fmt.Errorf("%w: at byte %d: %d elements of %d bytes", ErrTooLarge, r.i, n, size)
	}
	r.allowance -= n * int(t.Size())
	return nil
}

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
		return r.floats(h, s, v)
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

// The strings of which one copy serves all: names of kinds, of which a network has millions of a few.
const (
	mostKnown  = 64 // of them
	knownBytes = 16 // of one
)

// text takes a string.
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

// integer returns h as a value of the signed type t.
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

// number returns a float, or an integer that a float64 holds exactly.
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

func (r *Reader) floats(h head, s *shape, v reflect.Value) error {
	if h.class != classBin {
		return r.malformed("bin of float64 expected, not %s", h.class)
	}
	if h.n%8 != 0 {
		return r.malformed("a bin of %d bytes cannot be a list of float64", h.n)
	}
	if err := r.Charge(h.n/8, s.typ.Elem()); err != nil {
		return err
	}
	b := r.take(h.n)
	x := r.reals.Make(len(b) / 8)
	for i := range x {
		x[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	if p, ok := v.Addr().Interface().(*[]float64); ok {
		*p = x
	} else {
		v.Set(reflect.ValueOf(x).Convert(s.typ))
	}
	return nil
}

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
	if p, ok := v.Addr().Interface().(*[][]float64); ok {
		*p = r.vectors.Make(h.n)
	} else {
		v.Set(reflect.MakeSlice(s.typ, h.n, h.n))
	}
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

// integers fills x.
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

var intType = reflect.TypeFor[int]()

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

// object reads a struct: unknown keys are passed over, a missing required one is an error.
func (r *Reader) object(h head, s *shape, v reflect.Value) error {
	if h.class != classMap {
		return r.malformed("map expected, not %s", h.class)
	}
	var seen [MaxKeys]bool
	for range h.n {
		key, err := r.key()
		if err != nil {
			return err
		}
		k, known := s.byName[string(key)]
		if !known {
			if err := r.skip(MaxDepth); err != nil {
				return err
			}
			continue
		}
		seen[k] = true
		f := &s.fields[k]
		if err := r.read(f.shape, v.FieldByIndex(f.index)); err != nil {
			return Under(f.name, err)
		}
	}
	for k := range s.fields {
		if !seen[k] && !s.fields[k].omit {
			return Missing(s.fields[k].name)
		}
	}
	return nil
}

// placed is an error with the path of the field it is in.
type placed struct {
	path string
	err  error
}

func (p *placed) Error() string { return p.path + ": " + p.err.Error() }
func (p *placed) Unwrap() error { return p.err }

// Missing is the error of a required field that is not there.
func Missing(name string) error {
	return &placed{name, fmt.Errorf("%w: required field is missing", ErrMalformed)}
}

// Under puts a field's name, or an element's [i], before the path of err.
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
