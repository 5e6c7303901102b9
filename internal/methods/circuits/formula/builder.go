package formula

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Memory of the parts of a formula, in bytes.
const (
	bytesPerClause   = 32
	bytesPerLiteral  = 4
	bytesPerEntry    = 8
	bytesPerVariable = 16
)

// builder adds factors to a formula.
type builder struct {
	f    Formula
	room int64 // bytes left
	pace *pace.Pace
	err  error  // the first one
	name string // of the factor at hand
}

// newBuilder starts a formula over these links. Memory bounds its size, in bytes.
func newBuilder(ctx context.Context, domains []int, memory int64) *builder {
	b := &builder{room: memory, pace: pace.New(ctx)}
	b.f = Formula{Links: len(domains), Scale: scaled.One, offsets: []int32{0}, Functional: []bool{}}
	for _, d := range domains {
		b.variable(d)
	}
	return b
}

// auxiliary adds a variable of d values.
func (b *builder) auxiliary(d int, functional bool) int {
	b.f.Functional = append(b.f.Functional, functional)
	return b.variable(d)
}

func (b *builder) variable(d int) int {
	b.take(bytesPerVariable)
	atoms := int64(b.f.offsets[len(b.f.Domains)]) + int64(d)
	if atoms > math.MaxInt32/4 {
		b.fail(fault.New(fault.OverBudget, "formula: more than %d values in all", math.MaxInt32/4))
		atoms, d = 0, 0
	}
	b.f.Domains = append(b.f.Domains, d)
	b.f.offsets = append(b.f.offsets, int32(atoms))
	return len(b.f.Domains) - 1
}

// take counts bytes, and fails where there are no more.
func (b *builder) take(bytes int64) bool {
	if b.room -= bytes; b.room < 0 {
		b.fail(fault.New(fault.OverBudget, "formula: %sthe formula takes more memory than the budget", b.at()))
	}
	return b.err == nil
}

// over counts work, and reports whether there is an error or the context has ended.
func (b *builder) over(work int) bool {
	if b.pace.Over(int64(work)) {
		b.fail(b.pace.Err())
	}
	return b.err != nil
}

func (b *builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// at says in an error which factor it is about.
func (b *builder) at() string {
	if b.name == "" {
		return ""
	}
	return b.name + ": "
}

// is and not are the literals of a value.
func (b *builder) is(v, a int) Literal  { return b.f.Literal(v, a) }
func (b *builder) not(v, a int) Literal { return b.f.Literal(v, a).Not() }

// clause adds a clause.
func (b *builder) clause(c []Literal) {
	if b.take(bytesPerClause + bytesPerLiteral*int64(len(c))) {
		b.f.Clauses = append(b.f.Clauses, c)
	}
}

// scale multiplies all by a number.
func (b *builder) scale(x scaled.Number) { b.f.Scale = b.f.Scale.Mul(x) }

// table adds a factor with these entries, at least 0 each: its zeros as clauses, its positive
// entries as tables.
func (b *builder) table(scope, dims []int, data []float64) {
	if b.over(len(data)) {
		return
	}
	scope, dims = choices(scope, dims)
	if len(scope) == 0 {
		if data[0] == 0 {
			b.clause([]Literal{})
		} else {
			b.scale(scaled.FromFloat(data[0]))
		}
		return
	}
	b.zeros(scope, dims, data)
	b.entries(scope, dims, data)
}

// choices leaves out variables of one value.
func choices(scope, dims []int) (left, of []int) {
	for k, d := range dims {
		if d > 1 {
			left, of = append(left, scope[k]), append(of, d)
		}
	}
	return left, of
}

// Exponents of the entries of one table relative to its largest.
const lowestExponent = -900

// numbers adds a factor whose entries, at least 0 each, may have any range. Those further apart than float64 holds become
// several tables whose product they are.
func (b *builder) numbers(scope, dims []int, list []scaled.Number) {
	top := int64(math.MinInt64)
	for _, x := range list {
		if !x.IsZero() {
			top = max(top, x.Exp)
		}
	}
	if top == math.MinInt64 {
		b.table(scope, dims, make([]float64, len(list)))
		return
	}

	data, rest := make([]float64, len(list)), make([]int64, len(list))
	left := false
	for i, x := range list {
		if x.IsZero() {
			continue
		}
		e := max(x.Exp-top, lowestExponent)
		rest[i] = x.Exp - top - e
		left = left || rest[i] < 0
		data[i] = math.Ldexp(x.Mant, int(e))
	}
	b.scale(scaled.Make(1, top))
	b.table(scope, dims, data)

	for left && !b.over(len(list)) {
		left = false
		for i, x := range list {
			if x.IsZero() {
				continue // excluded already
			}
			e := max(rest[i], lowestExponent)
			rest[i] -= e
			left = left || rest[i] < 0
			data[i] = math.Ldexp(1, int(e))
		}
		b.entries(scope, dims, data)
	}
}
