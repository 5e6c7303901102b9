// One case per thing Read refuses, with its text, and the layouts it must accept.

package uai

import (
	"errors"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

func TestReadAccepts(t *testing.T) {
	want := &factorgraph.Model{Domains: []int{2, 3}, Factors: []factorgraph.Factor{
		{Scope: []int{1, 0}, Table: &tensor.Dense{Shape: []int{3, 2}, Data: []float64{1, 2, 0.5, 0, 0.001, 250}}},
		{Scope: []int{}, Table: &tensor.Dense{Shape: []int{}, Data: []float64{3}}},
	}}
	for name, text := range map[string]string{
		"plain":      "MARKOV\n2\n2 3\n2\n2 1 0\n0\n\n6\n 1 2\n .5 0\n 1e-3 2.5E+2\n1\n 3\n",
		"one line":   "MARKOV 2 2 3 2 2 1 0 0 6 1 2 0.5 -0 0.001 250 1 3",
		"CRLF":       "MARKOV\r\n2\r\n2 3\r\n2\r\n2 1 0\r\n0\r\n6\r\n1 2 0.5 0 0.001 250\r\n1\r\n3\r\n",
		"CR":         "MARKOV\r2\r2 3\r2\r2 1 0\r0\r6\r1 2 0.5 0 0.001 250\r1\r3",
		"tabs, feed": "\v\fMARKOV\t2\t2\t3\f2\v2 1 0 0 6 1 2 0.5 0 0.001 250 1 +3",
		"BOM, case":  "\ufeffMarkov 2 2 3 2 2 1 0 0 6 1 2 0.5 0 0.001 250 1 3",
		"zero":       "MARKOV 2 2 3 2 2 1 0 0 6 1 2 0.5 0e-400 0.001 250 1 3",
	} {
		got, err := Read(iotest.OneByteReader(strings.NewReader(text)), Limits{})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	bayes, err := Read(strings.NewReader("BAYES 1 2 1 1 0 2 0.25 0.75"), Limits{})
	if err != nil || !bayes.Bayes || !reflect.DeepEqual(bayes.Lines, []int{1}) {
		t.Errorf("BAYES: %+v, %v", bayes, err)
	}
	empty, err := Read(strings.NewReader("MARKOV 0 0"), Limits{})
	if err != nil || len(empty.Domains)+len(empty.Factors) != 0 {
		t.Errorf("empty model: %+v, %v", empty, err)
	}
}

func TestReadRefuses(t *testing.T) {
	small := Limits{Bytes: 400, Variables: 4, Factors: 3, Domain: 100, Legs: 5, Entries: 20}
	for _, c := range []struct {
		text string
		is   error
		want string
	}{
		{"", ErrSyntax, "uai: line 1: syntax error: the file ends where MARKOV or BAYES is needed"},
		{"LIMID 1", ErrSyntax, `uai: line 1: syntax error: "LIMID" where MARKOV or BAYES is needed`},
		{"MARKOV\n", ErrSyntax, "uai: line 1: syntax error: the file ends where the number of variables is needed"},
		{"MARKOV\nx", ErrSyntax, `uai: line 2: syntax error: the number of variables: "x" is not an integer`},
		{"MARKOV\n1.0", ErrSyntax, `uai: line 2: syntax error: the number of variables: "1.0" is not an integer`},
		{"MARKOV\n-1", ErrModel, "uai: line 2: invalid model: -1 variables"},
		{"MARKOV\n1000000000", ErrLimit, "uai: line 2: over the limit: 1000000000 variables, at most 4 are read"},
		{"MARKOV\n99999999999999999999", ErrLimit,
			`uai: line 2: over the limit: the number of variables: "99999999999999999999" does not fit an integer`},
		{"MARKOV\n2\n2 0", ErrModel, "uai: line 3: invalid model: variable 1: domain of size 0, at least 1 is needed"},
		{"MARKOV\n2\n2 -3", ErrModel, "uai: line 3: invalid model: variable 1: domain of size -3, at least 1 is needed"},
		{"MARKOV\n2\n2 101", ErrLimit, "uai: line 3: over the limit: variable 1: domain of size 101, at most 100 is read"},
		{"MARKOV\n2\n2", ErrSyntax, "uai: line 3: syntax error: the file ends where the domain of variable 1 is needed"},
		{"MARKOV 1 2\n4", ErrLimit, "uai: line 2: over the limit: 4 factors, at most 3 are read"},
		{"MARKOV 1 2\n-4", ErrModel, "uai: line 2: invalid model: -4 factors"},
		{
			"MARKOV 2 2 2 1\n3 0 1 0", ErrModel,
			"uai: line 2: invalid model: factor 0: 3 variables in the scope, the model has 2",
		},
		{"MARKOV 2 2 2 1\n-1", ErrModel, "uai: line 2: invalid model: factor 0: -1 variables in the scope, the model has 2"},
		{
			"MARKOV 2 2 2 1\n2 0\n2", ErrModel,
			"uai: line 3: invalid model: factor 0: scope position 1: variable 2, the model has 2",
		},
		{
			"MARKOV 2 2 2 1\n2 -1 0", ErrModel,
			"uai: line 2: invalid model: factor 0: scope position 0: variable -1, the model has 2",
		},
		{"MARKOV 2 2 2 2\n1 1\n2 1 1", ErrModel, "uai: line 3: invalid model: factor 1: variable 1 is twice in the scope"},
		{
			"MARKOV 2 2 2 3\n2 0 1\n2 0 1\n2 0 1", ErrLimit,
			"uai: line 4: over the limit: factor 2: more than 5 variables in all scopes together",
		},
		{
			"MARKOV 2 2 2 1 2 0", ErrSyntax,
			"uai: line 1: syntax error: the file ends where variable 1 of factor 0's scope is needed",
		},
		{"MARKOV 2 2 2 1 2 0 1\n3 1 1 1", ErrModel, "uai: line 2: invalid model: factor 0: 3 entries, its scope needs 4"},
		{"MARKOV 2 2 2 1 2 0 1\n-4 1 1 1", ErrModel, "uai: line 2: invalid model: factor 0: -4 entries, its scope needs 4"},
		{"MARKOV 2 5 5 1 2 0 1\n25 1 1 1", ErrLimit,
			"uai: line 2: over the limit: factor 0: its scope needs 25 entries, at most 20 are read in all tables together"},
		{"MARKOV 1 2 1 1 0\n2 1 NaN", ErrModel, "uai: line 2: invalid model: factor 0: an entry: \"NaN\" is not finite"},
		{"MARKOV 1 2 1 1 0\n2 1 -inf", ErrModel, "uai: line 2: invalid model: factor 0: an entry: \"-inf\" is not finite"},
		{"MARKOV 1 2 1 1 0\n2 1 Infinity", ErrModel, "uai: line 2: invalid model: factor 0: an entry: \"Infinity\" is not finite"},
		{
			"MARKOV 1 2 1 1 0\n2 1 1e999", ErrModel,
			`uai: line 2: invalid model: factor 0: an entry: "1e999" is beyond the range of float64: the largest is 1.8e+308`,
		},
		{
			"MARKOV 1 2 1 1 0\n2 1 1e-400", ErrModel,
			`uai: line 2: invalid model: factor 0: an entry: "1e-400" is beyond the range of float64: the smallest with all digits is 2.23e-308`,
		},
		{"MARKOV 1 2 1 1 0\n2 1 0.5.5", ErrSyntax, `uai: line 2: syntax error: factor 0: an entry: "0.5.5" is not a number`},
		{
			"MARKOV 1 2 1 1 0\n2 1 0x1p-2", ErrSyntax,
			`uai: line 2: syntax error: factor 0: an entry: "0x1p-2" is not a number`,
		},
		{"MARKOV 1 2 1 1 0\n2 1 1_0", ErrSyntax, `uai: line 2: syntax error: factor 0: an entry: "1_0" is not a number`},
		{
			"MARKOV 1 2 1 1 0\n2 1 a\x00b", ErrSyntax,
			`uai: line 2: syntax error: factor 0: an entry: "a\x00b" is not a number`,
		},
		{
			"MARKOV 1 2 1 1 0\n2 1 -0.5", ErrModel,
			"uai: line 2: invalid model: factor 0: entry 1 is -0.5, a probability model needs at least 0",
		},
		{"MARKOV 1 2 1 1 0\n2 0 0.0", ErrModel, "uai: line 2: invalid model: factor 0: all entries are 0"},
		{"MARKOV 1 2 1 1 0\n2 1", ErrSyntax, "uai: line 2: syntax error: the file ends where factor 0: an entry is needed"},
		{
			"MARKOV 1 2 1 1 0", ErrSyntax,
			"uai: line 1: syntax error: the file ends where the length of factor 0's table is needed",
		},
		{"MARKOV 1 2 1 1 0\n2 1 1\n0.5", ErrSyntax, `uai: line 3: syntax error: "0.5" after the end`},
		{"MARKOV " + strings.Repeat(" ", 400), ErrLimit, "uai: line 1: over the limit: more than 400 bytes"},
		{"MARKOV 1 2 1 1 0\n2 1 1" + strings.Repeat("0", 50) + "x", ErrSyntax,
			`uai: line 2: syntax error: factor 0: an entry: "1000000000000000000000000000000000000000"… is not a number`},
	} {
		m, err := Read(strings.NewReader(c.text), small)
		if m != nil || err == nil || err.Error() != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
			continue
		}
		if !errors.Is(err, c.is) || fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%q does not carry %q and bad_input", err, c.is)
		}
	}
}

