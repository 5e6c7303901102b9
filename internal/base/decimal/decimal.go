// Package decimal reads and writes the numbers of text formats. A number that a float64 cannot hold to half a unit of its last
// place is an error: one too large, one too small, and one below 2^-1022, where a float64 has fewer digits.
package decimal

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

var (
	// ErrSyntax: the text is not a decimal number.
	ErrSyntax = errors.New("is not a number")
	// ErrNotFinite: the text says NaN or infinity.
	ErrNotFinite = errors.New("is not finite")
	// ErrRange: the number is one, and no float64 holds it.
	ErrRange = errors.New("is beyond the range of float64")
)

// Longest is the length of a number's text at most: a float64 written without an exponent may take 1,100 characters.
const Longest = 2048

// Least is the smallest float64 with all its digits.
const Least = 0x1p-1022

// Parse reads a decimal number; −0 is 0. It wraps ErrSyntax, ErrNotFinite or ErrRange in its errors, which begin with a verb, for a
// sentence about the text.
func Parse(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case !hasDecimalCharsOnly(text):
		if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			return 0, ErrNotFinite
		}
		return 0, ErrSyntax
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%w: the largest is %.3g", ErrRange, math.MaxFloat64)
	case err != nil || len(text) > Longest:
		return 0, ErrSyntax
	case math.Abs(v) < Least && !isAccurate(strings.Clone(text), v): // the clone keeps other texts off the heap
		return 0, fmt.Errorf("%w: the smallest with all digits is %.3g", ErrRange, Least)
	case v == 0:
		return 0, nil // also for −0
	}
	return v, nil
}

// hasDecimalCharsOnly reports whether a text has only digits, points, signs and e. strconv reads "inf", hexadecimal digits and underscores,
// too.
func hasDecimalCharsOnly(text string) bool {
	for i := range len(text) {
		c := text[i]
		isDigit := c >= '0' && c <= '9'
		if !isDigit && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return false
		}
	}
	return true
}

// isAccurate reports whether v, which is 0 or has fewer than 53 bits, differs from the number of the text by at most 2^-53 of it: as little
// as a float64 with all its bits does.
func isAccurate(text string, v float64) bool {
	if v == 0 { // the number is 0 if no digit before the exponent is another
		mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
		return !strings.ContainsAny(mantissa, "123456789")
	}
	exact, _, err := big.ParseFloat(text, 10, 128, big.ToNearestEven) // in 128 bits, far more than the 53 that are compared
	if err != nil {
		return false
	}
	difference := new(big.Float).Sub(exact, big.NewFloat(v))
	allowed := exact.SetMantExp(exact.Abs(exact), -53) // exact itself, which is not needed any more
	return difference.Abs(difference).Cmp(allowed) <= 0
}

// Append appends a finite number to b so that Parse returns it: the shortest text that identifies it, or 17 digits if it is below 2^-1022.
func Append(b []byte, v float64) []byte {
	if math.Abs(v) < Least && v != 0 {
		return strconv.AppendFloat(b, v, 'e', 16, 64)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// Number is a number of a JSON document, read by Parse and written so that Parse returns it.
type Number float64

// MarshalJSON writes a number as encoding/json does, and by Append below 2^-1022.
func (n Number) MarshalJSON() ([]byte, error) {
	if v := float64(n); v == 0 || math.Abs(v) >= Least || math.IsNaN(v) {
		return json.Marshal(v)
	}
	return Append(nil, float64(n)), nil
}

// UnmarshalJSON reads a number; null leaves it as it is.
func (n *Number) UnmarshalJSON(b []byte) error {
	text := string(b)
	if text == "null" {
		return nil
	}
	v, err := Parse(text)
	if err != nil {
		return fmt.Errorf("%.40s %w", text, err)
	}
	*n = Number(v)
	return nil
}

// Floats is a list of numbers that JSON holds so that Parse returns them.
type Floats []float64

// MarshalJSON writes a list as encoding/json does, and numbers below 2^-1022 by Append.
func (f Floats) MarshalJSON() ([]byte, error) {
	hasAllDigits := true
	for _, v := range f {
		hasAllDigits = hasAllDigits && (v == 0 || math.Abs(v) >= Least)
	}
	if hasAllDigits {
		return json.Marshal([]float64(f))
	}
	list := make([]Number, len(f))
	for i, v := range f {
		list[i] = Number(v)
	}
	return json.Marshal(list)
}

// Entries returns the number of entries of a table of the given dimensions, their product, or math.MaxInt if that overflows. All dims are
// at least 1.
func Entries(dims []int) int {
	n := 1
	for _, d := range dims {
		if n > math.MaxInt/d {
			return math.MaxInt
		}
		n *= d
	}
	return n
}

// EntriesText returns a result of Entries as text for an error.
func EntriesText(n int) string {
	if n == math.MaxInt {
		return "more than 2^63"
	}
	return strconv.Itoa(n)
}
