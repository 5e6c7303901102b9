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

// formVersion is the first byte of the form.
const formVersion = 1

// Append appends the encoded circuit to b and returns the longer slice. Equal circuits have equal bytes:
//
//	version, number of variables, domains, number of numbers, their mantissas and exponents, 1 + the root, number of nodes,
//	and of each node 2 · its number of children, plus 1 if it is a product, and the distance back to each child
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
		children := c.childrenOf(i)
		head := 2 * uint64(len(children))
		if c.products[i] {
			head++
		}
		b = binary.AppendUvarint(b, head)
		for _, n := range children { // children have smaller numbers
			b = binary.AppendUvarint(b, uint64(int32(c.firstNode()+i)-n))
		}
	}
	return b
}

// Decode returns the circuit that b encodes, as Append writes it. It checks all that Check does, and takes at most some 16 times the
// memory of b, whatever b is. Errors wrap ErrCircuit, or are the context's. Linear time.
func Decode(ctx context.Context, b []byte) (*Circuit, error) {
	look := pace.New(ctx)
	r := reader{remaining: b} // after an error it reads zeros; r.err is looked at in the end
	if v := r.integer(math.MaxInt32); v != formVersion {
		return nil, fmt.Errorf("%w: version %d, %d is known", ErrCircuit, v, formVersion)
	}
	c := &Circuit{domains: make([]int, r.length(1))} // at least 1 byte a domain: no list is allocated that b cannot fill
	for v := range c.domains {
		c.domains[v] = r.integer(math.MaxInt32)
	}
	if c.offsets = offsetsOf(c.domains); c.offsets == nil {
		return nil, fmt.Errorf("%w: domains", ErrCircuit)
	}
	if c.leaves() > maxLeavesPerByte*len(b) {
		return nil, fmt.Errorf("%w: %d values of variables in %d bytes", ErrCircuit, c.leaves(), len(b))
	}

	// Numbers, sums and products.
	c.numbers = make([]scaled.Number, r.length(9)) // at least 9 bytes each: a mantissa of 8 and an exponent
	for k := range c.numbers {
		c.numbers[k] = r.number()
	}
	c.root = int32(r.integer(math.MaxInt32)) - 1
	c.ends = make([]int32, r.length(3)) // at least 3 bytes a node: a head and two children
	c.products = make([]bool, len(c.ends))
	for i := range c.ends {
		bytesBefore := len(r.remaining)
		r.node(c, i)
		if look.Over(int64(bytesBefore - len(r.remaining))) {
			return nil, look.Err()
		}
	}

	if r.err == nil && len(r.remaining) > 0 {
		r.fail("%d bytes are left", len(r.remaining))
	}
	if r.err != nil {
		return nil, r.err
	}
	c.children = slices.Clip(c.children)
	return c, c.Check(ctx)
}

// maxLeavesPerByte is the largest number of values of variables for each byte of the form. The domain of a variable takes few bytes however
// large it is, but a circuit over the variable has a leaf for most values.
const maxLeavesPerByte = 64

// reader reads a form. After an error its methods return 0, and the first error stays.
type reader struct {
	remaining []byte
	err       error
}

// fail records an error and ends the reading: no bytes remain. The first error stays.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ErrCircuit}, args...)...)
		r.remaining = nil
	}
}

// integer reads a varint. It fails if the number is above limit, or not written in its shortest form, whose last byte is not 0.
func (r *reader) integer(limit uint64) int {
	x, n := binary.Uvarint(r.remaining) // n: its bytes; n ≤ 0: there is none
	if n <= 0 || x > limit || n > 1 && r.remaining[n-1] == 0 {
		r.fail("an integer of at most %d is missing", limit)
		return 0
	}
	r.remaining = r.remaining[n:]
	return int(x)
}

// length reads the number of entries of the list that follows. It fails if the remaining bytes are too few for entries of at least
// entryBytes bytes each.
func (r *reader) length(entryBytes int) int {
	n := r.integer(math.MaxInt32)
	if n > len(r.remaining)/entryBytes {
		r.fail("%d entries in %d bytes", n, len(r.remaining))
		return 0
	}
	return n
}

// number reads a number above 0: 8 bytes of a mantissa in [1, 2), then a varint of the exponent in its shortest form, whose last byte is
// not 0. It fails if the number is not written in this way.
func (r *reader) number() scaled.Number {
	if len(r.remaining) < 9 {
		r.fail("a number is missing")
		return scaled.Number{}
	}
	m := math.Float64frombits(binary.LittleEndian.Uint64(r.remaining))
	e, n := binary.Varint(r.remaining[8:])                 // n: its bytes
	isShortest := n == 1 || n > 1 && r.remaining[7+n] != 0 // n ≤ 0: no varint. The last byte is at 8 + n − 1
	if !isShortest || !(m >= 1 && m < 2) || e > maxExponent || e < -maxExponent {
		r.fail("a number is not normalised, or out of range")
		return scaled.Number{}
	}
	r.remaining = r.remaining[8+n:]
	return scaled.Number{Mant: m, Exp: e}
}

// node reads the i-th sum or product and adds it to the circuit: a head, 2 · the number of children, plus 1 for a product, then for each
// child how far its number is before that of the node.
func (r *reader) node(c *Circuit, i int) {
	head := r.integer(math.MaxInt32)
	childCount, isProduct := head/2, head%2 == 1
	if childCount > len(r.remaining) { // a child takes at least a byte
		r.fail("%d children in %d bytes", childCount, len(r.remaining))
	}
	if r.err != nil {
		return
	}
	node := c.firstNode() + i
	for range childCount {
		c.children = append(c.children, int32(node-r.integer(uint64(node))))
	}
	c.ends[i] = int32(len(c.children))
	c.products[i] = isProduct
}
