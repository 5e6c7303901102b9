package formats

// Recognition of a format by the beginning of a text, and by the ending of a file's name.

import (
	"bytes"
	"encoding/xml"
	"io"
	"regexp"
	"strings"

	"github.com/basetensor/basetensor/pkg/fault"
)

// recognise returns the format of a text by its beginning, or else by the ending of the file's name. A format that is
// known and not read is an error, and so is a text of no known format.
func recognise(text []byte, file string) (Format, error) {
	if err := foreignError(text, ending(file)); err != nil {
		return "", err
	}
	if as := detect(text); as != "" {
		return as, nil
	}
	if as := Of(file); as != "" {
		return as, nil
	}

	// an error that shows the first line
	content := skipComments(text)
	if len(content) == 0 {
		return "", fault.New(fault.BadInput, "the model is empty: there are %s", names())
	}
	line := 1 + bytes.Count(text[:len(text)-len(content)], []byte("\n"))
	first, _, _ := bytes.Cut(content, []byte("\n"))
	return "", fault.New(fault.BadInput, "line %d: %.40q begins no format that is read: there are %s", line, first, names())
}

// sniffLength bounds the bytes of a file that are searched for the format: comments may stand in front.
const sniffLength = 1 << 16

// detect returns the format of a text by its beginning; "" if that is not clear.
func detect(text []byte) Format {
	text = skipComments(text)
	line, _, _ := strings.Cut(strings.ToLower(string(text)), "\n")
	first, _, _ := strings.Cut(strings.Join(strings.Fields(line), " "), " ")
	switch {
	case costNetwork.Match(text):
		return CFN
	case strings.HasPrefix(line, "{"):
		return JSON
	case first == "markov" || first == "bayes":
		return UAI
	case strings.HasPrefix(line, "<"):
		return detectXML(text)
	case first != "c" && costHeader.Match(text): // whatever the problem is called
		return WCSP
	case first == "belief":
		return DSC
	case first == "bnet":
		return DNE
	case namedNet.Match(text):
		return DSL
	case first == "network" || first == "variable":
		return BIF
	case first == "c" || first == "p":
		return CNF
	case strings.HasPrefix(first, "net{") || first == "net" || first == "class" || first == "node":
		return NET
	case factorCount.Match(text):
		return FG
	}
	return ""
}

// The beginnings of cost function networks and of libDAI's files, behind lines with a comment, and of GeNIe's DSL: it has a name between
// net and its brace, and Hugin's NET has none.
var (
	namedNet    = regexp.MustCompile(`^net\s+[^{%/\s]`)
	costNetwork = regexp.MustCompile(`^(#[^\n]*\n\s*)*[{[]\s*"?problem\b`)
	costHeader  = regexp.MustCompile(`^\S+[ \t]+\d+[ \t]+\d+[ \t]+\d+[ \t]+\d+\s`)
	factorCount = regexp.MustCompile(`^(#[^\n]*\n\s*)*\d+\s*(\n|$)`)
)

// detectXML returns the format of an XML text by its first element; "" if it is another one.
func detectXML(text []byte) Format {
	switch firstElement(text) {
	case "bif", "network":
		return XMLBIF
	case "smile":
		return XDSL
	case "probmodelxml":
		return PGMX
	}
	return ""
}

// firstElement returns the name of the first element of an XML text in lower case. The element may stand behind <? …
// ?>, <!-- … --> and <!DOCTYPE … [ … ]>.
func firstElement(text []byte) string {
	d := xml.NewDecoder(bytes.NewReader(text))
	// Bytes as they are, since the name of an element is wanted only.
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for {
		token, err := d.RawToken()
		if err != nil {
			return ""
		}
		if first, ok := token.(xml.StartElement); ok {
			return strings.ToLower(first.Name.Local)
		}
	}
}

// skipComments returns the text without white space and comments in front.
func skipComments(text []byte) []byte {
	for {
		text = bytes.TrimLeft(text, " \t\r\n\v\f")
		var end string
		switch {
		case bytes.HasPrefix(text, []byte("//")):
			end = "\n"
		case bytes.HasPrefix(text, []byte("/*")):
			end = "*/"
		case bytes.HasPrefix(text, []byte("%")):
			end = "\n"
		default:
			return text
		}
		_, tail, hasEnd := bytes.Cut(text, []byte(end))
		if !hasEnd { // the text is a comment to its end
			return nil
		}
		text = tail
	}
}
