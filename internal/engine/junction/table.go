package junction

// Tables of one lane or of all, each lane with an exponent of its own, and the bounds of their entries.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
)

// table has the entries data[entry·n+lane]·2^exp[lane], with n = 1 or Lanes. If n = 1, all lanes have the same entries, exponents and
// bounds.
type table struct {
	data   []float64
	isWide bool // n = Lanes
	exp    [Lanes]int64
	// Every entry of a lane that is not 0 is at least 2^low and below 2^(top+1), in data.
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

// keepInRange rescales the lanes whose bounds are outside the margin.
func (t *table) keepInRange() {
	for lane := range Lanes {
		if t.top[lane] > margin || t.low[lane] < -margin {
			t.measure()
			t.rescale()
			return
		}
	}
}

// measure sets the bounds to the exponents of the largest entry and of the smallest that is not 0. If all entries are 0, both are 0.
func (t *table) measure() {
	if !t.isWide {
		top, low, _ := floats.Extent(t.data)
		for lane := range Lanes {
			t.top[lane], t.low[lane] = top, low
		}
		return
	}
	var largest, smallest [Lanes]uint64 // bits of entries; smallest has the bits less one
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

// bound sets the exponents and the bounds of t, which is a product of a and b: each entry is a sum of the given number of terms. It returns
// the lanes in which digits of a term may be lost. If there are any by the bounds of a and b, it measures these first.
func (t *table) bound(a, b *table, terms int) (lost lanes) {
	if lost = t.add(a, b, terms); lost != 0 {
		a.measure()
		b.measure()
		lost = t.add(a, b, terms)
	}
	return lost
}

// add sets the exponents and bounds of a product to the sums of those of a and b. It returns the lanes in which digits of a term may be
// lost.
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

// spread copies the exponent and the bounds of the first lane to all lanes. The table has one lane.
func (t *table) spread() {
	for lane := range Lanes {
		t.exp[lane], t.top[lane], t.low[lane] = t.exp[0], t.top[0], t.low[0]
	}
}
