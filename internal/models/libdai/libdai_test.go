package libdai_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/basetensor/basetensor/internal/models/libdai"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

func open(t *testing.T, file string) (*factorgraph.Model, error) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return libdai.Read(bytes.NewReader(text), uai.Limits{})
}

// weight is the product of all factors.
func weight(m *factorgraph.Model, x ...int) float64 {
	p := 1.0
	for _, f := range m.Factors {
		values := make([]int, len(f.Scope))
		for k, v := range f.Scope {
			values[k] = x[v]
		}
		entry, _ := oracle.Entry(f.Table, values).Float64()
		p *= entry
	}
	return p
}

// TestFiles: files have their weights, the first variable of a factor fastest.
func TestFiles(t *testing.T) {
	for file, want := range map[string]struct {
		domains []int
		names   []string
		weights map[string]float64
	}{
		"coins.fg": {[]int{2, 2, 3}, nil, map[string]float64{
			"[0 0 0]": 0.125, "[1 1 2]": 0.375, "[1 0 1]": 0.375, "[0 1 1]": 0.125, "[1 1 0]": 0}},
		"gaps.fg": {[]int{3, 2, 2}, []string{"4", "7", "8"}, map[string]float64{
			"[0 1 0]": 7.4, "[2 0 1]": 0, "[1 0 1]": 8.4, "[2 1 1]": 2.6}},
		"constant.fg": {[]int{3, 2}, nil, map[string]float64{"[0 0]": 0, "[0 1]": 2.5, "[1 0]": 5, "[2 0]": 10, "[2 1]": 2.5e-200}},
		"comments.fg": {[]int{1, 2}, nil, map[string]float64{"[0 0]": 0, "[0 1]": 21}},
		"empty.fg":    {nil, nil, map[string]float64{"[]": 1}},
	} {
		m, err := open(t, file)
		if err != nil || m.Validate() != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if !slices.Equal(m.Domains, want.domains) || !slices.Equal(m.Names, want.names) {
			t.Errorf("%s: %v %v", file, m.Domains, m.Names)
		}
		for text, w := range want.weights {
			x := []int{}
			for word := range strings.FieldsSeq(strings.Trim(text, "[]")) {
				x = append(x, int(word[0]-'0'))
			}
			if got := weight(m, x...); math.Abs(got-w) > 1e-12*w {
				t.Errorf("%s: %v has the weight %v, want %v", file, x, got, w)
			}
		}
		if back := through(t, m); !reflect.DeepEqual(back, m) {
			t.Errorf("%s: %+v became %+v", file, m, back)
		}
	}
}

func through(t *testing.T, m *factorgraph.Model) *factorgraph.Model {
	t.Helper()
	var b bytes.Buffer
	if err := libdai.Write(&b, m); err != nil {
		t.Fatal(err)
	}
	back, err := libdai.Read(&b, uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// TestRandomGraphs: a written model has the same weights, whatever variables it has in no factor.
func TestRandomGraphs(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 3))
		m := &factorgraph.Model{Domains: []int{1 + rng.IntN(3), 1 + rng.IntN(3), 1 + rng.IntN(3), 2}}
		for range rng.IntN(5) {
			scope := rng.Perm(4)[:rng.IntN(4)]
			shape, size := []int{}, 1
			for _, v := range scope {
				shape = append(shape, m.Domains[v])
				size *= m.Domains[v]
			}
			data := make([]float64, size)
			for i := range data {
				data[i] = rng.Float64() * float64(rng.IntN(3))
			}
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: &tensor.Dense{Shape: shape, Data: data}})
		}
		back := through(t, m)
		for i := range m.Domains[0] {
			for j := range m.Domains[1] {
				for k := range m.Domains[2] {
					for l := range 2 {
						if got, want := weight(back, i, j, k, l), weight(m, i, j, k, l); got != want {
							t.Fatalf("seed %d: %v, want %v", seed, got, want)
						}
					}
				}
			}
		}
	}
}

