package codec

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"reflect"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// Writer writes values in the form of their shape. Canonical bytes take empty lists for absent ones.
type Writer struct {
	enc       *msgpack.Encoder
	canonical bool
	scratch   []byte // of a list of floats
}

// Marshal returns the bytes of the struct v points to, under its name and version.
func Marshal(name string, v any, canonical bool) ([]byte, error) {
	first := firstChunks.Get().(*[]byte)
	defer firstChunks.Put(first)
	b := chunks{last: (*first)[:0]}
	err := MarshalTo(&b, name, v, canonical)
	if err != nil {
		return nil, err
	}
	return b.join(), nil
}

// ArrayLen begins a list of n elements.
func (w *Writer) ArrayLen(n int) error { return w.enc.EncodeArrayLen(n) }

// Value writes what v points to.
func (w *Writer) Value(v any) error {
	x := reflect.ValueOf(v).Elem()
	return w.write(shapeOf(x.Type()), x)
}

// firstChunks are chunks to begin with: most messages fit one, and leave a copy of their own length behind.
var firstChunks = sync.Pool{New: func() any { b := make([]byte, 0, firstChunk); return &b }}

// MarshalTo writes what marshal returns. to should be an io.ByteWriter, too.
func MarshalTo(to io.Writer, name string, v any, canonical bool) error {
	w := &Writer{enc: msgpack.NewEncoder(to), canonical: canonical, scratch: []byte{}} // nil would be written as null
	value := reflect.ValueOf(v).Elem()
	return w.object(shapeOf(value.Type()), value, name)
}

// chunks is what was written, in chunks of growing size: nothing is copied before the end, and once then.
type chunks struct {
	full [][]byte
	last []byte
}

const (
	firstChunk = 64 << 10
	mostChunk  = 4 << 20
)

func (c *chunks) Write(b []byte) (int, error) {
	n := len(b)
	for len(c.last)+len(b) > cap(c.last) {
		fits := cap(c.last) - len(c.last)
		c.last = append(c.last, b[:fits]...)
		b = b[fits:]
		c.grow()
	}
	c.last = append(c.last, b...)
	return n, nil
}

func (c *chunks) WriteByte(b byte) error {
	if len(c.last) == cap(c.last) {
		c.grow()
	}
	c.last = append(c.last, b)
	return nil
}

func (c *chunks) grow() {
	if len(c.last) > 0 {
		c.full = append(c.full, c.last)
	}
	c.last = make([]byte, 0, min(max(2*cap(c.last), firstChunk), mostChunk))
}

// join returns a copy of everything, and forgets it.
func (c *chunks) join() []byte {
	n := len(c.last)
	for _, b := range c.full {
		n += len(b)
	}
	out := make([]byte, 0, n)
	for i, b := range c.full {
		out = append(out, b...)
		c.full[i] = nil
	}
	return append(out, c.last...)
}

func (w *Writer) write(s *shape, v reflect.Value) error {
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
		w.scratch = appendFloats(w.scratch[:0], v)
		return w.enc.EncodeBytes(w.scratch)
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
	case formStreamed:
		return v.Addr().Interface().(Streamed).Encode(w)
	}
	return w.write(s.elem, v.Elem()) // formPointer
}

// object writes a struct, its absent fields left out. An outermost one has a name and gets the common keys.
func (w *Writer) object(s *shape, v reflect.Value, name string) error {
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

func (w *Writer) absent(f *field, v reflect.Value) bool {
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

func (w *Writer) freeMap(s *shape, v reflect.Value) error {
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

func appendFloats(b []byte, v reflect.Value) []byte {
	for i := range v.Len() {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Index(i).Float()))
	}
	return b
}
