package fit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/cases"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// TestUnseen: variables without any observation and values without any case, of cases with a weight above 0; long lists are cut.
func TestUnseen(t *testing.T) {
	var names []string
	domains := slices.Repeat([]int{3}, 12)
	for v := range domains {
		names = append(names, fmt.Sprintf("v%d", v))
	}
	m := &factorgraph.Model{Domains: domains, Names: names}
	labels, err := m.Labels()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text      string
		variables []int
		values    []factorgraph.Observation
		says      []string
	}{
		{"v0,NumCases\n0,1\n1,1\n2,0\n", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, []factorgraph.Observation{{Var: 0, Value: 2}},
			[]string{`no case observes "v1", "v2", "v3", "v4", "v5" and 6 more variables: `, `no case has "v0" = "2": the probability becomes 0`}},
		{strings.Join(names, ",") + "\n" + strings.Repeat("0,", 11) + "0\n" + strings.Repeat("1,", 11) + "1\n" + "2,2,2,2,2,2" +
			strings.Repeat(",", 6) + "\n", nil, lastValues(6, 12),
			[]string{`no case has "v6" = "2", "v7" = "2", "v8" = "2", "v9" = "2", "v10" = "2" and 1 more value: the probability becomes 0`}},
		{strings.Join(names, ",") + "\n" + strings.Repeat("0,", 11) + "0\n" + strings.Repeat("1,", 11) + "1\n" + strings.Repeat("2,", 11) + "2\n",
			nil, nil, nil},
	} {
		in, err := cases.NewReader(strings.NewReader(c.text), labels, cases.Columns{})
		if err != nil {
			t.Fatal(err)
		}
		d, err := Read(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		u := d.Unseen(m)
		if !slices.Equal(u.Variables, c.variables) || !slices.Equal(u.Values, c.values) {
			t.Errorf("%.30q: %v, want %v and %v", c.text, u, c.variables, c.values)
		}
		says := u.Texts(labels, false)
		if !slices.EqualFunc(says, c.says, strings.HasPrefix) {
			t.Errorf("%.30q: it says %q, want %q", c.text, says, c.says)
		}
	}
}

// lastValues are the values 2 of variables from one up to another.
func lastValues(from, to int) (list []factorgraph.Observation) {
	for v := from; v < to; v++ {
		list = append(list, factorgraph.Observation{Var: v, Value: 2})
	}
	return list
}