// TestOtherModels: a clause becomes a table; names that are no numbers are lost, and Labels says so; a negative entry is refused.
func TestOtherModels(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 2}, Names: []string{"a", "b"},
		Factors: []factorgraph.Factor{{Scope: []int{1, 0}, Table: factorgraph.Clause(true, false)}}}
	back := through(t, m)
	if _, isComplete := libdai.Labels(m); isComplete || weight(back, 1, 0) != 0 || weight(back, 0, 0) != 1 || back.Names != nil {
		t.Errorf("%+v", back)
	}
	m.Names = []string{"-1", "0"}
	if back := through(t, m); back.Names != nil || weight(back, 1, 0) != 0 {
		t.Errorf("a negative number as a name: %+v", back)
	}
	m.Factors[0].Table = &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, -3, 4}}
	err := libdai.Write(io.Discard, m)
	if fault.CodeOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "factor 0: entry 2 is -3") {
		t.Error(err)
	}
}

// TestMistakesHaveTheirLine: a mistake is reported with its line and its factor.
func TestMistakesHaveTheirLine(t *testing.T) {
	for file, want := range map[string]string{
		"sizes.fg":    "fg: line 10: invalid model: factor 1: variable 0 has 3 values, in an earlier factor it has 2",
		"twice.fg":    "fg: line 3: invalid model: factor 0: variable 0 is twice among its labels",
		"position.fg": "fg: line 7: invalid model: factor 0: position 0 is there twice",
		"short.fg":    "fg: line 6: syntax error: the file ends where the position of an entry of factor 0 is needed",
		"negative.fg": "fg: line 6: invalid model: factor 0: an entry is -0.5",
	} {
		_, err := open(t, file)
		refused(t, file, err, want)
	}
	for text, want := range map[string]string{
		"":                       "line 1: syntax error: the file ends where the number of factors is needed",
		"x":                      `line 1: syntax error: the number of factors: "x" is no integer`,
		"-1":                     "line 1: invalid model: the number of factors is -1",
		"1\n99999999999999":      "line 2: over the limit: 99999999999999 variables of factor 0",
		"1\n1\n0\n0":             "line 4: invalid model: factor 0: variable 0 has 0 values",
		"1\n1\n0\n9999999":       "line 4: over the limit: factor 0: variable 0 has 9999999 values",
		"1\n2\n0 1\n9000 9000\n": "line 4: over the limit: factor 0: its table needs 81000000 entries",
		"1\n1\n0\n2\n3":          "line 5: over the limit: 3 entries of factor 0, at most 2",
		"1\n1\n0\n2\n1\n5 1":     "line 6: invalid model: factor 0: position 5, its table has 2 entries",
		"1\n1\n0\n2\n1\n1 nan":   "line 6: invalid model: factor 0: an entry: \"nan\" is not finite",
		"1\n1\n0\n2\n1\n1":       "line 6: syntax error: the file ends where factor 0: an entry is needed",
		"0\n\n7":                 `line 3: syntax error: "7" after the last of 0 factors`,
	} {
		_, err := libdai.Read(strings.NewReader(text), uai.Limits{})
		refused(t, text, err, want)
	}
}

func refused(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || fault.CodeOf(err) != fault.BadInput {
		t.Errorf("%.80q: %v, want %q", what, err, want)
	}
}

// TestLimits: every limit is one.
func TestLimits(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "coins.fg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []uai.Limits{{Bytes: 50}, {Variables: 2}, {Factors: 2}, {Domain: 2}, {Legs: 4}, {Entries: 10}} {
		if _, err := libdai.Read(bytes.NewReader(text), l); !errors.Is(err, uai.ErrLimit) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if _, err := libdai.Read(iotest.ErrReader(io.ErrClosedPipe), uai.Limits{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a reader that fails: %v", err)
	}
}

// FuzzRead: a model read from any text is valid, and written and read again it is the same.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.fg"))
	if err != nil || len(files) < 10 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := libdai.Read(strings.NewReader(text), uai.Limits{Bytes: 1 << 14, Entries: 1 << 12})
		if err != nil {
			if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), "fg: line ") {
				t.Fatal(err)
			}
			return
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		back := through(t, m)
		same := fmt.Sprint(back.Domains, back.Names) == fmt.Sprint(m.Domains, m.Names)
		if !same || !reflect.DeepEqual(back.Factors, m.Factors) {
			t.Fatalf("%+v became %+v", m, back)
		}
	})
}
