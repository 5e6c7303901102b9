package bayesnet

// Text that is not UTF-8.

import (
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

// xmlDeclaration matches the beginning of an XML file that names its encoding.
var xmlDeclaration = regexp.MustCompile(`^\s*<\?xml[^>]*\sencoding\s*=\s*["']([^"'>]*)["']`)

// decode turns text that is not UTF-8 into UTF-8. The encoding is the one that an XML declaration names, else Latin-1,
// which leaves ASCII as it is.
func (s *source) decode() error {
	declared := xmlDeclaration.FindStringSubmatch(s.text[:min(len(s.text), 1<<10)]) // it stands at the beginning
	page := encoding.Encoding(charmap.ISO8859_1)
	if declared == nil {
		s.isEncodingUnknown = true
	} else if page = codePage(declared[1]); page == nil {
		return fmt.Errorf("the text is not in UTF-8, and its encoding %s is not read: save it as UTF-8", quote(declared[1]))
	}
	text, err := page.NewDecoder().String(s.text)
	s.text = text
	return err
}

// codePage returns the encoding with one byte per character of this name, such as ISO-8859-1 or windows-1252; nil if
// there is none.
func codePage(name string) encoding.Encoding {
	name = normaliseName(name)
	if name == "latin1" {
		return charmap.ISO8859_1
	}
	for _, page := range charmap.All {
		if stringer, ok := page.(fmt.Stringer); ok && normaliseName(stringer.String()) == name {
			return page
		}
	}
	return nil
}

// normaliseName returns the name of an encoding in lower case without hyphens, underscores and blanks.
func normaliseName(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}
