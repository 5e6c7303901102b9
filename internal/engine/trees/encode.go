package trees

// Projectors as bytes.

import (
	"encoding/binary"
	"errors"
)

// encoding begins the bytes of projectors: name and version.
const encoding = "BTNP\x01"

var errEncoding = errors.New("trees: these bytes are no projectors")

// header is the fixed part of a pair.
type header struct {
	Rows, Cols uint64
	Residual   float64
}

// MarshalBinary writes the bond, and every pair as rows, columns, residual, left and right: 8 bytes each, little-endian.
func (p *Projectors) MarshalBinary() ([]byte, error) {
	b := append(make([]byte, 0, int64(len(encoding))+8+p.Bytes()), encoding...)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.Bond))
	for i := range p.Pairs {
		q := &p.Pairs[i]
		for _, x := range []any{header{uint64(q.Rows), uint64(q.Cols), q.Residual}, q.Left, q.Right} {
			var err error
			if b, err = binary.Append(b, binary.LittleEndian, x); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// UnmarshalBinary reads the bytes of MarshalBinary. It allocates no more than a few times the bytes it is given.
func (p *Projectors) UnmarshalBinary(b []byte) error {
	if len(b) < len(encoding)+8 || string(b[:len(encoding)]) != encoding {
		return errEncoding
	}
	b = b[len(encoding):]
	out := Projectors{Bond: int(binary.LittleEndian.Uint64(b))}
	for b = b[8:]; len(b) > 0; {
		var h header
		n, err := binary.Decode(b, binary.LittleEndian, &h)
		if err != nil {
			return errEncoding
		}
		b = b[n:]
		most := uint64(len(b)) / 16 // entries of one side that can be there
		if h.Rows > most || h.Cols > most || h.Rows*h.Cols > most {
			return errEncoding
		}
		size := int(h.Rows * h.Cols)
		q := Projector{Rows: int(h.Rows), Cols: int(h.Cols), Residual: h.Residual, Left: make([]float64, size), Right: make([]float64, size)}
		for _, side := range [][]float64{q.Left, q.Right} {
			if n, err = binary.Decode(b, binary.LittleEndian, side); err != nil {
				return errEncoding
			}
			b = b[n:]
		}
		out.Pairs = append(out.Pairs, q)
	}
	*p = out
	return nil
}
