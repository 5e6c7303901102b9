package bayesnet

// Text that is not UTF-8.

import (
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

// declaration is the beginning of an XML file, with its encoding.
var declaration = regexp.MustCompile(`^\s*<\?xml[^>]*\sencoding\s*=\s*["']([^"'>]*)["']`)

// decode turns text that is not UTF-8 into UTF-8: by the encoding that its declaration names, if it is XML, else by Latin-1, which
// leaves ASCII as it is.
func (s *source) decode() error {
	declared := declaration.FindStringSubmatch(s.text[:min(len(s.text), 1<<10)])
	page := encoding.Encoding(charmap.ISO8859_1)
	if declared == nil {
		s.undeclared = true
	} else if page = codePage(declared[1]); page == nil {
		return fmt.Errorf("the text is not in UTF-8, and its encoding %s is not read: save it as UTF-8", quoted(declared[1]))
	}
	text, err := page.NewDecoder().String(s.text)
	s.text = text
	return err
}

// codePage is the encoding of one byte per character with a name, as ISO-8859-1 or windows-1252; nil if there is none.
func codePage(name string) encoding.Encoding {
	name = letters(name)
	if name == "latin1" {
		return charmap.ISO8859_1
	}
	for _, page := range charmap.All {
		if named, ok := page.(fmt.Stringer); ok && letters(named.String()) == name {
			return page
		}
	}
	return nil
}

// letters is a name in lower case without signs.
func letters(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}
