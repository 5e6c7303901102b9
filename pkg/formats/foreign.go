package formats

import (
	"bytes"
	"regexp"
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
)

// foreignFormat is a format that is known and not read.
type foreignFormat struct {
	name      string
	endings   []string       // endings of file names
	beginning *regexp.Regexp // the beginning of its files; nil where none tells
	root      string         // the first element, of XML
	magic     string         // the first bytes, of binary files
	remedy    string         // the way to a format that is read; empty for none
}

// foreign has formats that people have and that are not read.
var foreign = []foreignFormat{
	{name: "Netica's binary format", endings: []string{".neta"}, remedy: "Netica saves a network as DNE"},
	{name: "Hugin's binary format", endings: []string{".hkb"}, remedy: "Hugin saves a network as NET"},
	{name: "Markov logic", endings: []string{".mln"}},
	{name: "ProbLog", endings: []string{".pl", ".problog"}, beginning: regexp.MustCompile(`^[0-9.]+\s*::`)},
	{name: "aGrUM's O3PRM", endings: []string{".o3prm"}, remedy: "aGrUM saves the network of a system as BIF, XMLBIF, NET or UAI"},
	{name: "a pedigree in LINKAGE format", endings: []string{".pre", ".ped"}},
	{name: "an influence diagram (LIMID)", endings: []string{".limid", ".uaiid"}, beginning: regexp.MustCompile(`^(LIMID|ID)\s`)},
	{name: "a credal network", beginning: regexp.MustCompile(`^(CREDAL|INTERVAL)\s`)},
	{name: "XCSP", root: "instance"},
	{name: "Microsoft's XBN", endings: []string{".xbn"}, root: "analysisnotebook"},
	{name: "PMML", endings: []string{".pmml"}, root: "pmml"},
	{name: "a pseudo-Boolean problem (OPB)", endings: []string{".opb", ".wbo"}, beginning: regexp.MustCompile(`^\* #variable=`)},
	{name: "a linear program", endings: []string{".lp", ".mps"}},
	{name: "a quadratic pseudo-Boolean problem", endings: []string{".qpbo"}},
	{name: "a program of BUGS or JAGS", endings: []string{".bug", ".bugs", ".jags"}, beginning: regexp.MustCompile(`^model\s*\{`)},
	{name: "a program of Stan", endings: []string{".stan"}},
	{name: "a file compressed with xz", endings: []string{".xz"}, magic: "\xfd7zXZ", remedy: "gzip is decompressed, or decompress it first"},
	{name: "a file compressed with bzip2", endings: []string{".bz2"}, magic: "BZh9", remedy: "gzip is decompressed, or decompress it first"},
	{name: "an archive (ZIP)", endings: []string{".zip"}, magic: "PK\x03\x04", remedy: "Unpack it first"},
	{name: "a circuit (NNF)", endings: []string{".nnf", ".ddnnf"}, beginning: regexp.MustCompile(`^nnf \d`)},
}

// foreignError returns the error for a text in a format that is known and not read, by its beginning or by the ending
// of the file's name. It returns nil for any other text.
func foreignError(text []byte, fileEnding string) error {
	for _, f := range foreign {
		if f.matches(skipComments(text)) || fileEnding != "" && slices.Contains(f.endings, fileEnding) {
			remedy := ""
			if f.remedy != "" {
				remedy = f.remedy + ". "
			}
			return fault.New(fault.Unsupported, "this is %s, which is not read. %sThere are %s", f.name, remedy, names())
		}
	}
	return nil
}

// matches reports whether a text begins as files of the format do.
func (f *foreignFormat) matches(text []byte) bool {
	switch {
	case f.beginning != nil && f.beginning.Match(text):
		return true
	case f.root != "" && bytes.HasPrefix(text, []byte("<")):
		return firstElement(text) == f.root
	}
	return f.magic != "" && bytes.HasPrefix(text, []byte(f.magic))
}
