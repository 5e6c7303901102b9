package junction

// Tables of one lane or of all, each lane with an exponent of its own, and the bounds of their entries.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
)

// table has entries data[entry·n+lane]·2^exp[lane], n = 1 or Lanes. What it has by lane is the same in all lanes where n = 1.
type table struct {
	data   []float64
	isWide bool // n = Lanes
	exp    [Lanes]int64
	// Every entry of a lane but 0 is at least 2^low and below 2^(top+1).
	top, low [Lanes]int
}

const (
	// margin bounds the exponents of a table's entries: products of two are far from the ends of float64.
	margin = 400
	// deepest is the least exponent of a product of two entries; below it digits may be lost.
	deepest = floats.Lowest
)

// lanes is a set of lanes, one bit for each.
type lanes uint8

// has reports whether a lane is in the set.
func (l lanes) has(lane int) bool { return l>>lane&1 != 0 }

// settle keeps the entries of all lanes within the margin.
func (t *table) settle() {
	for lane := range Lanes {
		if t.top[lane] > margin || t.low[lane] < -margin {
			t.measure()
			t.rescale()
			return
		}
	}
}

// measure replaces the bounds by the exponents of the largest and the smallest entry but 0; both are 0 where all are.
func (t *table) measure() {
	if !t.isWide {
		top, low, _ := floats.Extent(t.data)
		for lane := range Lanes {
			t.top[lane], t.low[lane] = top, low
		}
		return
	}
	var largest, smallest [Lanes]uint64 // smallest is one less
	for lane := range Lanes {
		smallest[lane] = math.MaxUint64
	}
	for data := t.data; len(data) >= Lanes; data = data[Lanes:] {
		entry := (*[Lanes]float64)(data)
		for lane, x := range entry {
			bits := math.Float64bits(x)
			largest[lane] = max(largest[lane], bits)
			smallest[lane] = min(smallest[lane], bits-1) // 0 becomes the largest
		}
	}
	for lane := range Lanes {
		t.top[lane], t.low[lane] = 0, 0
		if largest[lane] != 0 {
			t.top[lane], t.low[lane] = floats.Exponent(largest[lane]), floats.Exponent(smallest[lane]+1)
		}
	}
}

// rescale divides every lane that is outside the margin by the power of two of its largest entry.
func (t *table) rescale() {
	var by [Lanes]float64
	isAny := false
	for lane := range Lanes {
		by[lane] = 1
		if top := t.top[lane]; top > margin || t.low[lane] < -margin {
			by[lane] = math.Ldexp(1, -top)
			t.exp[lane] += int64(top)
			t.top[lane], t.low[lane] = 0, t.low[lane]-top
			isAny = true
		}
	}
	if isAny {
		t.multiply(&by)
	}
}

// multiply multiplies all entries by a number in each lane.
func (t *table) multiply(by *[Lanes]float64) {
	if !t.isWide {
		for k := range t.data {
			t.data[k] *= by[0]
		}
		return
	}
	for data := t.data; len(data) >= Lanes; data = data[Lanes:] {
		entry := (*[Lanes]float64)(data)
		for lane := range entry {
			entry[lane] *= by[lane]
		}
	}
}

// bound sets the exponents of a product of two tables, whose sums have so many terms, and the bounds of its entries. It returns the lanes
// in which digits of a term may be lost.
func (t *table) bound(a, b *table, terms int) (lost lanes) {
	if lost = t.add(a, b, terms); lost != 0 {
		a.measure()
		b.measure()
		lost = t.add(a, b, terms)
	}
	return lost
}

// add adds exponents and bounds up.
func (t *table) add(a, b *table, terms int) (lost lanes) {
	more := int(math.Ceil(math.Log2(float64(terms)))) + 1
	for lane := range Lanes {
		t.exp[lane] = a.exp[lane] + b.exp[lane]
		t.top[lane] = a.top[lane] + b.top[lane] + more
		t.low[lane] = a.low[lane] + b.low[lane]
		if t.low[lane] < deepest {
			lost |= 1 << lane
		}
	}
	return lost
}

// widen returns a table of all lanes with the entries of one, in room.
func (t *table) widen(room []float64) table {
	wide := *t
	wide.data, wide.isWide = room[:len(t.data)*Lanes], true
	for k, x := range t.data {
		entry := (*[Lanes]float64)(wide.data[k*Lanes:])
		for lane := range entry {
			entry[lane] = x
		}
	}
	return wide
}

// at returns an entry of a lane, without its exponent.
func (t *table) at(entry, lane int) float64 {
	if t.isWide {
		return t.data[entry*Lanes+lane]
	}
	return t.data[entry]
}

// spread makes what a table of one lane has by lane that of its first lane.
func (t *table) spread() {
	for lane := range Lanes {
		t.exp[lane], t.top[lane], t.low[lane] = t.exp[0], t.top[0], t.low[0]
	}
}
