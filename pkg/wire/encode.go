package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// writer writes values in the form of their shape. Canonical bytes take empty lists for absent ones.
type writer struct {
	buf       bytes.Buffer
	enc       *msgpack.Encoder
	canonical bool
}

// marshal returns the bytes of the struct v points to, under its name and version.
func marshal(name string, v any, canonical bool) ([]byte, error) {
	w := &writer{canonical: canonical}
	w.enc = msgpack.NewEncoder(&w.buf)
	value := reflect.ValueOf(v).Elem()
	if err := w.object(shapeOf(value.Type()), value, name); err != nil {
		return nil, err
	}
	return w.buf.Bytes(), nil
}

func (w *writer) write(s *shape, v reflect.Value) error {
	switch s.form {
	case formString:
		return w.enc.EncodeString(strings.ToValidUTF8(v.String(), "\uFFFD"))
	case formBool:
		return w.enc.EncodeBool(v.Bool())
	case formInt:
		return w.enc.EncodeInt(v.Int())
	case formUint:
		return w.enc.EncodeUint(v.Uint())
	case formFloat:
		return w.enc.EncodeFloat64(v.Float())
	case formStruct:
		return w.object(s, v, "")
	}
	if v.IsNil() {
		return w.enc.EncodeNil()
	}
	switch s.form {
	case formBytes:
		return w.enc.EncodeBytes(v.Bytes())
	case formFloats:
		return w.enc.EncodeBytes(floatBytes(v))
	case formInts:
		if err := w.enc.EncodeArrayLen(v.Len()); err != nil {
			return err
		}
		for i := range v.Len() {
			if err := w.enc.EncodeInt(v.Index(i).Int()); err != nil {
				return err
			}
		}
		return nil
	case formSlice:
		if err := w.enc.EncodeArrayLen(v.Len()); err != nil {
			return err
		}
		for i := range v.Len() {
			if err := w.write(s.elem, v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	case formMap:
		return w.freeMap(s, v)
	}
	return w.write(s.elem, v.Elem()) // formPointer
}

// object writes a struct, its absent fields left out. An outermost one has a name and gets the common keys.
func (w *writer) object(s *shape, v reflect.Value, name string) error {
	n := 0
	for i := range s.fields {
		if !w.absent(&s.fields[i], v) {
			n++
		}
	}
	if name != "" {
		n += 2
	}
	if err := w.enc.EncodeMapLen(n); err != nil {
		return err
	}
	if name != "" {
		if err := w.enc.EncodeMulti(keyName, name, keyVersion, int(Version)); err != nil {
			return err
		}
	}
	for i := range s.fields {
		f := &s.fields[i]
		if w.absent(f, v) {
			continue
		}
		if err := w.enc.EncodeString(f.name); err != nil {
			return err
		}
		if err := w.write(f.shape, v.FieldByIndex(f.index)); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) absent(f *field, v reflect.Value) bool {
	if !f.omit {
		return false
	}
	x := v.FieldByIndex(f.index)
	if w.canonical && x.Kind() == reflect.Slice {
		return x.Len() == 0
	}
	if w.canonical && f.shape.form == formStruct {
		for i := range f.shape.fields {
			if g := &f.shape.fields[i]; !w.absent(g, x) {
				return false
			}
		}
		return true
	}
	return x.IsZero()
}

func (w *writer) freeMap(s *shape, v reflect.Value) error {
	if v.Len() > MaxKeys {
		return fmt.Errorf("%w: a map of %d keys, at most %d", ErrInvalid, v.Len(), MaxKeys)
	}
	if err := w.enc.EncodeMapLen(v.Len()); err != nil {
		return err
	}
	keys := v.MapKeys()
	sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
	for _, k := range keys {
		if !utf8.ValidString(k.String()) { // replacing could make two keys one
			return fmt.Errorf("%w: key %q is not UTF-8", ErrInvalid, k.String())
		}
		if err := w.enc.EncodeString(k.String()); err != nil {
			return err
		}
		if err := w.write(s.elem, v.MapIndex(k)); err != nil {
			return err
		}
	}
	return nil
}

func floatBytes(v reflect.Value) []byte {
	b := make([]byte, 0, 8*v.Len())
	for i := range v.Len() {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Index(i).Float()))
	}
	return b
}
