package bayesnet

// Lists of states, in which names need no quotes.

import (
	"errors"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/pkg/uai"
)

// labels reads n names up to the closing character: as words if that makes n names that are known, else with intervals as names. known
// says if the name at a position of the list may stand there; nil: every name may. False, and the names: there are not n of them.
func (p *network) labels(end byte, n int, known func(k int, name string) bool) (list []string, ok bool) {
	from := p.at
	list, ok = p.plainLabels(end, n)
	wrong, behind := p.err, p.at
	if wrong == nil && ok && allKnown(list, known) || errors.Is(wrong, uai.ErrLimit) {
		return list, true
	}
	p.err, p.at = nil, from
	named := p.intervals(end)
	switch {
	case p.err == nil && len(named) == n && allKnown(named, known):
		return named, true
	case p.err == nil && wrong != nil:
		return named, len(named) == n
	}
	p.err, p.at = wrong, behind
	return list, ok
}

func allKnown(list []string, known func(k int, name string) bool) bool {
	for k, name := range list {
		if known != nil && !known(k, name) {
			return false
		}
	}
	return true
}

// stopsOf are the characters that end a word in a list with this closing character.
func stopsOf(end byte) string {
	if end == ')' {
		return ",;\")"
	}
	return ",;\"{}"
}

// plainLabels reads names up to the closing character: between commas if these make n of them, else word by word. So a name may have
// blanks in it if commas divide.
func (p *network) plainLabels(end byte, n int) ([]string, bool) {
	var parts [][]string
	words := 0
	for open := false; !p.take(end) && p.err == nil; {
		if p.take(',') {
			open = false
			continue
		}
		if !open {
			parts, open = append(parts, nil), true
		}
		name, ok := p.label(end)
		if !ok {
			return nil, true
		}
		if words >= n+p.domain {
			p.fail(p.at, uai.ErrLimit, "a list of more than %d names", p.domain)
			return nil, true
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], name)
		words++
	}
	list := make([]string, 0, words)
	for _, part := range parts {
		if len(parts) == n {
			list = append(list, strings.Join(part, " "))
		} else {
			list = append(list, part...)
		}
	}
	return list, len(list) == n
}

// label reads a word or a text in quotes of a list; false, and an error: neither is next.
func (p *network) label(end byte) (string, bool) {
	c := p.peek()
	name := p.nameTo(stopsOf(end))
	if name == "" && c != '"' {
		p.wanted("a name", "in a list of states")
	}
	return name, p.err == nil
}

// intervals reads names between commas up to the closing character. A name that begins with a bracket goes on to the next one: so the
// commas and semicolons of (0,20], [0;20[ and ]20, 1,000) are parts of names.
func (p *network) intervals(end byte) (list []string) {
	for !p.take(end) && p.err == nil && len(list) <= p.domain {
		if p.take(',') {
			continue
		}
		var words []string
		for c := p.peek(); c != ',' && c != end && p.err == nil; c = p.peek() {
			word, ok := p.interval()
			if !ok {
				word, _ = p.label(end)
			}
			words = append(words, word)
		}
		list = append(list, strings.Join(words, " "))
	}
	return list
}

// mostInterval bounds the bytes of an interval in a list of states.
const mostInterval = 200

// interval reads a bracket, text without brackets, and a bracket. White space within it becomes single blanks.
func (p *network) interval() (string, bool) {
	if !slices.Contains([]byte("([]"), p.peek()) {
		return "", false
	}
	text := p.text[p.at:min(len(p.text), p.at+mostInterval)]
	length := 2 + strings.IndexAny(text[1:], "()[]{}\"")
	if length < 3 || !strings.ContainsAny(text[length-1:length], ")[]") {
		return "", false
	}
	p.at += length
	return strings.Join(strings.Fields(text[:length]), " "), true
}
