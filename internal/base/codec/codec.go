// Package codec writes Go values as msgpack and reads them back from bytes that may be hostile.
//
// A message or blob is one msgpack map with string keys. Two keys are common to all: "t", its name,
// and "v", its major version. Lists of floats are bin fields of little-endian float64, lists of
// integers are msgpack arrays. The same value always gives the same bytes: fields in the order of
// their struct, free maps sorted by key.
//
// The reflection decoder of the msgpack library is not used for reading. On hostile bytes it
// allocates the size that a header claims, wraps integers that do not fit and takes missing fields
// for zero. Unmarshal instead runs Scan, which is linear and allocates nothing, and then reads
// field by field against the Go type, with an allowance of memory. Writing uses the library's
// encoder.
package codec

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Version is the major version of the messages. Within it only optional fields are added; another
// major version has subjects of its own.
const Version = 1

// Keys that all messages have.
const (
	keyName    = "t"
	keyVersion = "v"
)

// Invalid returns the error of a field with a wrong value. It wraps ErrInvalid.
func Invalid(name, format string, args ...any) error {
	return &fieldError{name, fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))}
}

// WithTypeAndCode adds the name of the decoded type to an error, and a code: unsupported for ErrVersion, else
// bad_input.
func WithTypeAndCode(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrVersion):
		return fault.Wrap(fault.Unsupported, WithField(name, err))
	}
	return fault.Wrap(fault.BadInput, WithField(name, err))
}

// CheckFinite returns an error if the value behind v contains NaN or ±Inf, which JSON does not
// have. The error wraps ErrInvalid and names the field.
func CheckFinite(v any) error {
	x := reflect.ValueOf(v).Elem()
	return checkFinite(shapeOf(x.Type()), x)
}

// checkFinite returns an error if a single float in v, whose shape is s, is NaN or infinite. The error names the field below v.
func checkFinite(s *shape, v reflect.Value) error {
	switch s.form {
	case formFloat:
		if x := v.Float(); !isFinite(x) {
			return fmt.Errorf("%w: %v is not finite", ErrInvalid, x)
		}
	case formPointer:
		if !v.IsNil() {
			return checkFinite(s.elem, v.Elem())
		}
	case formSlice:
		for i := range v.Len() {
			if err := checkFinite(s.elem, v.Index(i)); err != nil {
				return WithField(fmt.Sprintf("[%d]", i), err)
			}
		}
	case formMap:
		for it := v.MapRange(); it.Next(); {
			if err := checkFinite(s.elem, it.Value()); err != nil {
				return WithField(it.Key().String(), err)
			}
		}
	case formStruct:
		for i := range s.fields {
			f := &s.fields[i]
			if err := checkFinite(f.shape, v.FieldByIndex(f.index)); err != nil {
				return WithField(f.name, err)
			}
		}
	}
	return nil
}

// isFinite reports whether x is neither NaN nor infinite.
func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
