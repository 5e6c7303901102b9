// The notation of levels: the two usual maps by name, any other written out.

package modeljson

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/jsontext"
	"github.com/basetensor/basetensor/pkg/countspace"
)

// levels is "two" (0 and the rest), "identity" (every value a level of its own), or a map of its own.
type levels struct {
	name string
	own  *ownLevels
}

// ownLevels is a map from values to levels that is written out.
type ownLevels struct {
	Count int     `json:"count"` // D
	Of    [][]int `json:"of"`    // per scope variable, per value: its level
}

// MarshalJSON writes the name, or the map.
func (l levels) MarshalJSON() ([]byte, error) {
	if l.own != nil {
		return json.Marshal(l.own)
	}
	return json.Marshal(l.name)
}

// UnmarshalJSON reads a name, or a map.
func (l *levels) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &l.name)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return jsontext.Explain(data, d.Decode(&l.own))
}

// decode returns the map from values to levels for a scope with these domains.
func (l levels) decode(dims []int) (countspace.Levels, error) {
	switch {
	case l.own == nil && l.name == "two":
		return countspace.TwoLevels(dims), nil
	case l.own == nil && l.name == "identity":
		decoded, err := countspace.Identity(dims)
		if err != nil {
			return decoded, modelError("%w", err)
		}
		return decoded, nil
	case l.own == nil:
		return countspace.Levels{}, syntaxError("levels are %q, known are \"two\", \"identity\" or an "+
			"object with count and of",
			l.name)
	case l.own.Count < 1 || l.own.Count > math.MaxUint8:
		return countspace.Levels{}, modelError("%d levels, 1 to %d are possible", l.own.Count, math.MaxUint8)
	}
	out := countspace.Levels{D: l.own.Count, Of: make([][]uint8, len(l.own.Of))}
	for i, levelOf := range l.own.Of {
		out.Of[i] = make([]uint8, len(levelOf))
		for x, level := range levelOf {
			if level < 0 || level >= l.own.Count {
				return countspace.Levels{}, modelError("scope position %d: value %d at level %d of %d", i, x, level, l.own.Count)
			}
			out.Of[i][x] = uint8(level)
		}
	}
	return out, nil
}

// encodeLevels returns the levels as they are written: by name if they are one of the two usual maps, else written out.
func encodeLevels(l countspace.Levels, dims []int) levels {
	if areEqual(l, countspace.TwoLevels(dims)) {
		return levels{name: "two"}
	}
	if id, err := countspace.Identity(dims); err == nil && areEqual(l, id) {
		return levels{name: "identity"}
	}
	written := &ownLevels{Count: l.D, Of: make([][]int, len(l.Of))}
	for i, levelOf := range l.Of {
		written.Of[i] = make([]int, len(levelOf))
		for x, level := range levelOf {
			written.Of[i][x] = int(level)
		}
	}
	return levels{own: written}
}

// areEqual reports whether two maps have the same levels.
func areEqual(a, b countspace.Levels) bool {
	return a.D == b.D && slices.EqualFunc(a.Of, b.Of, slices.Equal[[]uint8])
}
