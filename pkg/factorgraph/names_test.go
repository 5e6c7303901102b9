package factorgraph_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

func labels(t *testing.T, domains []int, names []string, states [][]string) *factorgraph.Labels {
	t.Helper()
	l, err := factorgraph.NewLabels(domains, names, states)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestNamesAreFound: names win over positions, and positions are taken where nobody can mean a name.
func TestNamesAreFound(t *testing.T) {
	l := labels(t, []int{2, 3, 2, 2}, []string{"smoke", "", "5", "X ray"}, [][]string{{"no", "yes"}, nil, {"1", "0"}, {"", "bad"}})
	for _, c := range []struct {
		variable, value string
		v, x            int // −1: refused
		says            string
	}{
		{"smoke", "yes", 0, 1, ""},
		{"smoke", "0", 0, -1, `variable "smoke" has no value "0": there are "no" and "yes"`},
		{"0", "yes", -1, 0, `no variable "0": did you mean "5"?`}, // "5" is a name, so a number may be one
		{"1", "2", 1, 2, ""},
		{"5", "1", 2, 0, ""}, // a name, not a position
		{"5", "0", 2, 1, ""},
		{"X ray", "bad", 3, 1, ""},
		{"X ray", "0", 3, 0, ""}, // without a name
		{"X ray", "1", 3, -1, `variable "X ray" has no value "1": there are "0" and "bad"`},
		{"smok", "", -1, 0, `no variable "smok": did you mean "smoke"?`},
		{"Smoke", "", -1, 0, `no variable "Smoke": did you mean "smoke"?`},
		{"4", "", -1, 0, `no variable "4": did you mean "5"?`},
		{"3", "", -1, 0, `no variable "3": did you mean "5"?`},
		{"99999999999999999999", "", -1, 0, `no variable "99999999999999999999"`},
		{"-1", "", -1, 0, `no variable "-1"`},
		{"", "", -1, 0, `no variable ""`},
		{"unlike", "", -1, 0, `no variable "unlike"`},
		{"smoke", "ye", 0, -1, `variable "smoke" has no value "ye": did you mean "yes"? There are "no" and "yes"`},
		{"smoke", "maybe", 0, -1, `has no value "maybe": there are "no" and "yes"`},
		{"smoke", "2", 0, -1, `variable "smoke" has no value "2": there are "no" and "yes"`},
		{"1", "yes", 1, -1, `variable 1 has no value "yes": its values have no names, only positions from 0 to 2`},
		{"5", "2", 2, -1, `variable "5" has no value "2": there are "1" and "0"`},
		{"X ray", "", 3, -1, `has no value ""`},
	} {
		v, err := l.Variable(c.variable)
		if c.v < 0 {
			if err == nil || !strings.Contains(err.Error(), c.says) || fault.CodeOf(err) != fault.BadInput {
				t.Errorf("%q: %d, %v, want %s", c.variable, v, err, c.says)
			}
			continue
		}
		if err != nil || v != c.v {
			t.Errorf("%q: %d, %v, want %d", c.variable, v, err, c.v)
			continue
		}
		x, err := l.Value(v, c.value)
		if c.x < 0 {
			if err == nil || !strings.Contains(err.Error(), c.says) || fault.CodeOf(err) != fault.BadInput {
				t.Errorf("%q=%q: %d, %v, want %s", c.variable, c.value, x, err, c.says)
			}
		} else if err != nil || x != c.x {
			t.Errorf("%q=%q: %d, %v, want %d", c.variable, c.value, x, err, c.x)
		}
	}
}

// TestPositionsAreTaken: a variable's position where no name is a number other than its position, a value's where values have no names.
func TestPositionsAreTaken(t *testing.T) {
	for _, names := range [][]string{nil, {"a", "1", ""}} {
		l := labels(t, []int{2, 2, 2}, names, [][]string{{"0", "1"}, {"no", "yes"}, nil})
		for v := range 3 {
			if got, err := l.Variable(fmt.Sprint(v)); err != nil || got != v {
				t.Errorf("%q: variable %d: %d, %v", names, v, got, err)
			}
			if got, err := l.Value(v, "1"); (err != nil || got != 1) == (v != 1) {
				t.Errorf("%q: value 1 of %d: %d, %v", names, v, got, err)
			}
		}
		for _, text := range []string{"3", "99999999999999999999"} {
			if _, err := l.Variable(text); err == nil || !strings.Contains(err.Error(), "the model has 3") {
				t.Errorf("%q: %v", names, err)
			}
		}
	}
}

// TestLabelsAreFoundAgain: for any names, looking up a label returns the thing it labels.
func TestLabelsAreFoundAgain(t *testing.T) {
	words := []string{"", "", "0", "1", "2", "3", "01", "a", "b", "A", "ab", "é", "a=b", " "}
	tried := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		draw := func(n int) []string {
			out := make([]string, n)
			for i := range out {
				out[i] = words[rng.IntN(len(words))]
			}
			return out
		}
		domains := make([]int, 1+rng.IntN(4))
		states := make([][]string, len(domains))
		for v := range domains {
			domains[v] = 1 + rng.IntN(3)
			if rng.IntN(3) > 0 {
				states[v] = draw(domains[v])
			}
		}
		l, err := factorgraph.NewLabels(domains, draw(len(domains)), states)
		if err != nil {
			if !errors.Is(err, factorgraph.ErrModel) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			continue
		}
		tried++
		for v := range domains {
			name := l.OfVariable(v)
			if got, err := l.Variable(name); err != nil || got != v {
				t.Errorf("seed %d: variable %d is called %q, which is %d, %v", seed, v, name, got, err)
			}
			for x := range domains[v] {
				name := l.OfValue(v, x)
				if got, err := l.Value(v, name); err != nil || got != x {
					t.Errorf("seed %d: value %d of %d is called %q, which is %d, %v", seed, x, v, name, got, err)
				}
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d models had distinct names", tried)
	}
}

func TestLabelsRefuse(t *testing.T) {
	for _, c := range []struct {
		names  []string
		states [][]string
		says   string
	}{
		{[]string{"a"}, nil, "1 names for 2 variables"},
		{[]string{"a", "a"}, nil, `variables 0 and 1 are both called "a"`},
		{[]string{"", "0"}, nil, `variable 1 is called "0", the position of one without a name`},
		{nil, [][]string{{"x", "y"}}, "values of 1 variables"},
		{[]string{"a", "b"}, [][]string{nil, {"x", "y"}}, `variable "b": 2 names for 9 values`},
		{nil, [][]string{{"x", "x"}, nil}, `variable 0: values 0 and 1 are both called "x"`},
		{nil, [][]string{{"1", ""}, nil}, `value 0 is called "1", the position of one without a name`},
		{nil, [][]string{nil, {"1", "2", "3", "4", "5", "6", "7", "8", "5"}}, `values 4 and 8 are both called "5"`},
	} {
		_, err := factorgraph.NewLabels([]int{2, 9}, c.names, c.states)
		if err == nil || !errors.Is(err, factorgraph.ErrModel) || !strings.Contains(err.Error(), c.says) ||
			fault.CodeOf(err) != fault.BadInput || strings.Count(err.Error(), "invalid model") != 1 {
			t.Errorf("%q %q: %v, want %s", c.names, c.states, err, c.says)
		}
		m := &factorgraph.Model{Domains: []int{2, 9}, Names: c.names, States: c.states}
		if m.Validate() == nil {
			t.Errorf("%q %q is valid", c.names, c.states)
		}
	}
}

// editDistance is the definition.
func editDistance(a, b string) int {
	switch {
	case a == "":
		return len(b)
	case b == "":
		return len(a)
	}
	same := editDistance(a[1:], b[1:])
	if a[0] != b[0] {
		same++
	}
	return min(same, 1+editDistance(a[1:], b), 1+editDistance(a, b[1:]))
}

// TestNearestNamesAreSuggested: at most three, the nearest of all, by the definition of the distance.
func TestNearestNamesAreSuggested(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	word := func(n int) string {
		b := make([]byte, 1+rng.IntN(n))
		for i := range b {
			b[i] = "abc"[rng.IntN(3)]
		}
		return string(b)
	}
	for range 300 {
		var names []string
		for range 1 + rng.IntN(12) {
			if w := word(6); !slices.Contains(names, w) {
				names = append(names, w)
			}
		}
		asked := word(7)
		if slices.Contains(names, asked) {
			continue
		}
		domains := make([]int, len(names))
		for i := range domains {
			domains[i] = 1
		}
		want := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return editDistance(asked, n) > (len(asked)+2)/3 })
		slices.SortStableFunc(want, func(a, b string) int { return editDistance(asked, a) - editDistance(asked, b) })
		_, err := labels(t, domains, names, nil).Variable(asked)
		said := fmt.Sprintf("no variable %q", asked)
		for i, n := range want[:min(3, len(want))] {
			sep := ", "
			if i == 0 {
				sep = ": did you mean "
			} else if i == min(3, len(want))-1 {
				sep = " or "
			}
			said += fmt.Sprintf("%s%q", sep, n)
		}
		if len(want) > 0 {
			said += "?"
		}
		if err == nil || err.Error() != said {
			t.Errorf("%q of %q: %v, want %s", asked, names, err, said)
		}
	}
}

// TestAliasesAreFound: a variable is found under its second name, unless that is the name or the position of another, or of several.
func TestAliasesAreFound(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 2, 2, 2}, Names: []string{"smoke", "lung", "xray", "dysp"},
		Aliases: []string{"Does the patient smoke?", "A picture", "A picture", "lung"}}
	l, err := m.Labels()
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]int{"Does the patient smoke?": 0, "smoke": 0, "lung": 1, "xray": 2, "2": 2, "dysp": 3} {
		if got, err := l.Variable(name); err != nil || got != v {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"A picture":               `"A picture" is a display name of 2 variables, variable "lung" and variable "xray" among them`,
		"Does the patient smoke ": `no variable "Does the patient smoke ": did you mean "Does the patient smoke?"?`,
		"":                        `no variable ""`,
	} {
		if _, err := l.Variable(name); fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if l.OfVariable(0) != "smoke" {
		t.Error(l.OfVariable(0))
	}
	m.Aliases = m.Aliases[:3]
	if err := m.Validate(); err == nil || !strings.Contains(err.Error(), "3 aliases for 4 variables") {
		t.Error(err)
	}
}
