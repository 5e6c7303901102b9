package preprocess

// One table, and the size of its entries.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// tiny is below every entry that products of entries may have: they would lose digits or vanish.
const tiny = 0x1p-1000

// table is one table; its dimensions always equal its indices'.
type table struct {
	scope []int
	data  []float64
	owned bool    // data is not the caller's
	gone  bool    // multiplied into another table, summed out or split
	from  *source // tables of the expression given that are in it
	// support lists the positions of all non-zero entries, index by index;
	// nil until asked for, empty for full tables.
	support []int32
	full    bool // no entry is 0; valid with support
	// hole is the position of the only zero, index by index; nil where there are none or several; valid with support.
	hole  []int32
	wider bool // its scope is new: tables inside it have not been looked for
	// err bounds the error of every entry, relative to itself, in units of 2^-53;
	// 0: nothing was rounded.
	err float64
}

// normalise brings the largest entry of t into [1, 2), unless small entries would be lost.
func (w *work) normalise(t *table) {
	low, top := spread(t.data)
	if top == 0 || top >= 1 && top < 2 {
		return
	}

	_, exp := math.Frexp(top)
	exp--
	if e := float64(-exp); math.Abs(e) > 1000 || low*math.Ldexp(1, -exp) < tiny {
		return
	}
	t.own()
	floats.Shift(t.data, -exp)
	w.scale = w.scale.Mul(scaled.Make(1, int64(exp)))
}

// own makes data the table's before it is changed.
func (t *table) own() {
	if !t.owned {
		t.data = slices.Clone(t.data)
		t.owned = true
	}
}

// spread returns the smallest and the largest absolute value above 0; 0 and 0 for zeros.
func spread(data []float64) (low, top float64) {
	low = math.Inf(1)
	for _, x := range data {
		if x = math.Abs(x); x != 0 {
			low = min(low, x)
			top = max(top, x)
		}
	}

	if top == 0 {
		low = 0
	}
	return low, top
}

// shape returns the dimensions of t.
func (w *work) shape(t *table) []int {
	out := make([]int, len(t.scope))
	for k, i := range t.scope {
		out[k] = w.dims[i]
	}
	return out
}
