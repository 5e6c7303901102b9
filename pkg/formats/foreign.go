package formats

import (
	"bytes"
	"regexp"
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
)

// foreignFormat is a format that is known and not read.
type foreignFormat struct {
	name   string
	ends   []string       // endings of file names
	begins *regexp.Regexp // the beginning of its files; nil where none tells
	root   string         // the first element, of XML
	magic  string         // the first bytes, of binary files
	remedy string         // the way to a format that is read; empty for none
}

// foreign has formats that people have and that are not read.
var foreign = []foreignFormat{
	{name: "Netica's binary format", ends: []string{".neta"}, remedy: "Netica saves a network as DNE"},
	{name: "Hugin's binary format", ends: []string{".hkb"}, remedy: "Hugin saves a network as NET"},
	{name: "Markov logic", ends: []string{".mln"}},
	{name: "ProbLog", ends: []string{".pl", ".problog"}, begins: regexp.MustCompile(`^[0-9.]+\s*::`)},
	{name: "aGrUM's O3PRM", ends: []string{".o3prm"}, remedy: "aGrUM saves the network of a system as BIF, XMLBIF, NET or UAI"},
	{name: "a pedigree in LINKAGE format", ends: []string{".pre", ".ped"}},
	{name: "an influence diagram (LIMID)", ends: []string{".limid", ".uaiid"}, begins: regexp.MustCompile(`^(LIMID|ID)\s`)},
	{name: "a credal network", begins: regexp.MustCompile(`^(CREDAL|INTERVAL)\s`)},
	{name: "XCSP", root: "instance"},
	{name: "Microsoft's XBN", ends: []string{".xbn"}, root: "analysisnotebook"},
	{name: "PMML", ends: []string{".pmml"}, root: "pmml"},
	{name: "a pseudo-Boolean problem (OPB)", ends: []string{".opb", ".wbo"}, begins: regexp.MustCompile(`^\* #variable=`)},
	{name: "a linear program", ends: []string{".lp", ".mps"}},
	{name: "a quadratic pseudo-Boolean problem", ends: []string{".qpbo"}},
	{name: "a program of BUGS or JAGS", ends: []string{".bug", ".bugs", ".jags"}, begins: regexp.MustCompile(`^model\s*\{`)},
	{name: "a program of Stan", ends: []string{".stan"}},
	{name: "a file compressed with xz", ends: []string{".xz"}, magic: "\xfd7zXZ", remedy: "gzip is decompressed, or decompress it first"},
	{name: "a file compressed with bzip2", ends: []string{".bz2"}, magic: "BZh9", remedy: "gzip is decompressed, or decompress it first"},
	{name: "an archive (ZIP)", ends: []string{".zip"}, magic: "PK\x03\x04", remedy: "Unpack it first"},
	{name: "a circuit (NNF)", ends: []string{".nnf", ".ddnnf"}, begins: regexp.MustCompile(`^nnf \d`)},
}

// refuse is the error for a foreign format, by the beginning of a text or by the ending of a file's name; nil for others.
func refuse(text []byte, end string) error {
	for _, f := range foreign {
		if f.is(start(text)) || end != "" && slices.Contains(f.ends, end) {
			remedy := ""
			if f.remedy != "" {
				remedy = f.remedy + ". "
			}
			return fault.New(fault.Unsupported, "this is %s, which is not read. %sThere are %s", f.name, remedy, names())
		}
	}
	return nil
}

// is reports whether a text begins as files of the format do.
func (f *foreignFormat) is(text []byte) bool {
	switch {
	case f.begins != nil && f.begins.Match(text):
		return true
	case f.root != "" && bytes.HasPrefix(text, []byte("<")):
		return firstElement(text) == f.root
	}
	return f.magic != "" && bytes.HasPrefix(text, []byte(f.magic))
}
