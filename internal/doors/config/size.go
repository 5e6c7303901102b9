package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes, written as 1500000, 64MB (powers of 1000) or 2GiB (powers of 1024).
type Size int64

// units are the units of a size. A suffix stands before those that end it.
var units = []struct {
	suffix string
	factor float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1 << 40}, {"B", 1},
}

// leastBare is the number of bytes from which no unit is needed: a bare 1 or 64 is meant in a larger unit than bytes.
const leastBare = 1 << 10

// UnmarshalText parses a size. Negative, zero, fractional-byte and overflowing sizes are errors, and so is a number below 1024 without a
// unit: 512B is 512 bytes.
func (s *Size) UnmarshalText(text []byte) error {
	number, factor, hasUnit := strings.TrimSpace(string(text)), 1.0, false
	for _, u := range units {
		if digits, ok := strings.CutSuffix(number, u.suffix); ok {
			number, factor, hasUnit = strings.TrimSpace(digits), u.factor, true
			break
		}
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(value) {
		return fmt.Errorf("%q is no size: want bytes, or a number with KiB, MiB, GiB, kB, MB or GB", text)
	}
	bytes := value * factor
	if bytes < 1 || bytes >= math.MaxInt64 {
		return fmt.Errorf("size %q is out of range: at least 1 byte, less than 2^63", text)
	}
	if !hasUnit && bytes < leastBare {
		return fmt.Errorf("%s is %s: did you mean %sGiB? (%sB, if it is meant)", number, plural(bytes, "byte"), number, number)
	}
	*s = Size(bytes)
	return nil
}

// plural writes a number of things, as 1 byte or 2 bytes.
func plural(n float64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.FormatFloat(n, 'g', -1, 64) + " " + thing + "s"
}

// String writes the size in the largest binary unit, with up to three digits after the point.
func (s Size) String() string { return FormatBytes(float64(s)) }

// FormatBytes writes a number of bytes for people, in binary units with four digits at most: 2 GiB, 1.5 MiB. It is a
// float64, since plans may exceed 2^63 bytes.
func FormatBytes(b float64) string {
	names := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for b >= 1024 && i < len(names)-1 {
		b, i = b/1024, i+1
	}
	return strconv.FormatFloat(b, 'g', 4, 64) + " " + names[i]
}
