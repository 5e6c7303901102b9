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

// element is an XML element with its text and the elements in it.
type element struct {
	name       string     // in lower case
	offset     int        // where it begins in the text of the file
	attributes []xml.Attr // its attributes
	text       string     // its text, without white space at both ends
	children   []*element // the elements directly within it
}

// mostKids bounds the elements within one node of a file.
const mostChildren = 1 << 16

// attribute returns an attribute, empty if there is none.
func (e *element) attribute(name string) string {
	for _, a := range e.attributes {
		if strings.EqualFold(a.Name.Local, name) {
			return strings.TrimSpace(a.Value)
		}
	}
	return ""
}

// childrenNamed returns the elements of a name directly within e.
func (e *element) childrenNamed(name string) (list []*element) {
	for _, kid := range e.children {
		if kid.name == name {
			list = append(list, kid)
		}
	}
	return list
}

// onlyChild returns the element of a name directly within e, nil if there is none. isOnly is false only if there are several; then it
// returns the first one.
func (e *element) onlyChild(name string) (child *element, isOnly bool) {
	list := e.childrenNamed(name)
	if len(list) == 0 {
		return nil, true
	}
	return list[0], len(list) == 1
}

// rootName returns the name of the first element of the file, in lower case; empty if there is none.
func (s *source) rootName() string {
	d := s.newDecoder()
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

// newDecoder returns a decoder of the text from its beginning. The text is UTF-8 by now, whatever its declaration says.
func (s *source) newDecoder() *xml.Decoder {
	d := xml.NewDecoder(strings.NewReader(s.text))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	return d
}

// forEachElement calls do for every element directly below a path of names, such as bif, network, with all that the
// element contains. It skips elements elsewhere. A second element at the path is an error.
func (s *source) forEachElement(path []string, do func(*element)) {
	d := s.newDecoder()
	entered := false                // the path was there
	for depth := 0; s.err == nil; { // depth is the number of elements of the path that are open
		offset := int(d.InputOffset())
		token, err := d.Token()
		switch t := token.(type) {
		case xml.StartElement:
			name := strings.ToLower(t.Name.Local)
			switch {
			case depth == len(path): // an element below the path
				budget := mostChildren
				do(s.readElement(d, t, offset, &budget, 0)) // 0: no element of those that are kept is around it
			case name == path[depth]: // the next element of the path
				if depth++; depth < len(path) {
					break // of the switch: the path goes on
				}
				if entered {
					s.fail(offset, uai.ErrModel, "a second element %s: a second model begins here, and a file has one", quote(t.Name.Local))
				}
				entered = true
			case depth == 0:
				s.fail(offset, uai.ErrSyntax, "the element %s where %s is needed", quote(t.Name.Local), path[0])
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
			s.failXML(offset, err) // sets s.err, which ends the loop
		}
	}
}

// failXML notes an error in the XML itself.
func (s *source) failXML(offset int, err error) {
	s.fail(min(offset, len(s.text)), uai.ErrSyntax, "%w", err)
}

// readElement reads an element whose start was read, up to its end, with all elements in it. budget is the number of
// elements that may still follow within it; depth is the number of elements around it, at most 16 (chosen).
func (s *source) readElement(d *xml.Decoder, start xml.StartElement, offset int, budget *int, depth int) *element {
	e := &element{name: strings.ToLower(start.Name.Local), offset: offset, attributes: start.Attr}
	var text strings.Builder
	for s.err == nil {
		start := int(d.InputOffset())
		token, err := d.Token()
		switch t := token.(type) {
		case xml.CharData:
			text.Write(t)
		case xml.StartElement:
			if *budget--; *budget < 0 || depth > 16 {
				s.fail(start, uai.ErrLimit, "more than %d elements, or 16 levels of them, in one", mostChildren)
				break // of the switch: the error ends the loop
			}
			e.children = append(e.children, s.readElement(d, t, start, budget, depth+1))
		case xml.EndElement:
			e.text = strings.TrimSpace(text.String())
			return e
		}
		if err != nil {
			s.failXML(start, err)
		}
	}
	return e
}

// readNumbers reads the words of an element into list. It is an error if their number is not len(list).
func (n *network) readNumbers(e *element, what string, list []float64) {
	n.forEachWord(e, what, "numbers", len(list), func(i int, word string) {
		list[i] = n.parseEntry(e.offset, word, fmt.Sprintf("%s: number %d", what, i+1))
	})
}

// forEachWord calls do for each word of an element. It is an error if there are not as many words as needed. unit names the words in
// errors, and what the element. It returns false after an error.
func (n *network) forEachWord(e *element, what, unit string, needed int, do func(i int, word string)) bool {
	text := e.text
	for i := range needed {
		word := ""
		if word, text = cutWord(text); word == "" {
			n.fail(e.offset, uai.ErrModel, "%s: %d %s, %d are needed", what, i, unit, needed)
		} else {
			do(i, word)
		}
		if n.err != nil {
			return false
		}
	}
	if word, _ := cutWord(text); word != "" {
		n.fail(e.offset, uai.ErrModel, "%s: more than %d %s", what, needed, unit)
	}
	return n.err == nil
}

// cutWord returns the first word of a text, and the text behind it.
func cutWord(text string) (word, remainder string) {
	start := 0
	for start < len(text) && isSpace(text[start]) {
		start++
	}
	end := start
	for end < len(text) && !isSpace(text[end]) {
		end++
	}
	return text[start:end], text[end:]
}

// escapeXML returns a name as XML text. Blanks at its ends and characters that XML does not have are an error.
func (w *networkWriter) escapeXML(name string) string {
	if name != strings.TrimSpace(name) {
		w.failName(name, "it has blanks at an end")
	}
	for _, r := range name {
		isControl := r < ' ' && r != '\t' && r != '\n' && r != '\r'
		if isControl || r == '\ufffe' || r == '\uffff' {
			w.failName(name, "XML has no control characters")
		}
	}
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(name)); err != nil {
		w.failName(name, err.Error())
	}
	return b.String()
}
