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
		return nil, WithTypeAndCode("view", err)
	}
	v := &viewer{cursor: cursor{b: b}}
	if err := v.writeValue(); err != nil {
		return nil, WithTypeAndCode("view", err)
	}
	return v.out.Bytes(), nil
}

// viewer writes JSON for the values that its cursor reads.
type viewer struct {
	cursor
	out bytes.Buffer
}

// writeValue reads the next msgpack value and writes it as JSON.
func (v *viewer) writeValue() error {
	h, err := v.readHead()
	if err != nil {
		return err
	}
	switch h.class {
	case classNil:
		v.out.WriteString("null")
	case classBool:
		v.out.WriteString(strconv.FormatBool(h.bits == 1))
	case classInt:
		if h.isNegative {
			v.out.WriteString(strconv.FormatInt(int64(h.bits), 10))
		} else {
			v.out.WriteString(strconv.FormatUint(h.bits, 10))
		}
	case classFloat:
		return v.writeFloat(math.Float64frombits(h.bits))
	case classString:
		return v.writeText(string(v.readBytes(h.length)))
	case classBin:
		return v.writeText(base64.StdEncoding.EncodeToString(v.readBytes(h.length)))
	case classArray:
		v.out.WriteByte('[')
		for i := range h.length {
			if i > 0 {
				v.out.WriteByte(',')
			}
			if err := v.writeValue(); err != nil {
				return err
			}
		}
		v.out.WriteByte(']')
	case classMap:
		v.out.WriteByte('{')
		for i := range h.length {
			if i > 0 {
				v.out.WriteByte(',')
			}
			key, err := v.readKey()
			if err != nil {
				return err
			}
			if err := v.writeText(string(key)); err != nil {
				return err
			}
			v.out.WriteByte(':')
			if err := v.writeValue(); err != nil {
				return err
			}
		}
		v.out.WriteByte('}')
	}
	return nil
}

// writeFloat writes a number. JSON has no NaN and infinities, which are written as strings.
func (v *viewer) writeFloat(x float64) error {
	if !isFinite(x) {
		return v.writeText(strconv.FormatFloat(x, 'g', -1, 64))
	}
	b, err := json.Marshal(x)
	v.out.Write(b)
	return err
}

// writeText writes a JSON string.
func (v *viewer) writeText(s string) error {
	b, err := json.Marshal(s)
	v.out.Write(b)
	return err
}

// FromView returns the msgpack bytes of doc, a JSON view of a value of the type that m points to: the inverse of View. Strings become bin,
// and numbers floats, if the fields of that type are. It converts only; Unmarshal checks the result.
func FromView(m any, doc []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var x any
	if err := d.Decode(&x); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrMalformed, err)
	}

	var buf bytes.Buffer
	err := encodeView(msgpack.NewEncoder(&buf), shapeOf(reflect.TypeOf(m).Elem()), x)
	return buf.Bytes(), err
}

// encodeView encodes x, a decoded JSON value, in the form of the shape s. If x does not fit s, or s is nil, it has the form of JSON.
func encodeView(enc *msgpack.Encoder, s *shape, x any) error {
	for s != nil && s.form == formPointer {
		s = s.elem
	}

	switch x := x.(type) {
	case json.Number:
		wantsFloat := s != nil && s.form == formFloat
		if n, err := strconv.ParseInt(x.String(), 10, 64); err == nil && !wantsFloat {
			return enc.EncodeInt(n)
		}
		if n, err := strconv.ParseUint(x.String(), 10, 64); err == nil && !wantsFloat {
			return enc.EncodeUint(n)
		}
		f, err := x.Float64()
		if err != nil {
			return fmt.Errorf("%w: %v", ErrMalformed, err)
		}
		return enc.EncodeFloat64(f)
	case string:
		return encodeText(enc, s, x)
	case []any:
		if err := enc.EncodeArrayLen(len(x)); err != nil {
			return err
		}
		for _, e := range x {
			var elem *shape
			if s != nil && (s.form == formSlice || s.form == formStreamed) {
				elem = s.elem
			}
			if err := encodeView(enc, elem, e); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		return encodeObject(enc, s, x)
	}
	return enc.Encode(x) // null, true, false
}

// encodeText encodes a string of a JSON view. It becomes a bin (bytes) if s is one and the text is base64, and a float if s is one and the
// text is NaN or an infinity.
func encodeText(enc *msgpack.Encoder, s *shape, x string) error {
	switch {
	case s == nil:
	case s.form == formBytes || s.form == formFloats:
		if b, err := base64.StdEncoding.DecodeString(x); err == nil {
			return enc.EncodeBytes(b)
		}
	case s.form == formFloat && (x == "NaN" || x == "+Inf" || x == "-Inf"):
		f, _ := strconv.ParseFloat(x, 64) // it reads these three texts
		return enc.EncodeFloat64(f)
	}
	return enc.EncodeString(x)
}

// encodeObject encodes an object of a JSON view with its keys in order, each value in the form that the shape s has for its key.
func encodeObject(enc *msgpack.Encoder, s *shape, x map[string]any) error {
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
		if err := encodeView(enc, elem, x[k]); err != nil {
			return err
		}
	}
	return nil
}
