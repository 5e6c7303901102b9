// The two dialects of evidence, and files in neither.

package uai

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

func observations(pairs ...int) (out []factorgraph.Observation) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, factorgraph.Observation{Var: pairs[i], Value: pairs[i+1]})
	}
	return out
}

func TestReadEvidence(t *testing.T) {
	domains := []int{2, 2, 3, 4}
	for _, c := range []struct {
		text string
		hard []factorgraph.Observation
		want string // the error, "" for none
	}{
		{"", nil, ""},
		{" \r\n\t", nil, ""},
		{"0", nil, ""},
		{"0\n", nil, ""},
		{"1 0", nil, ""},
		{"1\n0\n", nil, ""},
		{"1 2 2", observations(2, 2), ""},
		{"2 3 1 0 1", observations(0, 1, 3, 1), ""},
		{"1\r\n2 3 1 0 1\r\n", observations(0, 1, 3, 1), ""},
		{"1 1 1 1", observations(1, 1), ""},
		{"2 1 0 1 0", observations(1, 0), ""},
		{"1", nil, "uai: line 1: invalid evidence: a file of 1 numbers with 1 in front is in neither dialect: k v x … has " +
			"1+2k with k in front, the one with a leading 1 has 2+2k"},
		{"2 1 1", nil, "uai: line 1: invalid evidence: a file of 3 numbers with 2 in front is in neither dialect: k v x … " +
			"has 1+2k with k in front, the one with a leading 1 has 2+2k"},
		{"1\n2 1 1", nil, "uai: line 2: invalid evidence: a file of 4 numbers with 1 2 in front is in neither dialect: " +
			"1 k v x … has 2+2k with k in second place, k v x … has 1+2k"},
		{"0 0", nil, "uai: line 1: invalid evidence: a file of 2 numbers is in the dialect with a leading number of " +
			"samples, and it is 0: one sample is read"},
		{"2 1 0 0 1 0 1 1", nil,
			"uai: line 1: invalid evidence: a file of 8 numbers is in the dialect with a leading number of samples, and it is " +
				"2: one sample is read"},
		{"-1", nil, "uai: line 1: invalid evidence: a file of 1 numbers with -1 in front is in neither " +
			"dialect: k v x … has " +
			"1+2k with k in front, the one with a leading 1 has 2+2k"},
		{"1\n4 0", nil, "uai: line 2: invalid evidence: observation 0: variable 4, the model has 4"},
		{"1 -1 0", nil, "uai: line 1: invalid evidence: observation 0: variable -1, the model has 4"},
		{"2\n0 1\n2 3", nil, "uai: line 3: invalid evidence: observation 1: variable 2 at value 3, its domain is 0 to 2"},
		{"1 0 -1", nil, "uai: line 1: invalid evidence: observation 0: variable 0 at value -1, its domain is 0 to 1"},
		{"2 1 0 1 1", nil, "uai: invalid evidence: contradictory: variable 1 observed at 0 and at 1"},
		{"1 0 x", nil, `uai: line 1: syntax error: a number of the evidence: "x" is not an integer`},
		{"1 0 1.0", nil, `uai: line 1: syntax error: a number of the evidence: "1.0" is not an integer`},
		{
			"99999999999999999999", nil,
			`uai: line 1: over the limit: a number of the evidence: "99999999999999999999" does not fit an integer`,
		},
	} {
		e, err := ReadEvidence(strings.NewReader(c.text), domains)
		if c.want == "" {
			if err != nil || !reflect.DeepEqual(e.Hard, c.hard) || e.Soft != nil {
				t.Errorf("%q: got %+v, %v", c.text, e, err)
			}
			continue
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		} else if fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%q: no code", c.text)
		}
	}
	_, err := ReadEvidence(strings.NewReader("2 1 0 1 1"), domains)
	if !errors.Is(err, factorgraph.ErrContradictory) || !errors.Is(err, ErrEvidence) {
		t.Errorf("contradiction: %v", err)
	}
}

// No sequence is in both dialects: all of up to seven numbers below 4, decided by the definitions themselves.
func TestDialectsAreDisjoint(t *testing.T) {
	for length := range 8 {
		numbers := make([]int, length)
		var walk func(i int)
		walk = func(i int) {
			if i < length {
				for numbers[i] = 0; numbers[i] < 4; numbers[i]++ {
					walk(i + 1)
				}
				return
			}
			plain := length > 0 && length == 1+2*numbers[0]
			sampled := length > 1 && numbers[0] == 1 && length == 2+2*numbers[1]
			start, err := evidenceStart(numbers)
			switch {
			case plain && sampled:
				t.Fatalf("%v is in both dialects", numbers)
			case plain && (err != nil || start != 1), sampled && (err != nil || start != 2),
				!plain && !sampled && length > 0 && err == nil:
				t.Fatalf("%v: start %d, %v", numbers, start, err)
			}
		}
		walk(0)
	}
}

func TestWriteEvidence(t *testing.T) {
	e := factorgraph.Observe(map[int]int{3: 1, 0: 1})
	var b strings.Builder
	if err := WriteEvidence(&b, e); err != nil || b.String() != "2 0 1 3 1\n" {
		t.Errorf("got %q, %v", b.String(), err)
	}
	back, err := ReadEvidence(strings.NewReader(b.String()), []int{2, 2, 2, 2})
	if err != nil || !reflect.DeepEqual(back, e) {
		t.Errorf("back: %+v, %v", back, err)
	}
	e.Soft = []factorgraph.Likelihood{{Var: 1, Weights: []float64{1, 2}}}
	err = WriteEvidence(&b, e)
	if want := "uai: invalid evidence: the format has no likelihoods, and variable 1 has one"; fmt.Sprint(err) != want {
		t.Errorf("got %v", err)
	}
}
