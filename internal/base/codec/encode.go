package codec

import (
	"fmt"
	"io"
	"math/bits"
	"reflect"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// Writer encodes values by their shape. Canonical bytes leave out empty lists of optional fields,
// as if they were nil.
type Writer struct {
	to        io.Writer
	enc       *msgpack.Encoder // writes to the same writer, without a buffer
	canonical bool
	scratch   []byte // memory of the last list, for the next one
}

// Marshal returns the encoded struct that v points to, with its name and version.
func Marshal(name string, v any, canonical bool) ([]byte, error) {
	first := firstChunks.Get().(*[]byte)
	defer firstChunks.Put(first)
	b := chunks{last: (*first)[:0]} // join copies the bytes, so that first can be used again
	err := MarshalTo(&b, name, v, canonical)
	if err != nil {
		return nil, err
	}
	return b.join(), nil
}

// ArrayLen begins an array of n elements.
func (w *Writer) ArrayLen(n int) error { return w.enc.EncodeArrayLen(n) }

// Value encodes the value that v points to.
func (w *Writer) Value(v any) error {
	x := reflect.ValueOf(v).Elem()
	return w.write(shapeOf(x.Type()), x)
}

// firstChunks are buffers to begin with: most messages fit into one, and are copied out at their
// length.
var firstChunks = sync.Pool{New: func() any {
	b := make([]byte, 0, firstChunk)
	return &b
}}

// MarshalTo writes the bytes that Marshal returns. to should be an io.ByteWriter as well.
func MarshalTo(to io.Writer, name string, v any, canonical bool) error {
	w := &Writer{to: to, enc: msgpack.NewEncoder(to), canonical: canonical}
	value := reflect.ValueOf(v).Elem()
	return w.writeStruct(shapeOf(value.Type()), value, name)
}

// chunks is an io.Writer into chunks of growing size: bytes are copied once, at the end.
type chunks struct {
	full [][]byte
	last []byte // is being filled
}

// Sizes of the first and the largest chunk in bytes.
const (
	firstChunk = 64 << 10
	mostChunk  = 4 << 20
)

// Write appends b. It fills the last chunk before it begins another.
func (c *chunks) Write(b []byte) (int, error) {
	n := len(b)
	for len(c.last)+len(b) > cap(c.last) {
		free := cap(c.last) - len(c.last)
		c.last = append(c.last, b[:free]...)
		b = b[free:]
		c.grow()
	}
	c.last = append(c.last, b...)
	return n, nil
}

// WriteByte appends b.
func (c *chunks) WriteByte(b byte) error {
	if len(c.last) == cap(c.last) {
		c.grow()
	}
	c.last = append(c.last, b)
	return nil
}

// grow begins a new chunk of twice the size of the last, between firstChunk and mostChunk.
func (c *chunks) grow() {
	if len(c.last) > 0 {
		c.full = append(c.full, c.last)
	}
	c.last = make([]byte, 0, min(max(2*cap(c.last), firstChunk), mostChunk))
}

// join returns a copy of all bytes, and forgets the full chunks.
func (c *chunks) join() []byte {
	n := len(c.last)
	for _, b := range c.full {
		n += len(b)
	}

	joined := make([]byte, 0, n)
	for i, b := range c.full {
		joined = append(joined, b...)
		c.full[i] = nil
	}
	return append(joined, c.last...)
}

// write encodes v, whose shape is s. Lists of the usual types are written without reflection on each element. Nil is null.
func (w *Writer) write(s *shape, v reflect.Value) error {
	// Values that cannot be nil.
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
		return w.writeStruct(s, v, "")
	}

	if v.IsNil() {
		return w.enc.EncodeNil()
	}

	switch s.form {
	case formBytes:
		return w.enc.EncodeBytes(v.Bytes())
	case formFloats:
		if p, ok := pointerTo(v).(*[]float64); ok {
			return w.writeFloats(*p)
		}
		list := make([]float64, v.Len())
		for i := range list {
			list[i] = v.Index(i).Float()
		}
		return w.writeFloats(list)
	case formInts:
		return w.writeInts(v)
	case formSlice:
		return w.writeSlice(s, v)
	case formMap:
		return w.writeMap(s, v)
	case formStreamed:
		return v.Addr().Interface().(Streamed).Encode(w)
	}
	return w.write(s.elem, v.Elem()) // formPointer
}

// writeInts encodes v, a list of integers of any type, as an array.
func (w *Writer) writeInts(v reflect.Value) error {
	if p, ok := pointerTo(v).(*[]int); ok {
		w.scratch = AppendInts(w.scratch[:0], *p)
		return w.WriteEncoded(w.scratch)
	}
	if err := w.enc.EncodeArrayLen(v.Len()); err != nil {
		return err
	}
	for i := range v.Len() {
		if err := w.enc.EncodeInt(v.Index(i).Int()); err != nil {
			return err
		}
	}
	return nil
}

// writeSlice encodes v, a slice of any other type, as an array of its elements.
func (w *Writer) writeSlice(s *shape, v reflect.Value) error {
	if err := w.enc.EncodeArrayLen(v.Len()); err != nil {
		return err
	}
	if p, ok := pointerTo(v).(*[][]float64); ok && s.elem.form == formFloats {
		for _, list := range *p {
			if err := w.writeFloats(list); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range v.Len() {
		if err := w.write(s.elem, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// writeStruct encodes a struct as a map without its absent fields. If name is not empty, v is a whole message, and the map begins with its
// name and version.
func (w *Writer) writeStruct(s *shape, v reflect.Value, name string) error {
	var present uint64 // bit i is set if field i is written
	for i := range s.fields {
		if !w.isAbsent(&s.fields[i], v) {
			present |= 1 << i
		}
	}
	keys := bits.OnesCount64(present)
	if name != "" {
		keys += 2
	}
	if err := w.enc.EncodeMapLen(keys); err != nil {
		return err
	}

	if name != "" {
		if err := w.enc.EncodeMulti(keyName, name, keyVersion, int(Version)); err != nil {
			return err
		}
	}

	for i := range s.fields {
		if present>>i&1 == 0 {
			continue
		}
		f := &s.fields[i]
		if _, err := w.to.Write(f.key); err != nil {
			return err
		}
		if err := w.write(f.shape, f.valueIn(v)); err != nil {
			return err
		}
	}
	return nil
}

// isAbsent reports whether field f of v is left out: an optional one with the zero value. In canonical bytes an empty list, and a struct
// all of whose fields are absent, are left out as well.
func (w *Writer) isAbsent(f *field, v reflect.Value) bool {
	if !f.isOptional {
		return false
	}
	x := f.valueIn(v)
	if w.canonical && x.Kind() == reflect.Slice {
		return x.Len() == 0
	}

	if w.canonical && f.shape.form == formStruct {
		for i := range f.shape.fields {
			if !w.isAbsent(&f.shape.fields[i], x) {
				return false
			}
		}
		return true
	}
	return x.IsZero()
}

// writeMap encodes a map with its keys in order, so that equal maps have equal bytes.
func (w *Writer) writeMap(s *shape, v reflect.Value) error {
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

// writeFloats encodes a list of floats as little-endian bytes, nil as null.
func (w *Writer) writeFloats(list []float64) error {
	w.scratch = AppendFloats(w.scratch[:0], list)
	return w.WriteEncoded(w.scratch)
}

// pointerTo returns a pointer to the variable that v stands for, nil if v is no variable. If its type is known, the value can be read
// through it without reflection.
func pointerTo(v reflect.Value) any {
	if !v.CanAddr() {
		return nil
	}
	return v.Addr().Interface()
}
