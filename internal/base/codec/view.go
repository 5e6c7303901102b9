package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"sort"
	"strconv"

	"github.com/vmihailenco/msgpack/v5"
)

// View returns a message or blob as JSON, for people and schemas: maps become objects with their
// keys in order, bin fields base64 strings, and the floats that JSON does not have the strings
// "NaN", "+Inf", "-Inf". It scans the bytes first.
func View(b []byte) ([]byte, error) {
	if err := Scan(b, MaxBytes); err != nil {
		return nil, Blame("view", err)
	}
	v := &viewer{cursor: cursor{b: b}}
	if err := v.value(); err != nil {
		return nil, Blame("view", err)
	}
	return v.out.Bytes(), nil
}

// viewer writes JSON for the values that its cursor reads.
type viewer struct {
	cursor
	out bytes.Buffer
}

// value writes the next value.
func (v *viewer) value() error {
	h, err := v.next()
	if err != nil {
		return err
	}
	switch h.class {
	case classNil:
		v.out.WriteString("null")
	case classBool:
		v.out.WriteString(strconv.FormatBool(h.u == 1))
	case classInt:
		if h.neg {
			v.out.WriteString(strconv.FormatInt(int64(h.u), 10))
		} else {
			v.out.WriteString(strconv.FormatUint(h.u, 10))
		}
	case classFloat:
		return v.float(math.Float64frombits(h.u))
	case classString:
		return v.text(string(v.take(h.n)))
	case classBin:
		return v.text(base64.StdEncoding.EncodeToString(v.take(h.n)))
	case classArray:
		v.out.WriteByte('[')
		for i := range h.n {
			if i > 0 {
				v.out.WriteByte(',')
			}
			if err := v.value(); err != nil {
				return err
			}
		}
		v.out.WriteByte(']')
	case classMap:
		v.out.WriteByte('{')
		for i := range h.n {
			if i > 0 {
				v.out.WriteByte(',')
			}
			key, err := v.key()
			if err != nil {
				return err
			}
			if err := v.text(string(key)); err != nil {
				return err
			}
			v.out.WriteByte(':')
			if err := v.value(); err != nil {
				return err
			}
		}
		v.out.WriteByte('}')
	}
	return nil
}

// float writes a number, or a string if JSON does not have it.
func (v *viewer) float(x float64) error {
	if !finite(x) {
		return v.text(strconv.FormatFloat(x, 'g', -1, 64))
	}
	b, err := json.Marshal(x)
	v.out.Write(b)
	return err
}

// text writes a string.
func (v *viewer) text(s string) error {
	b, err := json.Marshal(s)
	v.out.Write(b)
	return err
}

// FromView returns the msgpack bytes of a JSON view of the value that m points to, the inverse of
// View: strings become bin, and numbers floats, where m's fields are. It converts only; Unmarshal
// checks the result.
func FromView(m any, doc []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var x any
	if err := d.Decode(&x); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrMalformed, err)
	}

	var buf bytes.Buffer
	err := fromView(msgpack.NewEncoder(&buf), shapeOf(reflect.TypeOf(m).Elem()), x)
	return buf.Bytes(), err
}

// fromView encodes x in the form of s, or in its own form where it does not fit or s is nil.
func fromView(enc *msgpack.Encoder, s *shape, x any) error {
	for s != nil && s.form == formPointer {
		s = s.elem
	}

	switch x := x.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(x.String(), 10, 64); err == nil &&
			!(s != nil && s.form == formFloat) {
			return enc.EncodeInt(n)
		}
		if n, err := strconv.ParseUint(x.String(), 10, 64); err == nil &&
			!(s != nil && s.form == formFloat) {
			return enc.EncodeUint(n)
		}
		f, err := x.Float64()
		if err != nil {
			return fmt.Errorf("%w: %v", ErrMalformed, err)
		}
		return enc.EncodeFloat64(f)
	case string:
		return fromText(enc, s, x)
	case []any:
		if err := enc.EncodeArrayLen(len(x)); err != nil {
			return err
		}
		for _, e := range x {
			var elem *shape
			if s != nil && (s.form == formSlice || s.form == formStreamed) {
				elem = s.elem
			}
			if err := fromView(enc, elem, e); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		return fromObject(enc, s, x)
	}
	return enc.Encode(x) // null, true, false
}

// fromText encodes a string, as a bin or a float where s is one.
func fromText(enc *msgpack.Encoder, s *shape, x string) error {
	switch {
	case s == nil:
	case s.form == formBytes || s.form == formFloats:
		if b, err := base64.StdEncoding.DecodeString(x); err == nil {
			return enc.EncodeBytes(b)
		}
	case s.form == formFloat && (x == "NaN" || x == "+Inf" || x == "-Inf"):
		f, _ := strconv.ParseFloat(x, 64)
		return enc.EncodeFloat64(f)
	}
	return enc.EncodeString(x)
}

// fromObject encodes a map with its keys in order.
func fromObject(enc *msgpack.Encoder, s *shape, x map[string]any) error {
	keys := make([]string, 0, len(x))
	for k := range x {
		keys = append(keys, k)
	}
	sort.Strings(keys)

	if err := enc.EncodeMapLen(len(x)); err != nil {
		return err
	}

	for _, k := range keys {
		var elem *shape
		if s != nil && s.form == formMap {
			elem = s.elem
		} else if s != nil && s.form == formStruct {
			if i, ok := s.byName[k]; ok {
				elem = s.fields[i].shape
			}
		}

		if err := enc.EncodeString(k); err != nil {
			return err
		}
		if err := fromView(enc, elem, x[k]); err != nil {
			return err
		}
	}
	return nil
}
