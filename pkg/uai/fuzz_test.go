// Fuzzing of both readers: no panic, a code on every error, and results that are valid and survive a round trip.

package uai

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"MARKOV\n2\n2 3\n1\n2 1 0\n\n6\n 1 2\n .5 0\n 1e-3 2.5E+2\n",
		"BAYES\r\n1\r\n2\r\n1\r\n1 0\r\n2\r\n0.25 0.75\r\n",
		"MARKOV 0 0", "MARKOV 0 1 0 1 3", "MARKOV 1 1 1 1 0 1 7",
		"MARKOV 1 2 1 1 0 2 nan 1e999", "MARKOV 1000000000", "MARKOV 2 2 2 1 2 0 0 4 1 1 1 1", "",
	} {
		f.Add([]byte(seed))
	}
	limits := Limits{Bytes: 1 << 16, Variables: 1 << 10, Factors: 1 << 10, Domain: 1 << 10, Entries: 1 << 14}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Read(bytes.NewReader(data), limits)
		if err != nil {
			if m != nil || fault.CodeOf(err) != fault.BadInput {
				t.Fatalf("model %v, error %v", m, err)
			}
			return
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(m.Factors, func(f factorgraph.Factor) bool { return tensor.Signed(f.Table) }) {
			t.Fatal("an entry is negative")
		}
		var b bytes.Buffer
		if err := Write(&b, m); err != nil {
			t.Fatal(err)
		}
		back, err := Read(&b, Limits{})
		if err == nil {
			back.Lines, m.Lines, back.RowLines, m.RowLines = nil, nil, nil, nil
		}
		if err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("%+v came back as %+v, %v", m, back, err)
		}
	})
}

func FuzzReadEvidence(f *testing.F) {
	for _, seed := range []string{
		"", "0", "1", "1 0", "1\n0\n", "2 0 1 2 2", "1\n2 0 1 2 2\n", "1 0 1", "2 0 1 0 0", "1 -1 x",
	} {
		f.Add([]byte(seed))
	}
	domains := []int{2, 2, 3, 40}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := ReadEvidence(bytes.NewReader(data), domains)
		if err != nil {
			if fault.CodeOf(err) != fault.BadInput {
				t.Fatal(err)
			}
			return
		}
		var b bytes.Buffer
		if err := WriteEvidence(&b, e); err != nil {
			t.Fatal(err)
		}
		back, err := ReadEvidence(&b, domains)
		if err != nil || !reflect.DeepEqual(back, e) {
			t.Fatalf("%+v came back as %+v, %v", e, back, err)
		}
	})
}
