package junction

// Tables of one lane or of all, each lane with an exponent of its own, and the bounds of their entries.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
)

// table has, for each lane, the entries data[entry·n+lane]·2^exp[lane]. n is Lanes if isWide is set. Else n is 1, and all lanes have the
// entries data[entry].
type table struct {
	data   []float64
	isWide bool // n = Lanes
	exp    [Lanes]int64
	// Bounds of the numbers in data: those of a lane that are not 0 are at least 2^low and below 2^(top+1).
	top, low [Lanes]int
}

const (
	// margin bounds the exponents of a table's entries: products of two are far from the ends of float64.
	margin = 400
	// minLow is the smallest exponent of a product of two entries. Below it digits may be lost.
	minLow = floats.Lowest
)

// lanes is a set of lanes, one bit for each.
type lanes uint8

// has reports whether a lane is in the set.
func (l lanes) has(lane int) bool { return l>>lane&1 != 0 }

// keepInRange moves powers of two from the entries to the exponents, in the lanes whose entries may be above 2^margin or below 2^−margin. A
// lane is one of the queries that are computed side by side.
func (t *table) keepInRange() {
	for lane := range Lanes {
		if t.top[lane] > margin || t.low[lane] < -margin {
			t.measure()
			t.rescale()
			return
		}
	}
}

// measure sets the bounds top and low of every lane to the exponents of its largest entry and of its smallest entry that is not 0. If all
// are 0, both bounds are 0. No entry is below 0, so that entries have the order of their bits. A lane is one of the queries that are
// computed side by side.
func (t *table) measure() {
	if !t.isWide {
		top, low, _ := floats.Extent(t.data) // not read: whether an entry is below 0; none is
		for lane := range Lanes {
			t.top[lane], t.low[lane] = top, low
		}
		return
	}
	var largest, smallest [Lanes]uint64 // bits of the largest entry; those of the smallest but 0, less one
	for lane := range Lanes {
		smallest[lane] = math.MaxUint64
	}
	for data := t.data; len(data) >= Lanes; data = data[Lanes:] {
		entry := (*[Lanes]float64)(data)
		for lane, x := range entry {
			bits := math.Float64bits(x)
			largest[lane] = max(largest[lane], bits)
			smallest[lane] = min(smallest[lane], bits-1) // an entry 0 wraps around to the largest number
		}
	}
	for lane := range Lanes {
		t.top[lane], t.low[lane] = 0, 0
		if largest[lane] != 0 {
			t.top[lane], t.low[lane] = floats.Exponent(largest[lane]), floats.Exponent(smallest[lane]+1)
		}
	}
}

// rescale divides each lane with an entry above 2^margin or below 2^−margin by the power of two of its largest entry, which is added to the
// lane's exponent. The bounds must be exact (measure). A lane is one of the queries that are computed side by side.
func (t *table) rescale() {
	var factors [Lanes]float64
	isNeeded := false
	for lane := range Lanes {
		factors[lane] = 1
		if top := t.top[lane]; top > margin || t.low[lane] < -margin {
			factors[lane] = math.Ldexp(1, -top)
			t.exp[lane] += int64(top)
			t.top[lane], t.low[lane] = 0, t.low[lane]-top
			isNeeded = true
		}
	}
	if isNeeded {
		t.multiplyLanes(&factors)
	}
}

// multiplyLanes multiplies all entries of each lane by the lane's factor. A lane is one of the queries that are computed side by side; a
// table that is not wide has the same entries for all of them, and gets the factor of lane 0.
func (t *table) multiplyLanes(factors *[Lanes]float64) {
	if !t.isWide {
		for k := range t.data {
			t.data[k] *= factors[0]
		}
		return
	}
	for data := t.data; len(data) >= Lanes; data = data[Lanes:] {
		entry := (*[Lanes]float64)(data)
		for lane := range entry {
			entry[lane] *= factors[lane]
		}
	}
}

// setProductBounds sets the exponents and the bounds of t, a product of a and b whose entries are sums of so many terms. It returns the
// lanes in which digits of a term may be lost. If the bounds of a and b leave that open, it measures a and b first.
func (t *table) setProductBounds(a, b *table, terms int) (lossy lanes) {
	if lossy = t.addBounds(a, b, terms); lossy != 0 {
		a.measure()
		b.measure()
		lossy = t.addBounds(a, b, terms)
	}
	return lossy
}

// addBounds sets the exponents and bounds of t, a product of a and b whose entries are sums of the given number of terms. Exponents and
// bounds of a and b add up; top also grows by one for the carry of a product, and by log2 of the number of terms. It returns the lanes in
// which digits of a term may be lost. A lane is one of the queries that are computed side by side.
func (t *table) addBounds(a, b *table, terms int) (lossy lanes) {
	growth := int(math.Ceil(math.Log2(float64(terms)))) + 1
	for lane := range Lanes {
		t.exp[lane] = a.exp[lane] + b.exp[lane]
		t.top[lane] = a.top[lane] + b.top[lane] + growth
		t.low[lane] = a.low[lane] + b.low[lane]
		if t.low[lane] < minLow {
			lossy |= 1 << lane
		}
	}
	return lossy
}

// widen returns a copy of a table of one lane that has its entries in all lanes. The copy uses memory, which has room for it. A lane is one
// of the queries that are computed side by side.
func (t *table) widen(memory []float64) table {
	wide := *t
	wide.data, wide.isWide = memory[:len(t.data)*Lanes], true
	for k, x := range t.data {
		entry := (*[Lanes]float64)(wide.data[k*Lanes:])
		for lane := range entry {
			entry[lane] = x
		}
	}
	return wide
}

// at returns an entry of a lane, without the factor 2^exp[lane].
func (t *table) at(entry, lane int) float64 {
	if t.isWide {
		return t.data[entry*Lanes+lane]
	}
	return t.data[entry]
}

// copyFirstLane copies the exponent and the bounds of lane 0 to all lanes of a table that is not wide.
func (t *table) copyFirstLane() {
	for lane := range Lanes {
		t.exp[lane], t.top[lane], t.low[lane] = t.exp[0], t.top[0], t.low[0]
	}
}
