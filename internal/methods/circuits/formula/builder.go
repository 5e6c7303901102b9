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

// builder builds a formula factor by factor. After an error it adds nothing more.
type builder struct {
	f          Formula
	bytesLeft  int64
	pace       *pace.Pace
	err        error  // the first one
	factorName string // of the factor that is being added, for errors; "" if there is none
}

// newBuilder returns the builder of a formula whose first variables, which stand for variables of a network (links), have these domains.
// The formula may take memory bytes.
func newBuilder(ctx context.Context, domains []int, memory int64) *builder {
	b := &builder{bytesLeft: memory, pace: pace.New(ctx)}
	b.f = Formula{Links: len(domains), Scale: scaled.One, offsets: []int32{0}, Functional: []bool{}}
	for _, d := range domains {
		b.addVariable(d)
	}
	return b
}

// addAuxiliary adds an auxiliary variable with d values and returns its number. isFunctional reports whether the variables of the network
// (links) determine its value (Formula.Functional).
func (b *builder) addAuxiliary(d int, isFunctional bool) int {
	b.f.Functional = append(b.f.Functional, isFunctional)
	return b.addVariable(d)
}

// addVariable adds a variable with d values and returns its number. b.f.offsets has the first atom (value) of each variable, and one more
// entry for the number of all. Errors are kept in b.
func (b *builder) addVariable(d int) int {
	b.takeBytes(bytesPerVariable)
	atoms := int64(b.f.offsets[len(b.f.Domains)]) + int64(d)
	if atoms > math.MaxInt32/4 {
		b.fail(fault.New(fault.OverBudget, "formula: more than %d values in all", math.MaxInt32/4))
		atoms, d = 0, 0 // the builder has failed, so they are not used
	}
	b.f.Domains = append(b.f.Domains, d)
	b.f.offsets = append(b.f.offsets, int32(atoms))
	return len(b.f.Domains) - 1
}

// takeBytes takes memory for a part of the formula. The builder fails if less is left. It returns false after any error of the builder.
func (b *builder) takeBytes(bytes int64) bool {
	if b.bytesLeft -= bytes; b.bytesLeft < 0 {
		b.fail(fault.New(fault.OverBudget, "formula: %sthe formula takes more memory than the budget", b.errorPrefix()))
	}
	return b.err == nil
}

// isOver counts work, and reports whether to stop building: there was an error, or the context has ended.
func (b *builder) isOver(work int) bool {
	if b.pace.Over(int64(work)) {
		b.fail(b.pace.Err())
	}
	return b.err != nil
}

// fail records an error, after which nothing more is built. The first one stays.
func (b *builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// errorPrefix returns the name of the factor for the beginning of an error text, "" if no factor is being added.
func (b *builder) errorPrefix() string {
	if b.factorName == "" {
		return ""
	}
	return b.factorName + ": "
}

// is returns the literal that variable v has the value a.
func (b *builder) is(v, a int) Literal { return b.f.Literal(v, a) }

// isNot returns the literal that variable v has not the value a.
func (b *builder) isNot(v, a int) Literal { return b.f.Literal(v, a).Not() }

// addClause adds a clause, a disjunction of literals, if there is memory for it. The builder keeps c.
func (b *builder) addClause(c []Literal) {
	if b.takeBytes(bytesPerClause + bytesPerLiteral*int64(len(c))) {
		b.f.Clauses = append(b.f.Clauses, c)
	}
}

// multiplyScale multiplies the scale of the formula by x.
func (b *builder) multiplyScale(x scaled.Number) { b.f.Scale = b.f.Scale.Mul(x) }

// addTable adds a factor with the entries data, none below 0, row-major over scope: its zeros as clauses that exclude them, its positive
// entries as tables.
func (b *builder) addTable(scope, dims []int, data []float64) {
	if b.isOver(len(data)) {
		return
	}
	scope, dims = withoutConstants(scope, dims)
	if len(scope) == 0 { // a number
		if data[0] == 0 {
			b.addClause([]Literal{}) // never holds, so the formula is 0
		} else {
			b.multiplyScale(scaled.FromFloat(data[0]))
		}
		return
	}
	b.excludeZeros(scope, dims, data)
	b.addEntries(scope, dims, data)
}

// withoutConstants returns a scope and its dimensions without the variables of one value.
func withoutConstants(scope, dims []int) (varying, varyingDims []int) {
	for k, d := range dims {
		if d > 1 {
			varying, varyingDims = append(varying, scope[k]), append(varyingDims, d)
		}
	}
	return varying, varyingDims
}

// lowestExponent is the smallest exponent of an entry of a table relative to its largest entry.
const lowestExponent = -900

// addNumbers adds a factor with the entries in list, none below 0 and of any range, row-major over scope. The scale takes the largest
// exponent of two, and the tables have exponents relative to it: at most 0. If some are below lowestExponent, the factor becomes several
// tables whose product it is. Each table takes at most −lowestExponent of an entry's exponent, and leaves the rest to the tables after
// it. The first table has the mantissas.
func (b *builder) addNumbers(scope, dims []int, list []scaled.Number) {
	largestExp := int64(math.MinInt64)
	for _, x := range list {
		if !x.IsZero() {
			largestExp = max(largestExp, x.Exp)
		}
	}
	if largestExp == math.MinInt64 { // all are 0
		b.addTable(scope, dims, make([]float64, len(list)))
		return
	}

	// The first table.
	data := make([]float64, len(list))
	remaining := make([]int64, len(list)) // by entry: the part of its exponent, at most 0, that the tables so far lack
	isIncomplete := false
	for i, x := range list {
		if x.IsZero() {
			continue
		}
		e := max(x.Exp-largestExp, lowestExponent)
		remaining[i] = x.Exp - largestExp - e
		isIncomplete = isIncomplete || remaining[i] < 0
		data[i] = math.Ldexp(x.Mant, int(e))
	}
	b.multiplyScale(scaled.Make(1, largestExp))
	b.addTable(scope, dims, data)

	// Tables of the remaining powers of two.
	for isIncomplete && !b.isOver(len(list)) {
		isIncomplete = false
		for i, x := range list {
			if x.IsZero() {
				continue // a clause excludes it already
			}
			e := max(remaining[i], lowestExponent)
			remaining[i] -= e
			isIncomplete = isIncomplete || remaining[i] < 0
			data[i] = math.Ldexp(1, int(e))
		}
		b.addEntries(scope, dims, data)
	}
}
