// Round trips, and models that UAI cannot hold.

package uai

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

func TestWriteReadIsTheIdentityOnTables(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 2))
		m := modeltest.Small(rng, modeltest.SmallOptions{
			MinDomain: 1,
			MaxArity:  4,
			Constant:  true,
			Kinds:     []modeltest.Kind{modeltest.Dense},
		})
		m.Bayes = seed%2 == 1
		m.Factors[0].Table.(*tensor.Dense).Data[0] = math.SmallestNonzeroFloat64
		back := writeRead(t, m)
		if back.Lines, back.RowLines = nil, nil; !reflect.DeepEqual(back, m) {
			t.Fatalf("seed %d: wrote %+v, read %+v", seed, m, back)
		}
	}
}

// A model with structured factors comes back as tables with the same partition function.
func TestWriteMaterialises(t *testing.T) {
	const tolerance = 1e-13 // sums of at most three terms per entry
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		m := modeltest.Small(rng, modeltest.SmallOptions{MaxArity: 4})
		back := writeRead(t, m)
		want, _ := oracle.LogZ(m, factorgraph.Evidence{})
		got, _ := oracle.LogZ(back, factorgraph.Evidence{})
		if math.Abs(got-want) > tolerance*float64(len(m.Factors)) {
			t.Errorf("seed %d: ln Z %v, written and read %v", seed, want, got)
		}
	}
}

func writeRead(t *testing.T, m *factorgraph.Model) *factorgraph.Model {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, m); err != nil {
		t.Fatal(err)
	}
	back, err := Read(bytes.NewReader(b.Bytes()), Limits{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	return back
}

func TestWriteRefuses(t *testing.T) {
	model := func(dims []int, table tensor.Tensor) *factorgraph.Model {
		scope := make([]int, len(dims))
		for i := range scope {
			scope[i] = i
		}
		return &factorgraph.Model{Domains: dims, Factors: []factorgraph.Factor{{Scope: scope, Table: table}}}
	}
	wide, err := factorgraph.Exactly(40, 10)
	if err != nil {
		t.Fatal(err)
	}
	huge, err := factorgraph.CardinalityLog([]int{2}, []float64{0, 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m    *factorgraph.Model
		code fault.Code
		want string
	}{
		{model([]int{0}, nil), fault.BadInput, "uai: invalid model: variable 0: domain of size 0, at least 1 is needed"},
		{model([]int{2}, &tensor.Dense{Shape: []int{2}, Data: []float64{1, -2}}), fault.BadInput,
			"uai: invalid model: factor 0: entry 1 is -2, a probability model needs at least 0"},
		{model([]int{2}, &tensor.Dense{Shape: []int{2}, Data: []float64{0, 0}}), fault.BadInput,
			"uai: invalid model: factor 0: all entries are 0"},
		{model(wide.Shape, wide), fault.Unsupported, "uai: factor 0: the format holds tables only: tensor: too large"},
		{
			model([]int{2}, huge), fault.Unsupported,
			"uai: factor 0: the format holds tables only: tensor: not a finite number",
		},
	} {
		var b bytes.Buffer
		err := Write(&b, c.m)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || fault.CodeOf(err) != c.code {
			t.Errorf("got %v (%s), want %s", err, fault.CodeOf(err), c.want)
		}
		if b.Len() > 0 {
			t.Errorf("%v: %d bytes were written", err, b.Len())
		}
	}
}

func TestPR(t *testing.T) {
	for _, v := range []float64{0, -8.39145, 7.07163159377837, 1e300, -1.0 / 3, math.Inf(-1)} {
		var b bytes.Buffer
		if err := WritePR(&b, v); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadPR(&b); err != nil || got != v {
			t.Errorf("%v came back as %v, %v", v, got, err)
		}
	}
	var b bytes.Buffer
	if err := WritePR(&b, math.NaN()); !errors.Is(err, ErrModel) || b.Len() > 0 {
		t.Errorf("NaN: %v", err)
	}
	for text, want := range map[string]string{
		"":           "uai: line 1: syntax error: the file ends where PR is needed",
		"MAR\n1":     `uai: line 1: syntax error: "MAR" where PR is needed`,
		"PR\n":       "uai: line 1: syntax error: the file ends where log10 Z is needed",
		"PR\nnan":    `uai: line 2: invalid model: log10 Z: "nan" is not finite`,
		"PR\n+inf":   `uai: line 2: invalid model: log10 Z: "+inf" is not finite`,
		"PR\n1\n2.5": `uai: line 3: syntax error: "2.5" after the end`,
	} {
		if _, err := ReadPR(strings.NewReader(text)); fmt.Sprint(err) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestMAR(t *testing.T) {
	want := [][]float64{{0.25, 0.75}, {1. / 3, 1. / 3, 1. / 3}, {1}}
	var b bytes.Buffer
	if err := WriteMAR(&b, want); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.HasPrefix(text, "MAR\n3 2 0.25 0.75 3 0.3333333333333333 ") {
		t.Errorf("wrote %q", text)
	}
	if got, err := ReadMAR(&b); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if err := WriteMAR(&b, [][]float64{{1.5}}); fmt.Sprint(err) != "uai: invalid model: variable 0: "+
		"probability 1.5 of value 0" {
		t.Errorf("got %v", err)
	}
	for text, want := range map[string]string{
		"PR\n1":              `uai: line 1: syntax error: "PR" where MAR is needed`,
		"MAR\n-1":            "uai: line 2: over the limit: -1 variables, 0 to 4194304 are read",
		"MAR\n1 0":           "uai: line 2: invalid model: variable 0: domain of size 0, at least 1 is needed",
		"MAR\n1 2 0.5":       "uai: line 2: syntax error: the file ends where variable 0: a probability is needed",
		"MAR\n1 2 0.5 1.5":   "uai: line 2: invalid model: variable 0: a probability is 1.5",
		"MAR\n1 1000000 0.5": "uai: line 2: syntax error: the file ends where variable 0: a probability is needed",
		"MAR\n1 1 1 0":       `uai: line 2: syntax error: "0" after the end`,
	} {
		if _, err := ReadMAR(strings.NewReader(text)); fmt.Sprint(err) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
