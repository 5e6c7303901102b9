package circuit

// Building a circuit from the leaves up.

import (
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Node is a node of a circuit that is being built. It means nothing to another builder.
type Node int32

// The nodes that every builder has.
const (
	Zero Node = 0
	One  Node = 1
)

// kind is the kind of a node.
type kind uint8

const (
	kindZero kind = iota
	kindLeaf
	kindNumber
	kindProduct
	kindSum
)

// Builder makes a circuit. Equal nodes are made once. Its memory is bounded: once the limit is reached it is Full, and
// every node that it returns is Zero. It is for one goroutine.
type Builder struct {
	domains []int
	offsets []int32
	limit   int64
	full    bool
	err     error // the first thing that was wrong

	// By node: its kind, and where its arguments end. A leaf has the number of its weight, a number its place among the
	// numbers, others have their children.
	kinds   []kind
	ends    []int32
	args    []int32
	numbers []scaled.Number
	table   []int32 // of hashes: 0, or a node; twice as many places as nodes at least
}

const (
	nodeBytes   = 5  // of kinds and ends
	numberBytes = 16 // of a number
	firstNodes  = 64
)

// NewBuilder returns a builder of circuits over variables of these domains, all ≥ 1, whose arrays take at most limit bytes;
// 0 means no limit.
func NewBuilder(domains []int, limit int64) *Builder {
	b := &Builder{domains: slices.Clone(domains), offsets: offsetsOf(domains), limit: limit}
	if limit == 0 {
		b.limit = math.MaxInt64
	}
	b.table = make([]int32, 2*firstNodes)
	b.push(kindZero, 0)
	b.Number(scaled.One)
	return b
}

// offsetsOf adds domains up; nil where there are too many values.
func offsetsOf(domains []int) []int32 {
	offsets := make([]int32, len(domains)+1)
	total := 0
	for v, d := range domains {
		if total += d; d < 1 || total > math.MaxInt32/4 {
			return nil
		}
		offsets[v+1] = int32(total)
	}
	return offsets
}

// Full reports whether the limit was reached: nodes made since are Zero, and there will be no circuit.
func (b *Builder) Full() bool { return b.full }

// Bytes returns the builder's memory.
func (b *Builder) Bytes() int64 {
	return int64(cap(b.kinds)) + 4*int64(cap(b.ends)+cap(b.args)+len(b.table)) + numberBytes*int64(cap(b.numbers)) +
		12*int64(len(b.domains))
}

// Leaf returns λ_v(a).
func (b *Builder) Leaf(v, a int) Node {
	if b.offsets == nil || v < 0 || v >= len(b.domains) || a < 0 || a >= b.domains[v] {
		b.fail("there is no value %d of variable %d", a, v)
		return Zero
	}
	return b.make(kindLeaf, b.offsets[v]+int32(a))
}

// Number returns x ≥ 0.
func (b *Builder) Number(x scaled.Number) Node {
	if x.IsZero() {
		return Zero
	}
	if !(x.Mant > 0) || !x.IsFinite() || x.Exp > maxExponent || x.Exp < -maxExponent {
		b.fail("the number %v·2^%d", x.Mant, x.Exp)
		return Zero
	}
	if !room(b, &b.numbers, 1, numberBytes) {
		return Zero
	}
	b.numbers = append(b.numbers, scaled.Make(x.Mant, x.Exp))
	n := b.make(kindNumber, int32(len(b.numbers)-1))
	if int(n) != len(b.kinds)-1 { // it was there already
		b.numbers = b.numbers[:len(b.numbers)-1]
	}
	return n
}

// maxExponent bounds the exponents of numbers, so that no sum of exponents overflows.
const maxExponent = 1 << 24

// Product returns the product of children that share no variable. Numbers among them become one.
func (b *Builder) Product(children ...Node) Node {
	if slices.Contains(children, Zero) || b.full {
		return Zero
	}
	from := len(b.args)
	x := scaled.One
	for _, c := range children {
		switch {
		case c == One:
		case b.kinds[c] == kindNumber:
			x = x.Mul(b.numbers[b.args[b.start(c)]])
		case !room(b, &b.args, 1, 4):
			return Zero
		default:
			b.args = append(b.args, int32(c))
		}
	}
	if x != scaled.One {
		own := slices.Clone(b.args[from:]) // the number's argument comes in between
		b.args = b.args[:from]
		n := b.Number(x)
		from = len(b.args)
		if !room(b, &b.args, len(own)+1, 4) {
			return Zero
		}
		b.args = append(append(b.args, int32(n)), own...)
	}
	if len(b.args) == from {
		return One
	}
	return b.intern(kindProduct, from)
}

// Sum returns the sum of children over the same variables. A child that is Zero adds nothing.
func (b *Builder) Sum(children ...Node) Node {
	if b.full {
		return Zero
	}
	from := len(b.args)
	if !room(b, &b.args, len(children), 4) {
		return Zero
	}
	for _, c := range children {
		if c != Zero {
			b.args = append(b.args, int32(c))
		}
	}
	if len(b.args) == from {
		return Zero
	}
	return b.intern(kindSum, from)
}

// Free returns Σ λ_v(a) over some values of v, which are different; nil means all.
func (b *Builder) Free(v int, allowed []int) Node {
	if b.offsets == nil || v < 0 || v >= len(b.domains) {
		b.fail("there is no variable %d", v)
		return Zero
	}
	leaves := make([]Node, 0, b.domains[v])
	if allowed == nil {
		for a := range b.domains[v] {
			leaves = append(leaves, b.Leaf(v, a))
		}
	}
	for _, a := range allowed {
		leaves = append(leaves, b.Leaf(v, a))
	}
	return b.Sum(leaves...)
}

// make returns the leaf or the number with this argument.
func (b *Builder) make(k kind, arg int32) Node {
	if b.full || !room(b, &b.args, 1, 4) {
		return Zero
	}
	b.args = append(b.args, arg)
	return b.intern(k, len(b.args)-1)
}

// intern returns the node of a kind whose arguments are the last ones, from a place on: they are removed where it exists.
// A product or a sum of one child is that child.
func (b *Builder) intern(k kind, from int) Node {
	own := b.args[from:]
	if k >= kindProduct {
		if len(own) == 1 {
			b.args = b.args[:from]
			return Node(own[0])
		}
		slices.Sort(own)
	}
	at := b.find(k, own)
	if n := b.table[at]; n != 0 {
		b.args = b.args[:from]
		return Node(n)
	}
	n := b.push(k, at)
	if n == Zero {
		b.args = b.args[:from]
	}
	return n
}

// find returns the place of a node in the table, or that where it would be.
func (b *Builder) find(k kind, own []int32) int {
	mask := uint64(len(b.table) - 1)
	for at := b.hash(k, own) & mask; ; at = (at + 1) & mask {
		n := b.table[at]
		if n == 0 || b.kinds[n] == k && b.same(k, Node(n), own) {
			return int(at)
		}
	}
}

// same reports whether node n, of kind k, has these arguments; numbers are compared by value.
func (b *Builder) same(k kind, n Node, own []int32) bool {
	if k == kindNumber {
		return b.numbers[b.args[b.start(n)]] == b.numbers[own[0]]
	}
	return slices.Equal(b.args[b.start(n):b.ends[n]], own)
}

// hash mixes a kind and its arguments.
func (b *Builder) hash(k kind, own []int32) uint64 {
	h := uint64(k) * 0x9e3779b97f4a7c15
	if k == kindNumber {
		x := b.numbers[own[0]]
		return mix(mix(h^math.Float64bits(x.Mant)) ^ uint64(x.Exp))
	}
	for _, a := range own {
		h = mix(h ^ uint64(uint32(a)))
	}
	return h
}

// mix is the finaliser of SplitMix64.
func mix(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// push makes a node of the last arguments, which the table has at a place; Zero where there is no room.
func (b *Builder) push(k kind, at int) Node {
	if len(b.args) > math.MaxInt32-1 || !room(b, &b.kinds, 1, 1) || !room(b, &b.ends, 1, 4) {
		b.full = true
		return Zero
	}
	b.kinds = append(b.kinds, k)
	b.ends = append(b.ends, int32(len(b.args)))
	n := Node(len(b.kinds) - 1)
	b.table[at] = int32(n)
	if 2*len(b.kinds) > len(b.table) {
		b.rehash()
	}
	return n
}

// rehash doubles the table.
func (b *Builder) rehash() {
	if b.Bytes()+8*int64(len(b.table)) > b.limit {
		b.full = true
		return
	}
	b.table = make([]int32, 2*len(b.table))
	for n := 1; n < len(b.kinds); n++ {
		b.table[b.find(b.kinds[n], b.args[b.start(Node(n)):b.ends[n]])] = int32(n)
	}
}

// start is where a node's arguments begin.
func (b *Builder) start(n Node) int32 {
	if n == 0 {
		return 0
	}
	return b.ends[n-1]
}

// room makes room for n more entries of some bytes each, within the limit also while old and new array are both there. Where there is
// none the builder is full.
func room[T any](b *Builder, list *[]T, n, bytes int) bool {
	if b.full {
		return false
	}
	l := len(*list)
	if l+n <= cap(*list) {
		return true
	}
	for _, more := range []int{max(l, firstNodes), l / 8} {
		to := l + max(more, n)
		if b.Bytes()+int64(to)*int64(bytes) <= b.limit {
			grown := make([]T, l, to)
			copy(grown, *list)
			*list = grown
			return true
		}
	}
	b.full = true
	return false
}

// fail keeps the first error.
func (b *Builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("%w: "+format, append([]any{ErrCircuit}, args...)...)
	}
}
