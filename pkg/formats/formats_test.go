package formats_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/uai"
)

// testdata is the folder of files that are no examples, from there.
const testdata = "../internal/models/bayesnet/testdata/"

// examples are a file of every format.
var examples = map[formats.Format]string{
	formats.UAI: "asia.uai", formats.JSON: "asia.json", formats.BIF: "heating.bif", formats.XMLBIF: "parcel.xml",
	formats.NET: "orchard.net", formats.DSC: "mailserver.dsc", formats.XDSL: "engine.xdsl",
	formats.DNE: testdata + "coat.dne", formats.DSL: testdata + "chest.dsl", formats.PGMX: testdata + "fever.pgmx",
	formats.CNF: "doors.cnf", formats.FG: "ferry.fg", formats.WCSP: "rota.wcsp", formats.CFN: "menu.cfn",
}

// TestTold: the name determines the format, and the contents do, under any name, compressed or not.
func TestTold(t *testing.T) {
	for as, file := range examples {
		if got := formats.Of("folder.bif/" + strings.ToUpper(file) + ".gz"); got != as {
			t.Errorf("%s: %q", file, got)
		}
		text, err := os.ReadFile(filepath.Join("..", "..", "examples", file))
		if err != nil {
			t.Fatal(err)
		}
		want, err := formats.Read(bytes.NewReader(text), as, "", uai.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err = z.Write(text)
		if err = errors.Join(err, z.Close()); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"", "model", "model.uai", "model.bif", "model.xml.gz"} {
			for _, content := range [][]byte{text, packed.Bytes(), append([]byte("\ufeff\n \t"), text...)} {
				if bytes.HasPrefix(text, []byte("<?xml")) && content[0] == 0xef {
					continue // nothing may come before the declaration of XML
				}
				got, err := formats.Read(bytes.NewReader(content), "", name, uai.Limits{})
				if err == nil {
					got.Lines, want.Lines = nil, nil // white space in front
				}
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s as %q: %v", file, name, err)
				}
			}
		}
	}
}

