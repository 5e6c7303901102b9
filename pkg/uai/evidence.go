// Reading and writing evidence.

package uai

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// ReadEvidence reads the observations of one query about variables with these domains. Two dialects are in use, and
// the count of a file's numbers alone says which one it is in, lines do not matter:
//
//	k v x v x …     1 + 2k numbers: k observations, variable and value each
//	1 k v x v x …   2 + 2k numbers: a number of samples, which must be 1, before that
//
// The first is odd and the second even, so no file is in both; one that is in neither is refused. An empty
// file, `0` and `1 0` are no evidence; `1` alone is refused, being cut off in either dialect. An observation
// stated twice counts once, at two different values it is factorgraph.ErrContradictory.
//
// Errors wrap ErrSyntax, ErrEvidence or ErrLimit, name the line and carry fault.BadInput.
func ReadEvidence(r io.Reader, domains []int) (factorgraph.Evidence, error) {
	s := newScanner(r, Limits{}.withDefaults().Bytes)
	numbers, lines, err := s.readIntegers()
	if err != nil {
		return factorgraph.Evidence{}, err
	}
	start, err := evidenceStart(numbers)
	if err != nil {
		return factorgraph.Evidence{}, s.fail(ErrEvidence, "%w", err)
	}

	// pairs of a variable and its value
	var hard []factorgraph.Observation
	for i := start; i < len(numbers); i += 2 {
		s.line = lines[i] // for errors
		v, x := numbers[i], numbers[i+1]
		if v < 0 || v >= len(domains) {
			return factorgraph.Evidence{}, s.fail(ErrEvidence, "observation %d: variable %d, the model has %d",
				len(hard), v, len(domains))
		}
		if x < 0 || x >= domains[v] {
			return factorgraph.Evidence{}, s.fail(ErrEvidence, "observation %d: variable %d at value %d, its domain is 0 to %d",
				len(hard), v, x, domains[v]-1)
		}
		hard = append(hard, factorgraph.Observation{Var: v, Value: x})
	}
	e, err := factorgraph.NewEvidence(hard, nil)
	if err != nil {
		return factorgraph.Evidence{}, fmt.Errorf("uai: %w", err)
	}
	return e, nil
}

// readIntegers reads the rest of the input: integers, and the line of each.
func (s *scanner) readIntegers() (numbers, lines []int, err error) {
	for {
		err := s.next()
		if errors.Is(err, io.EOF) {
			return numbers, lines, nil
		}
		if err != nil {
			return nil, nil, err
		}
		v, err := s.parseInteger(itemName{text: "a number of the evidence"})
		if err != nil {
			return nil, nil, err
		}
		if len(numbers) >= maxEvidence {
			return nil, nil, s.fail(ErrLimit, "more than %d numbers of evidence", maxEvidence)
		}
		numbers, lines = append(numbers, v), append(lines, s.line)
	}
}

// maxEvidence bounds the numbers of an evidence file: an observation of each of the variables a model may have.
const maxEvidence = 2 + 2*(1<<22)

// evidenceStart returns the position of the first observation among the numbers of an evidence file: 1 or 2, by the
// dialect. 1 + 2k numbers begin with k; 2 + 2k numbers begin with 1 and k.
func evidenceStart(numbers []int) (int, error) {
	isOdd := len(numbers)%2 == 1
	switch {
	case len(numbers) == 0:
		return 0, nil // no evidence
	case isOdd && numbers[0] == (len(numbers)-1)/2:
		return 1, nil
	case !isOdd && numbers[0] == 1 && numbers[1] == (len(numbers)-2)/2:
		return 2, nil
	case isOdd:
		return 0, fmt.Errorf("a file of %d numbers with %d in front is in neither dialect: k v x … has 1+2k with k in "+
			"front, the one with a leading 1 has 2+2k",
			len(numbers), numbers[0])
	case numbers[0] != 1:
		return 0, fmt.Errorf("a file of %d numbers is in the dialect with a leading number of samples, and it is %d: one "+
			"sample is read", len(numbers), numbers[0])
	}
	return 0, fmt.Errorf("a file of %d numbers with 1 %d in front is in neither dialect: 1 k v x … has 2+2k with k in "+
		"second place, k v x … has 1+2k", len(numbers), numbers[1])
}

// WriteEvidence writes the observations of e as `k v x v x …`. The format has no soft evidence: ErrEvidence.
func WriteEvidence(w io.Writer, e factorgraph.Evidence) error {
	if len(e.Soft) > 0 {
		return fmt.Errorf("uai: %w: the format has no likelihoods, and variable %d has one", ErrEvidence, e.Soft[0].Var)
	}
	b := bufio.NewWriter(w)
	fmt.Fprint(b, len(e.Hard))
	for _, o := range e.Hard {
		fmt.Fprintf(b, " %d %d", o.Var, o.Value)
	}
	fmt.Fprintln(b)
	return b.Flush()
}