func TestReadPassesErrorsOfTheReader(t *testing.T) {
	broken := errors.New("broken pipe")
	_, err := Read(io.MultiReader(strings.NewReader("MARKOV\n2"), iotest.ErrReader(broken)), Limits{})
	if !errors.Is(err, broken) || err.Error() != "uai: line 2: broken pipe" {
		t.Errorf("got %v", err)
	}
	if fault.CodeOf(err) == fault.BadInput {
		t.Error("a failed read is not the input's fault")
	}
}

func TestReadBoundsWords(t *testing.T) {
	_, err := Read(strings.NewReader("MARKOV "+strings.Repeat("1", maxWord+1)), Limits{})
	want := `uai: line 1: syntax error: a word of more than 2048 characters: "11111111111111111111"…`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Headers within the limits that promise gigabytes must cost no more memory than the few bytes that follow.
func TestReadAllocatesWhatItReads(t *testing.T) {
	forty := strings.Repeat("2 ", 40)
	scope := ""
	for i := range 26 {
		scope += " " + string(rune('0'+i/10)) + string(rune('0'+i%10))
	}
	for _, text := range []string{
		"MARKOV 4000000 2 2",
		"MARKOV 1 2 8000000 1 0",
		"MARKOV 40 " + forty + "1 26" + scope + " 67108864 1 1",
		"MARKOV 2 1000000 100 1 2 0 1 100000000 1",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(strings.NewReader(text), Limits{})
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrSyntax) {
			t.Errorf("%.30q…: %v", text, err)
		}
		// 64 KiB of buffer and 1024 items of each list; anything that trusts the header takes 8 MB and more.
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
			t.Errorf("%.30q…: %d bytes allocated", text, took)
		}
	}
}

func TestReadChecksTheProduct(t *testing.T) {
	// 70 binary variables in one scope: 2^70 entries wrap to 64 in 64 bits.
	text, scope := "MARKOV 70", " 70"
	for i := range 70 {
		text += " 2"
		scope += " " + string(rune('0'+i/10)) + string(rune('0'+i%10))
	}
	_, err := Read(strings.NewReader(text+" 1"+scope+" 64 1"), Limits{})
	want := "uai: line 1: over the limit: factor 0: its scope needs more than 2^63 entries, at most " +
		"134217728 are read in all tables together"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// A short file cannot declare more values than its bytes pay for.
func TestValuesFollowTheBytes(t *testing.T) {
	text := "MARKOV\n20\n" + strings.Repeat("1048576 ", 20) + "\n0\n"
	if _, err := Read(strings.NewReader(text), Limits{}); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "20971520 values") {
		t.Error(err)
	}
	if _, err := Read(strings.NewReader("MARKOV\n1\n1048576\n0\n"), Limits{}); err != nil {
		t.Error("one large variable:", err)
	}
}