// TestBeginnings: comments and declarations may be in front.
func TestBeginnings(t *testing.T) {
	long := strings.Repeat("// a long comment\n", 2000)
	for text, want := range map[string]string{
		"net{}":                           "net: ",
		"% a\n% b\nclass x {}":            "net: ",
		"node x { }":                      "net: ",
		long + "network x { }":            "bif: ",
		"/* a */ // b\n/* c */variable x": "bif: ",
		"belief network \"x\"":            "dsc: ",
		"<?xml version=\"1.0\"?><!-- <smile> --><BIF></BIF>":         "xmlbif: ",
		"<!DOCTYPE BIF [ <!ELEMENT BIF (x)> ]>\n<bif></bif>":         "xmlbif: ",
		"<!-- a BIF once --><smile version=\"1.0\"><nodes/></smile>": "xdsl: ",
		"{}":                              "modeljson: ",
		"bayes":                           "uai: ",
		"c t wmc\np":                      "cnf: ",
		"p cnf":                           "cnf: ",
		"what is it":                      "line 1: \"what is it\" begins no format that is read: there are uai, json, bif",
		"":                                "the model is empty: there are uai, json, bif",
		"// ~->[DNET-1]->~\nbnet asia {}": "dne: ",
		"net asia\n{\n}":                  "dsl: ",
		"<ProbModelXML></ProbModelXML>":   "pgmx: ",
		"\n\n<html>\n<p>":                 "line 3: \"<html>\" begins no format that is read: there are uai, json, bif",
		"five 1 2 3 4\n":                  "wcsp: ",
		"p 1 2 3 4\n":                     "wcsp: ",
		"net 1 2 3 4\n":                   "wcsp: ",
		"# a comment\n3\n\n1":             "fg: ",
		"7\n":                             "fg: ",
		"{\n \"problem\": {\"name\": 1":   "cfn: ",
		"# a comment\n{problem [p <3]":    "cfn: ",
		"{\"problems\": 1}":               "modeljson: ",
	} {
		_, err := formats.Read(strings.NewReader(text), "", "", uai.Limits{})
		if err == nil || !strings.Contains(err.Error(), want) || fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
	if _, err := formats.Read(strings.NewReader("net % of Hugin\n{}"), "", "", uai.Limits{}); err == nil ||
		!strings.HasPrefix(err.Error(), "net: ") {
		t.Error(err)
	}
	// nothing in the text tells: the name does
	_, err := formats.Read(strings.NewReader("what is it"), "", "a.bif.gz", uai.Limits{})
	if err == nil || !strings.HasPrefix(err.Error(), "bif: ") {
		t.Error(err)
	}
}

// TestForeignFormats: a format that is known and not read is refused by its name, by its beginning under any name or by the ending of its
// file's name, and the error lists the formats that are read. No error asks for MARKOV or BAYES.
func TestForeignFormats(t *testing.T) {
	for text, want := range map[string]string{
		"% coins\n0.4::heads(1).\n": "ProbLog",
		"LIMID\n3\n2 2 2\n":         "an influence diagram (LIMID)",
		"CREDAL\n3\n":               "a credal network",
		"<?xml version=\"1.0\"?>\n<instance format=\"XCSP3\" type=\"CSP\">": "XCSP",
		"<ANALYSISNOTEBOOK NAME=\"n\">":                                     "Microsoft's XBN",
		"<PMML version=\"4.3\">":                                            "PMML",
		"* #variable= 3 #constraint= 1\n":                                   "a pseudo-Boolean problem (OPB)",
		"model {\n x ~ dnorm(0, 1)\n}":                                      "a program of BUGS or JAGS",
		"nnf 15 17 4\n":                                                     "a circuit (NNF)",
		"\xfd7zXZ\x00\x00":                                                  "a file compressed with xz",
	} {
		for _, file := range []string{"", "a.uai", "a.dsl", "a.xml"} {
			_, err := formats.Read(strings.NewReader(text), "", file, uai.Limits{})
			foreign(t, text, err, want)
		}
	}
	for file, want := range map[string]string{
		"a.mln": "Markov logic", "a.pl": "ProbLog", "A.O3PRM": "aGrUM's O3PRM", "a.pre": "a pedigree in LINKAGE format", "a.limid.gz": "LIMID",
		"a.neta": "Netica's binary format", "a.hkb": "Hugin's binary format", "a.lp": "a linear program", "a.stan": "a program of Stan",
	} {
		for _, text := range []string{"what is it", "class x { }"} { // Hugin's NET and O3PRM begin alike
			_, err := formats.Read(strings.NewReader(text), "", file, uai.Limits{})
			foreign(t, file, err, want)
		}
	}
}

func foreign(t *testing.T, what string, err error, want string) {
	t.Helper()
	said := fmt.Sprint(err)
	named := strings.HasPrefix(said, "this is ") && strings.Contains(said, want)
	if !named || !strings.Contains(said, "There are uai, json, bif") || fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("%.40q: %v, want %s", what, err, want)
	}
}

func TestUnknownFormats(t *testing.T) {
	if got := formats.Of("model.odt"); got != "" {
		t.Errorf("%q", got)
	}
	_, err := formats.Parse("odt")
	const want = `"odt" is no format: there are uai, json, bif, xmlbif, net, dsc, xdsl, cnf, dne, dsl, pgmx, fg, wcsp, cfn`
	if err == nil || err.Error() != want || fault.CodeOf(err) != fault.BadInput {
		t.Error(err)
	}
	if as, err := formats.Parse("XDSL"); err != nil || as != formats.XDSL {
		t.Error(as, err)
	}
	if _, err := formats.Read(strings.NewReader(""), "odt", "", uai.Limits{}); fault.CodeOf(err) != fault.Unsupported {
		t.Error(err)
	}
	if err := formats.Write(&bytes.Buffer{}, "odt", nil); fault.CodeOf(err) != fault.Unsupported {
		t.Error(err)
	}
}

// TestLimits: limits apply to the decompressed size.
func TestLimits(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write(append([]byte("network x { } "), bytes.Repeat([]byte(" "), 1<<20)...))
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	for _, as := range []formats.Format{"bif", "xmlbif", "net", "dsc", "xdsl"} {
		_, err := formats.Read(bytes.NewReader(packed.Bytes()), as, "", uai.Limits{Bytes: 1 << 19})
		if !errors.Is(err, uai.ErrLimit) || fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%s: %v", as, err)
		}
	}
	_, err = formats.Read(bytes.NewReader(packed.Bytes()[:20]), "", "", uai.Limits{})
	if fault.CodeOf(err) != fault.BadInput {
		t.Error(err)
	}
}
