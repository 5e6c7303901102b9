// Solution files: PR (log10 Z) and MAR (marginals).

package uai

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/fault"
)

// WritePR writes a PR file: log10 Z, −Inf (as "-inf") for Z = 0. NaN and +Inf are ErrModel.
func WritePR(w io.Writer, log10Z float64) error {
	if math.IsNaN(log10Z) || math.IsInf(log10Z, 1) {
		return fault.New(fault.BadInput, "uai: %w: log10 Z is %v", ErrModel, log10Z)
	}
	text := "-inf"
	if !math.IsInf(log10Z, -1) {
		text = string(decimal.Append(nil, log10Z))
	}
	_, err := fmt.Fprintf(w, "PR\n%s\n", text)
	return err
}

// ReadPR reads a PR file: log10 Z, −Inf for "-inf".
func ReadPR(r io.Reader) (float64, error) {
	s := newScanner(r, maxSolution)
	if err := s.expectKeyword("PR"); err != nil {
		return 0, err
	}
	v, err := s.readNumber(itemName{text: "log10 Z"})
	if strings.EqualFold(string(s.word), "-inf") { // which readNumber refuses
		v, err = math.Inf(-1), nil
	}
	if err != nil {
		return 0, err
	}
	return v, s.expectEnd()
}

// maxSolution bounds the bytes of a solution file.
const maxSolution = 1 << 30

// expectKeyword reads the first word of a solution file, which has to be this one.
func (s *scanner) expectKeyword(want string) error {
	if err := s.nextOrFail(itemName{text: want}); err != nil {
		return err
	}
	if !strings.EqualFold(string(s.word), want) {
		return s.fail(ErrSyntax, "%s where %s is needed", s.quotedWord(), want)
	}
	return nil
}

// WriteMAR writes a MAR file: the number of variables, and per variable its domain and the probabilities of its values.
// Observed variables are included, with a point mass. Entries outside [0, 1] are ErrModel.
func WriteMAR(w io.Writer, marginals [][]float64) error {
	for i, p := range marginals {
		for x, v := range p {
			if math.IsNaN(v) || v < 0 || v > 1 {
				return fault.New(fault.BadInput, "uai: %w: variable %d: probability %v of value %d", ErrModel, i, v, x)
			}
		}
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "MAR\n%d", len(marginals))
	for _, p := range marginals {
		fmt.Fprintf(b, " %d", len(p))
		for _, v := range p {
			_ = b.WriteByte(' ') // b keeps its first error, and Flush returns it
			_, _ = b.Write(decimal.Append(b.AvailableBuffer(), v))
		}
	}
	_ = b.WriteByte('\n')
	return b.Flush()
}

// ReadMAR reads a MAR file. It checks that the numbers are probabilities, not that they sum to 1: files have
// few digits.
func ReadMAR(r io.Reader) ([][]float64, error) {
	s := newScanner(r, maxSolution)
	if err := s.expectKeyword("MAR"); err != nil {
		return nil, err
	}
	n, err := s.readInteger(itemName{text: "the number of variables"})
	if err != nil {
		return nil, err
	}
	if limit := (Limits{}).withDefaults().Variables; n < 0 || n > limit {
		return nil, s.fail(ErrLimit, "%d variables, 0 to %d are read", n, limit)
	}
	marginals := make([][]float64, 0, min(n, firstAllocation))
	for i := range n {
		p, err := s.readMarginal(i)
		if err != nil {
			return nil, err
		}
		marginals = append(marginals, p)
	}
	return marginals, s.expectEnd()
}

// readMarginal reads the domain of variable i, and a probability for each of its values.
func (s *scanner) readMarginal(i int) ([]float64, error) {
	d, err := s.readInteger(itemName{"the domain of variable %d", i, 0}) // 0: the text has one number only
	if err != nil {
		return nil, err
	}
	if d < 1 {
		return nil, s.fail(ErrModel, "variable %d: domain of size %d, at least 1 is needed", i, d)
	}
	p := make([]float64, 0, min(d, firstAllocation))
	what := itemName{"variable %d: a probability", i, 0}
	for range d {
		v, err := s.readNumber(what)
		if err != nil {
			return nil, err
		}
		if v < 0 || v > 1 {
			return nil, s.fail(ErrModel, "%s is %v", what, v)
		}
		p = append(p, v)
	}
	return p, nil
}
