// Reference solutions beside a model, and the tolerance of answers.

package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/pkg/uai"
)

const (
	// leastTolerance of log10 Z: references with more digits than this come from solvers that are
	// not better.
	leastTolerance = 1e-5
	// marTolerance is the largest difference of a marginal probability.
	marTolerance = 1e-5
	// leastDigits are the significant digits a solution file has at least. The solvers print with
	// %g, which drops trailing zeros: −44.061 stands for −44.0610.
	leastDigits = 6
)

// reference holds the contents of the files NAME.uai.PR and NAME.uai.MAR, also of a model NAME.uai.gz.
type reference struct {
	Log10Z    *float64 // nil without a file; −Inf for Z = 0
	Tolerance float64  // of log10 Z
	Marginals [][]float64
	Err       error // a file that is there and cannot be read
}

func readReference(model string, mar bool) reference {
	var r reference
	model = strings.TrimSuffix(model, packed)
	text, err := os.ReadFile(model + ".PR")
	switch {
	case err == nil:
		var v float64
		if v, err = uai.ReadPR(bytes.NewReader(text)); err == nil {
			r.Log10Z = &v
			words := strings.Fields(string(text))
			r.Tolerance = tolerance(words[len(words)-1], v)
		} else {
			r.Err = fmt.Errorf("%s.PR: %w", model, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		r.Err = err
	}

	if !mar || r.Err != nil {
		return r
	}
	f, err := os.Open(model + ".MAR")
	if errors.Is(err, fs.ErrNotExist) {
		return r
	}
	if err != nil {
		r.Err = err
		return r
	}
	defer f.Close()
	if r.Marginals, err = uai.ReadMAR(f); err != nil {
		r.Err = fmt.Errorf("%s.MAR: %w", model, err)
	}
	return r
}

// tolerance is half a unit of the last printed digit of text, whose value is v, where at least
// leastDigits significant digits count as printed; never below leastTolerance. A plain 0 is exact:
// %g prints small values with an exponent.
func tolerance(text string, v float64) float64 {
	mantissa, exponent := strings.ToLower(text), 0
	if at := strings.IndexByte(mantissa, 'e'); at >= 0 {
		if e, err := strconv.Atoi(mantissa[at+1:]); err == nil {
			exponent = e
		}
		mantissa = mantissa[:at]
	}
	_, decimals, point := strings.Cut(mantissa, ".")
	unit := math.Pow(10, float64(exponent-len(decimals)))
	switch {
	case math.IsInf(v, 0) || v == 0 && !point:
		return leastTolerance
	case v != 0:
		unit = math.Min(unit, math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-leastDigits+1))
	}
	return math.Max(leastTolerance, unit/2*(1+1e-9)) // a tie was rounded one way or the other
}

// marError is the largest absolute difference. It is an error if the shapes differ.
func marError(got, want [][]float64) (float64, error) {
	if len(got) != len(want) {
		return 0, fmt.Errorf("marginals of %d variables, the reference has %d", len(got), len(want))
	}
	largest := 0.0
	for i := range want {
		if len(got[i]) != len(want[i]) {
			return 0, fmt.Errorf("marginals: variable %d has %d values, the reference %d", i, len(got[i]), len(want[i]))
		}
		for a := range want[i] {
			largest = math.Max(largest, math.Abs(got[i][a]-want[i][a])) // a NaN stays
		}
	}
	return largest, nil
}
