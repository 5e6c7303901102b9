package circuit

// Building a circuit from the leaves up.

import (
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Node is a node of a circuit that is being built. It is valid only for the builder that made it.
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

// Builder makes a circuit. Equal nodes are made once, by a hash table. Its memory is bounded: once the limit is reached it is IsFull, and
// every node that it returns is Zero. It is for one goroutine.
type Builder struct {
	domains []int
	offsets []int32
	limit   int64 // bytes
	full    bool
	err     error // the first error

	kinds []kind  // by node
	ends  []int32 // by node: the end of its arguments in args
	// args are the arguments of all nodes, one after the other: of a leaf the number of its weight, of a number its position in numbers, of
	// a sum or product its children in increasing order.
	args    []int32
	numbers []scaled.Number
	table   []int32 // the hash table: a slot is 0 or a node; at least twice as many slots as nodes
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
	b.push(kindZero, 0)  // node Zero, number 0: it is not put into the hash table, in which 0 marks an empty slot
	b.Number(scaled.One) // node One
	return b
}

// offsetsOf returns, by variable, how many values the variables before it have, and at the end the number of all values. Domains 2, 3
// have the offsets 0, 2, 5. It returns nil if a domain is empty, or there are too many values.
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

// IsFull reports whether the memory limit was reached. Nodes made since then are Zero, and Finish returns an error.
func (b *Builder) IsFull() bool { return b.full }

// Bytes returns the memory of the builder's arrays.
func (b *Builder) Bytes() int64 {
	return int64(cap(b.kinds)) + 4*int64(cap(b.ends)+cap(b.args)+len(b.table)) + numberBytes*int64(cap(b.numbers)) +
		12*int64(len(b.domains))
}

// Leaf returns the leaf λ_v(a), the weight of value a of variable v.
func (b *Builder) Leaf(v, a int) Node {
	if b.offsets == nil || v < 0 || v >= len(b.domains) || a < 0 || a >= b.domains[v] {
		b.fail("there is no value %d of variable %d", a, v)
		return Zero
	}
	return b.makeTerminal(kindLeaf, b.offsets[v]+int32(a))
}

// Number returns the node of a number x ≥ 0. Equal numbers have one node; that of 0 is Zero. It also returns Zero, with an error at Finish,
// if x is negative or out of range.
func (b *Builder) Number(x scaled.Number) Node {
	if x.IsZero() {
		return Zero
	}
	if !(x.Mant > 0) || !x.IsFinite() || x.Exp > maxExponent || x.Exp < -maxExponent {
		b.fail("the number %v·2^%d", x.Mant, x.Exp)
		return Zero
	}
	if !reserve(b, &b.numbers, 1, numberBytes) {
		return Zero
	}
	// Add the number, and remove it again if an equal one has a node.
	b.numbers = append(b.numbers, scaled.Make(x.Mant, x.Exp))
	n := b.makeTerminal(kindNumber, int32(len(b.numbers)-1))
	if isNew := int(n) == len(b.kinds)-1; !isNew {
		b.numbers = b.numbers[:len(b.numbers)-1]
	}
	return n
}

// maxExponent is the largest absolute exponent of a number, so that no sum of exponents overflows.
const maxExponent = 1 << 24

// Product returns the product of children that share no variable. It multiplies numbers among them into one. The product of no children is
// One.
func (b *Builder) Product(children ...Node) Node {
	if slices.Contains(children, Zero) || b.full {
		return Zero
	}

	// Write the children that are not numbers to the end of args, and multiply the numbers.
	start := len(b.args)
	number := scaled.One
	for _, c := range children {
		switch {
		case c == One:
		case b.kinds[c] == kindNumber:
			number = number.Mul(b.numbers[b.args[b.start(c)]])
		case !reserve(b, &b.args, 1, 4): // no memory for an argument of 4 bytes
			return Zero
		default:
			b.args = append(b.args, int32(c))
		}
	}

	// Insert the node of the number before the children. Making it appends to b.args, too, so they are taken off and appended again.
	if number != scaled.One {
		nodes := slices.Clone(b.args[start:])
		b.args = b.args[:start]
		n := b.Number(number)
		start = len(b.args)
		if !reserve(b, &b.args, len(nodes)+1, 4) {
			return Zero
		}
		b.args = append(append(b.args, int32(n)), nodes...)
	}
	if len(b.args) == start {
		return One
	}
	return b.intern(kindProduct, start)
}

// Sum returns the sum of children over the same variables. It leaves out children that are Zero. The sum of no children is Zero. The
// arguments are collected at the end of b.args; intern makes the node, or returns an equal one and removes them.
func (b *Builder) Sum(children ...Node) Node {
	if b.full {
		return Zero
	}
	start := len(b.args)
	if !reserve(b, &b.args, len(children), 4) {
		return Zero
	}
	for _, c := range children {
		if c != Zero {
			b.args = append(b.args, int32(c))
		}
	}
	if len(b.args) == start {
		return Zero
	}
	return b.intern(kindSum, start)
}

// SumOfValues returns Σ λ_v(a) over the values a of v in allowed, where λ_v(a) is the leaf of value a. No value may be in allowed twice. If
// allowed is nil, it is the sum over all values. If there is no variable v, it returns Zero and the builder fails.
func (b *Builder) SumOfValues(v int, allowed []int) Node {
	if b.offsets == nil || v < 0 || v >= len(b.domains) { // offsets are nil if the domains are not valid
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

// makeTerminal returns the node of a leaf, whose argument is the number of its weight, or of a number, whose argument is its position in
// b.numbers.
func (b *Builder) makeTerminal(k kind, arg int32) Node {
	if b.full || !reserve(b, &b.args, 1, 4) {
		return Zero
	}
	b.args = append(b.args, arg)
	return b.intern(k, len(b.args)-1)
}

// intern returns the node of kind k whose arguments are b.args[start:]. If there is an equal node, it returns that one and removes the
// arguments from b.args; otherwise it makes the node. A product or a sum of one child is that child.
func (b *Builder) intern(k kind, start int) Node {
	args := b.args[start:]
	if k >= kindProduct { // a product or a sum
		if len(args) == 1 {
			b.args = b.args[:start]
			return Node(args[0])
		}
		slices.Sort(args)
	}
	slot := b.slotOf(k, args)
	if n := b.table[slot]; n != 0 {
		b.args = b.args[:start]
		return Node(n)
	}
	n := b.push(k, slot)
	if n == Zero { // no memory
		b.args = b.args[:start]
	}
	return n
}

// slotOf returns the slot of the hash table that has the node of kind k with these arguments. If there is no such node, it returns the
// empty slot for it. The size of the table is a power of two. An empty slot is 0, the number of node Zero, which is not in the table.
func (b *Builder) slotOf(k kind, args []int32) int {
	mask := uint64(len(b.table) - 1)
	for slot := b.hash(k, args) & mask; ; slot = (slot + 1) & mask {
		n := b.table[slot]
		if n == 0 || b.kinds[n] == k && b.hasArguments(k, Node(n), args) {
			return int(slot)
		}
	}
}

// hasArguments reports whether node n, of kind k, has these arguments. Numbers are compared by value.
func (b *Builder) hasArguments(k kind, n Node, args []int32) bool {
	if k == kindNumber {
		return b.numbers[b.args[b.start(n)]] == b.numbers[args[0]]
	}
	return slices.Equal(b.args[b.start(n):b.ends[n]], args)
}

// hash returns a hash of a kind and its arguments. That of a number depends on its value.
func (b *Builder) hash(k kind, args []int32) uint64 {
	h := uint64(k) * 0x9e3779b97f4a7c15 // 2^64 / golden ratio, to spread the kinds
	if k == kindNumber {
		x := b.numbers[args[0]]
		return mix(mix(h^math.Float64bits(x.Mant)) ^ uint64(x.Exp))
	}
	for _, a := range args {
		h = mix(h ^ uint64(uint32(a)))
	}
	return h
}

// mix returns a hash of h, by the finaliser of SplitMix64.
func mix(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// push makes a node of kind k and enters it in an empty slot of the hash table. Its arguments were appended to b.args before: they are
// those behind the arguments of the last node. It returns Zero if there is no memory.
func (b *Builder) push(k kind, slot int) Node {
	if len(b.args) > math.MaxInt32-1 || !reserve(b, &b.kinds, 1, 1) || !reserve(b, &b.ends, 1, 4) { // one entry of 1 byte, one of 4
		b.full = true
		return Zero
	}
	b.kinds = append(b.kinds, k)
	b.ends = append(b.ends, int32(len(b.args)))
	n := Node(len(b.kinds) - 1)
	b.table[slot] = int32(n)
	if 2*len(b.kinds) > len(b.table) { // at most half of the slots are taken
		b.rehash()
	}
	return n
}

// rehash doubles the hash table and enters all nodes again. If there is no memory for that, the builder is full.
func (b *Builder) rehash() {
	if b.Bytes()+8*int64(len(b.table)) > b.limit { // a table of twice the size, 4 bytes a slot, beside the present one
		b.full = true
		return
	}
	b.table = make([]int32, 2*len(b.table))
	for n := 1; n < len(b.kinds); n++ {
		b.table[b.slotOf(b.kinds[n], b.args[b.start(Node(n)):b.ends[n]])] = int32(n)
	}
}

// start returns the position in args at which a node's arguments begin.
func (b *Builder) start(n Node) int32 {
	if n == 0 {
		return 0
	}
	return b.ends[n-1]
}

// reserve makes sure that a list has capacity for n more entries of entryBytes bytes each. It returns false if the builder's memory limit
// does not allow that; then the builder is full. While entries are copied, the old array (part of b.Bytes) and the new one exist together
// and have to fit. So if doubling the list would exceed the limit, it grows by an eighth.
func reserve[T any](b *Builder, list *[]T, n, entryBytes int) bool {
	if b.full {
		return false
	}
	length := len(*list)
	if length+n <= cap(*list) {
		return true
	}
	for _, growth := range []int{max(length, firstNodes), length / 8} {
		capacity := length + max(growth, n)
		if b.Bytes()+int64(capacity)*int64(entryBytes) <= b.limit {
			grown := make([]T, length, capacity)
			copy(grown, *list)
			*list = grown
			return true
		}
	}
	b.full = true
	return false
}

// fail records an error that Finish returns. The first one stays.
func (b *Builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("%w: "+format, append([]any{ErrCircuit}, args...)...)
	}
}
