package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConvert: through every format and back is the same file, compressed or not, and losses are reported.
func TestConvert(t *testing.T) {
	folder, example := t.TempDir(), "../../examples/heating.bif"
	at := func(name string) string { return filepath.Join(folder, name) }
	convert := func(args ...string) (stdout, stderr string, code int) {
		var out, err bytes.Buffer
		code = run(t.Context(), append([]string{"convert"}, args...), &out, &err)
		return out.String(), err.String(), code
	}
	steps := []string{example, at("1.bif"), at("2.xml"), at("3.net.gz"), at("4.dsc"), at("5.json"), at("6.XDSL"), at("7.bif.gz")}
	for k := range steps[1:] {
		if out, said, code := convert(steps[k], steps[k+1]); code != 0 || out+said != "" {
			t.Fatalf("%v: exit %d: %s%s", steps[k:k+2], code, out, said)
		}
	}
	if magic, err := os.ReadFile(at("3.net.gz")); err != nil || !bytes.HasPrefix(magic, []byte{0x1f, 0x8b}) {
		t.Errorf("not compressed: %v", err)
	}
	first, _, _ := convert(at("4.dsc"), "-", "--to", "bif")
	want, err := os.ReadFile(at("1.bif"))
	if err != nil || first != string(want) {
		t.Errorf("%v: another file:\n%s", err, first)
	}
	out, said, code := convert(at("7.bif.gz"), "-", "--to", "uai", "--from", "bif")
	if code != 0 || !strings.HasPrefix(out, "BAYES\n8\n") ||
		said != "standard output: names of variables and values are lost: the format has none\n" {
		t.Errorf("exit %d: %s%s", code, out, said)
	}
	_, said, code = convert("../../examples/engine.xdsl", at("e.uai"))
	if code != 0 || !strings.Contains(said, "factors that became tables, since the format has nothing else: 1\n") {
		t.Errorf("exit %d: %s", code, said)
	}

	for from, want := range map[string]string{
		"menu.cfn " + at("m.cfn.gz"): "",
		"rota.wcsp " + at("r.cfn"):   "",
		"ferry.fg " + at("f.fg"):     "",
		"ferry.fg " + at("f.cfn"):    "f.cfn: names that were changed, since the format holds no blanks and no digit in front: 3\n",
		"asia.json " + at("a.fg"):    "a.fg: names of variables and values are lost: the format has numbers from 0 on\n",
		"asia.json " + at("a.cfn"):   "a.cfn: entries are costs of 9 decimals, −ln of the entries\n",
	} {
		_, said, code := convert(strings.Fields("../../examples/" + from)...)
		if code != 0 || want == "" && said != "" || !strings.Contains(said, want) {
			t.Errorf("%s: exit %d: %s, want %s", from, code, said, want)
		}
	}
	if same, err := os.ReadFile(at("f.fg")); err != nil || !strings.HasPrefix(string(same), "3\n\n1\n1 \n3 \n3\n0 0.5\n") {
		t.Errorf("%v: %s", err, same)
	}

	before, err := os.ReadFile(at("1.bif"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"../../examples/curie-weiss.json " + at("1.bif"),
			"the format holds Bayesian networks only: variable 199 is the last one of factors 0 and 200"},
		{example + " " + at("a.doc"), "a.doc: its name says no format: --to does"},
		{example + " - --to doc", `--to: "doc" is no format: there are uai, json, bif, xmlbif, net, dsc, xdsl`},
		{example + " " + at("a.net") + " --from dsc", "dsc: line 2, column 1: syntax error"},
		{example + " " + at("no/folder.net"), "no such file"},
		{example + " " + at("a.wcsp"), "wcsp is not written"},
		{at("none.bif") + " " + at("a.net"), "no such file"},
	} {
		_, said, code := convert(strings.Fields(c.args)...)
		if code == 0 || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit %d: %s, want %s", c.args, code, said, c.want)
		}
	}
	after, err := os.ReadFile(at("1.bif"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("an error left another file: %v", err)
	}
	left, err := filepath.Glob(at(".btn-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v are left: %v", left, err)
	}
}
