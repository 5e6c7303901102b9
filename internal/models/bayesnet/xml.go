package bayesnet

// Elements of XML files, one below another, with their places.

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/basetensor/basetensor/pkg/uai"
)

// element is an element with its text and the elements in it.
type element struct {
	name string // in lower case
	at   int
	attr []xml.Attr
	text string // white space at both ends removed
	kids []*element
}

// mostKids bounds the elements within one node of a file.
const mostKids = 1 << 16

// attribute returns an attribute, empty if there is none.
func (e *element) attribute(name string) string {
	for _, a := range e.attr {
		if strings.EqualFold(a.Name.Local, name) {
			return strings.TrimSpace(a.Value)
		}
	}
	return ""
}

// all returns the elements of a name directly within e.
func (e *element) all(name string) (list []*element) {
	for _, kid := range e.kids {
		if kid.name == name {
			list = append(list, kid)
		}
	}
	return list
}

// only returns the element of a name directly within e, nil if there is none; false: there are several.
func (e *element) only(name string) (*element, bool) {
	list := e.all(name)
	if len(list) == 0 {
		return nil, true
	}
	return list[0], len(list) == 1
}

// root is the name of the first element, in lower case; empty if there is none.
func (s *source) root() string {
	d := s.decoder()
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

// decoder reads the text, which is UTF-8 whatever its declaration says.
func (s *source) decoder() *xml.Decoder {
	d := xml.NewDecoder(strings.NewReader(s.text))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	return d
}

// elements gives every element that lies directly below a path, such as bif, network, to do, one after the other, each with all that
// is in it. The path is there once. Elements elsewhere are passed.
func (s *source) elements(path []string, do func(*element)) {
	d := s.decoder()
	entered := false
	for depth := 0; s.err == nil; {
		at := int(d.InputOffset())
		token, err := d.Token()
		switch t := token.(type) {
		case xml.StartElement:
			name := strings.ToLower(t.Name.Local)
			switch {
			case depth == len(path):
				left := mostKids
				do(s.element(d, t, at, &left, 0))
			case name == path[depth]:
				if depth++; depth < len(path) {
					break
				}
				if entered {
					s.fail(at, uai.ErrModel, "a second element %s: a second model begins here, and a file has one", quoted(t.Name.Local))
				}
				entered = true
			case depth == 0:
				s.fail(at, uai.ErrSyntax, "the element %s where %s is needed", quoted(t.Name.Local), path[0])
			default:
				err = d.Skip()
			}
		case xml.EndElement:
			depth--
		}
		if errors.Is(err, io.EOF) && depth == 0 {
			return
		}
		if err != nil {
			s.broken(at, err)
		}
	}
}

// broken is an error in the XML itself.
func (s *source) broken(at int, err error) {
	s.fail(min(at, len(s.text)), uai.ErrSyntax, "%w", err)
}

// element reads up to the end of an element.
func (s *source) element(d *xml.Decoder, start xml.StartElement, at int, left *int, depth int) *element {
	e := &element{name: strings.ToLower(start.Name.Local), at: at, attr: start.Attr}
	var text strings.Builder
	for s.err == nil {
		from := int(d.InputOffset())
		token, err := d.Token()
		switch t := token.(type) {
		case xml.CharData:
			text.Write(t)
		case xml.StartElement:
			if *left--; *left < 0 || depth > 16 {
				s.fail(from, uai.ErrLimit, "more than %d elements, or 16 levels of them, in one", mostKids)
				break
			}
			e.kids = append(e.kids, s.element(d, t, from, left, depth+1))
		case xml.EndElement:
			e.text = strings.TrimSpace(text.String())
			return e
		}
		if err != nil {
			s.broken(from, err)
		}
	}
	return e
}

// numbers reads the words of an element into a list: as many as there are places.
func (n *network) numbers(e *element, what string, into []float64) {
	n.words(e, what, "numbers", len(into), func(i int, word string) {
		into[i] = n.entry(e.at, word, fmt.Sprintf("%s: number %d", what, i+1))
	})
}

// words gives each of the words of an element, as many as are needed, to do; false after an error.
func (n *network) words(e *element, what, unit string, needed int, do func(i int, word string)) bool {
	rest := e.text
	for i := range needed {
		word := ""
		if word, rest = cutWord(rest); word == "" {
			n.fail(e.at, uai.ErrModel, "%s: %d %s, %d are needed", what, i, unit, needed)
		} else {
			do(i, word)
		}
		if n.err != nil {
			return false
		}
	}
	if word, _ := cutWord(rest); word != "" {
		n.fail(e.at, uai.ErrModel, "%s: more than %d %s", what, needed, unit)
	}
	return n.err == nil
}

// cutWord returns the first word of a text, and the rest behind it.
func cutWord(text string) (word, rest string) {
	from := 0
	for from < len(text) && isSpace(text[from]) {
		from++
	}
	to := from
	for to < len(text) && !isSpace(text[to]) {
		to++
	}
	return text[from:to], text[to:]
}

// escaped is a name within XML; blanks at its ends and characters that XML does not have cannot be written.
func (w *written) escaped(name string) string {
	if name != strings.TrimSpace(name) {
		w.cannot(name, "it has blanks at an end")
	}
	for _, r := range name {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\ufffe' || r == '\uffff' {
			w.cannot(name, "XML has no control characters")
		}
	}
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(name)); err != nil {
		w.cannot(name, err.Error())
	}
	return b.String()
}
