package circuit

// Circuits as bytes.

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// formVersion is the first byte.
const formVersion = 1

// Append appends the circuit to b. Equal circuits have equal bytes:
//
//	version, number of variables, domains, number of numbers, their mantissas and exponents, 1 + the root, number of nodes,
//	and of each 2 · its children + 1 where it is a product, and the distance back to each child
//
// Integers are varints, mantissas 8 bytes, little endian. Linear time; two to three bytes an edge.
func (c *Circuit) Append(b []byte) []byte {
	b = append(b, formVersion)
	b = binary.AppendUvarint(b, uint64(len(c.domains)))
	for _, d := range c.domains {
		b = binary.AppendUvarint(b, uint64(d))
	}
	b = binary.AppendUvarint(b, uint64(len(c.numbers)))
	for _, x := range c.numbers {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x.Mant))
		b = binary.AppendVarint(b, x.Exp)
	}
	b = binary.AppendUvarint(b, uint64(c.root+1))
	b = binary.AppendUvarint(b, uint64(len(c.ends)))
	for i := range c.ends {
		children := c.of(i)
		head := 2 * uint64(len(children))
		if c.products[i] {
			head++
		}
		b = binary.AppendUvarint(b, head)
		for _, n := range children {
			b = binary.AppendUvarint(b, uint64(int32(c.first()+i)-n))
		}
	}
	return b
}

// Decode reads the bytes of Append. It takes at most some 16 times the memory of any bytes, and checks everything that Check
// does. Errors wrap ErrCircuit, or are the context's. Linear time.
func Decode(ctx context.Context, b []byte) (*Circuit, error) {
	look := pace.New(ctx)
	r := reader{rest: b}
	if v := r.count(math.MaxInt32); v != formVersion {
		return nil, fmt.Errorf("%w: version %d, %d is known", ErrCircuit, v, formVersion)
	}
	c := &Circuit{domains: make([]int, r.list(1))}
	for v := range c.domains {
		c.domains[v] = r.count(math.MaxInt32)
	}
	if c.offsets = offsetsOf(c.domains); c.offsets == nil {
		return nil, fmt.Errorf("%w: domains", ErrCircuit)
	}
	if c.leaves() > maxLeavesPerByte*len(b) {
		return nil, fmt.Errorf("%w: %d values of variables in %d bytes", ErrCircuit, c.leaves(), len(b))
	}

	c.numbers = make([]scaled.Number, r.list(9))
	for k := range c.numbers {
		c.numbers[k] = r.number()
	}
	c.root = int32(r.count(math.MaxInt32)) - 1
	c.ends = make([]int32, r.list(3))
	c.products = make([]bool, len(c.ends))
	for i := range c.ends {
		before := len(r.rest)
		r.node(c, i)
		if look.Over(int64(before - len(r.rest))) {
			return nil, look.Err()
		}
	}
	if r.err == nil && len(r.rest) > 0 {
		r.fail("%d bytes are left", len(r.rest))
	}
	if r.err != nil {
		return nil, r.err
	}
	c.children = slices.Clip(c.children)
	return c, c.Check(ctx)
}

// maxLeavesPerByte bounds the values of variables by the bytes that name them: a variable of a large domain is
// named in few, but a circuit over it has a leaf for most values.
const maxLeavesPerByte = 64

// reader reads, and keeps the first error; it returns 0 after one.
type reader struct {
	rest []byte
	err  error
}

// fail keeps the first error.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ErrCircuit}, args...)...)
		r.rest = nil
	}
}

// count reads an integer of at most most, in its shortest form.
func (r *reader) count(most uint64) int {
	x, n := binary.Uvarint(r.rest)
	if n <= 0 || x > most || n > 1 && r.rest[n-1] == 0 {
		r.fail("an integer of at most %d is missing", most)
		return 0
	}
	r.rest = r.rest[n:]
	return int(x)
}

// list reads the number of following entries, each of some bytes at least.
func (r *reader) list(bytes int) int {
	n := r.count(math.MaxInt32)
	if n > len(r.rest)/bytes {
		r.fail("%d entries in %d bytes", n, len(r.rest))
		return 0
	}
	return n
}

// number reads a number > 0, normalised.
func (r *reader) number() scaled.Number {
	if len(r.rest) < 9 {
		r.fail("a number is missing")
		return scaled.Number{}
	}
	m := math.Float64frombits(binary.LittleEndian.Uint64(r.rest))
	e, n := binary.Varint(r.rest[8:])
	if n <= 0 || n > 1 && r.rest[7+n] == 0 || !(m >= 1 && m < 2) || e > maxExponent || e < -maxExponent {
		r.fail("a number is not normalised, or out of range")
		return scaled.Number{}
	}
	r.rest = r.rest[8+n:]
	return scaled.Number{Mant: m, Exp: e}
}

// node reads sum or product i.
func (r *reader) node(c *Circuit, i int) {
	head := r.count(math.MaxInt32)
	if head/2 > len(r.rest) {
		r.fail("%d children in %d bytes", head/2, len(r.rest))
	}
	if r.err != nil {
		return
	}
	at := c.first() + i
	for range head / 2 {
		c.children = append(c.children, int32(at-r.count(uint64(at))))
	}
	c.ends[i] = int32(len(c.children))
	c.products[i] = head%2 == 1
}
