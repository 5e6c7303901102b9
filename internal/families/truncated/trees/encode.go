package trees

// Projectors as bytes.

import (
	"encoding/binary"
	"errors"
	"math"
)

// encoding begins the bytes of projectors: name and version.
const encoding = "BTNP\x01"

var errEncoding = errors.New("trees: these bytes are no projectors")

// MarshalBinary writes the bond, and every pair as rows, columns, residual, left and right:
// 8 bytes each, little-endian.
func (p *Projectors) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, int64(len(encoding))+8+p.Bytes())
	b = append(b, encoding...)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.Bond))
	for i := range p.Pairs {
		q := &p.Pairs[i]
		for _, x := range []uint64{uint64(q.Rows), uint64(q.Cols), math.Float64bits(q.Residual)} {
			b = binary.LittleEndian.AppendUint64(b, x)
		}
		for _, side := range [][]float64{q.Left, q.Right} {
			for _, x := range side {
				b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
			}
		}
	}
	return b, nil
}

// UnmarshalBinary reads what MarshalBinary wrote. It allocates no more than a few times the bytes it is given.
func (p *Projectors) UnmarshalBinary(b []byte) error {
	if len(b) < len(encoding)+8 || string(b[:len(encoding)]) != encoding {
		return errEncoding
	}
	b = b[len(encoding):]
	next := func() uint64 {
		x := binary.LittleEndian.Uint64(b)
		b = b[8:]
		return x
	}
	out := Projectors{Bond: int(next())}
	for len(b) > 0 {
		if len(b) < 24 {
			return errEncoding
		}
		rows, cols := next(), next()
		q := Projector{Rows: int(rows), Cols: int(cols), Residual: math.Float64frombits(next())}
		most := uint64(len(b)) / 16 // entries of one side that can be there
		if rows > most || cols > most || rows*cols > most {
			return errEncoding
		}
		for _, side := range []*[]float64{&q.Left, &q.Right} {
			*side = make([]float64, rows*cols)
			for i := range *side {
				(*side)[i] = math.Float64frombits(next())
			}
		}
		out.Pairs = append(out.Pairs, q)
	}
	*p = out
	return nil
}
