package trees

// Projectors as bytes.

import (
	"errors"
	"math"

	"github.com/basetensor/basetensor/internal/base/codec"
)

// encoding is the name of projectors as bytes.
const encoding = "projectors"

var errEncoding = errors.New("trees: these bytes are no projectors")

// MarshalBinary writes the projectors' fields.
func (p *Projectors) MarshalBinary() ([]byte, error) { return codec.Marshal(encoding, p, true) }

// UnmarshalBinary reads the bytes of MarshalBinary. It allocates no more than a few times the bytes it is given.
func (p *Projectors) UnmarshalBinary(b []byte) error {
	var out Projectors
	if err := codec.Unmarshal(encoding, b, len(b), &out); err != nil {
		return err
	}
	for _, q := range out.Pairs {
		if q.Rows < 1 || q.Cols < 1 || q.Rows > math.MaxInt32 || q.Cols > math.MaxInt32 ||
			len(q.Left) != q.Rows*q.Cols || len(q.Right) != len(q.Left) {
			return errEncoding
		}
	}
	*p = out
	return nil
}
