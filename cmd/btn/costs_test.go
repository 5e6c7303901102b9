package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestCostsAreExplained: the assignment of the least cost of a cost function network, which examples/README.md has by enumeration, by
// names where the file has any; through a compressed copy in the other format, too.
func TestCostsAreExplained(t *testing.T) {
	copied := t.TempDir() + "/rota.cfn.gz"
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"explain", "../../examples/menu.cfn"}, []string{
			"(ln weight -16.5000000000)", "starter      salad\n", "main         pasta\n", "wine         none\n"}},
		{[]string{"explain", "../../examples/rota.wcsp"}, []string{"(ln weight -4.0000000000)", "others are as good"}},
		{[]string{"convert", "../../examples/rota.wcsp", copied}, nil},
		{[]string{"explain", copied}, []string{"(ln weight -4.0000000000)", "others are as good"}},
		{[]string{"explain", "../../examples/menu.cfn", "--evid", "wine=red"}, []string{"(ln weight -20.2500000000)", "wine         red\n"}},
	} {
		var out, said bytes.Buffer
		if code := run(t.Context(), c.args, &out, &said); code != 0 || said.Len() > 0 {
			t.Fatalf("%v: exit %d: %s", c.args, code, &said)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%v: no %q in\n%s", c.args, want, &out)
			}
		}
	}
}
