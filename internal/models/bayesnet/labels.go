package bayesnet

// Lists of states, in which names need no quotes.

import (
	"errors"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/pkg/uai"
)

// readLabels reads n names and the closing character after them. It reads the names as words if that gives n names that are known, and else
// with intervals, such as (0,20], as names. isKnown says whether a name may stand at position k of the list; nil: every name may. ok is
// false if there are not n names; then list has those that there are.
func (p *network) readLabels(end byte, n int, isKnown func(k int, name string) bool) (list []string, ok bool) {
	// the list as words
	start := p.offset
	list, ok = p.readPlainLabels(end, n)
	plainErr, plainEnd := p.err, p.offset
	areWordsKnown := plainErr == nil && ok && allKnown(list, isKnown)
	if areWordsKnown || errors.Is(plainErr, uai.ErrLimit) { // after the error, which is noted, nobody needs the list
		return list, true
	}

	// the list again, with intervals
	p.err, p.offset = nil, start
	intervals := p.readIntervalLabels(end)
	switch {
	case p.err == nil && len(intervals) == n && allKnown(intervals, isKnown):
		return intervals, true
	case p.err == nil && plainErr != nil: // as intervals it can be read at least
		return intervals, len(intervals) == n
	}

	// neither: the result of the words stands
	p.err, p.offset = plainErr, plainEnd
	return list, ok
}

// allKnown reports whether isKnown is true of each name in the list, or nil.
func allKnown(list []string, isKnown func(k int, name string) bool) bool {
	for k, name := range list {
		if isKnown != nil && !isKnown(k, name) {
			return false
		}
	}
	return true
}

// labelStops returns the characters that end a word in a list with this closing character.
func labelStops(end byte) string {
	if end == ')' {
		return ",;\")"
	}
	return ",;\"{}"
}

// readPlainLabels reads names up to the closing character: the texts between commas if there are n of these, which may
// have blanks in them, and else each word. The second result is false if there are not n names and no error was noted.
func (p *network) readPlainLabels(end byte, n int) ([]string, bool) {
	var parts [][]string // the words between two commas
	words := 0
	for isOpen := false; !p.accept(end) && p.err == nil; { // isOpen: the last part goes on
		if p.accept(',') {
			isOpen = false
			continue
		}
		if !isOpen {
			parts, isOpen = append(parts, nil), true
		}
		name, ok := p.readLabel(end)
		if !ok {
			return nil, true
		}
		if words >= n+p.mostStates {
			p.fail(p.offset, uai.ErrLimit, "a list of more than %d names", p.mostStates)
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

// readLabel reads a word or a text in quotes. If neither is next, it notes an error and returns false.
func (p *network) readLabel(end byte) (string, bool) {
	c := p.peek()
	name := p.readNameTo(labelStops(end))
	if name == "" && c != '"' {
		p.failWanted("a name", "in a list of states")
	}
	return name, p.err == nil
}

// readIntervalLabels reads names between commas up to the closing character. A name that begins with a bracket goes on to the next bracket:
// so the commas and semicolons of (0,20], [0;20[ and ]20, 1,000) are parts of names.
func (p *network) readIntervalLabels(end byte) (list []string) {
	for !p.accept(end) && p.err == nil && len(list) <= p.mostStates {
		if p.accept(',') {
			continue
		}
		var words []string
		for c := p.peek(); c != ',' && c != end && p.err == nil; c = p.peek() {
			word, ok := p.readInterval()
			if !ok {
				word, _ = p.readLabel(end) // an error ends the loops
			}
			words = append(words, word)
		}
		list = append(list, strings.Join(words, " "))
	}
	return list
}

// mostInterval bounds the bytes of an interval in a list of states.
const mostInterval = 200

// readInterval reads a bracket, text without brackets, and a bracket, as in [0;20[. It returns false and reads nothing
// if no interval is next. White space within it becomes single blanks.
func (p *network) readInterval() (string, bool) {
	if !slices.Contains([]byte("([]"), p.peek()) {
		return "", false
	}
	text := p.text[p.offset:min(len(p.text), p.offset+mostInterval)]
	length := 2 + strings.IndexAny(text[1:], "()[]{}\"") // with both brackets; 1 if there is no second one, 2 if nothing is between
	if length < 3 || !strings.ContainsAny(text[length-1:length], ")[]") {
		return "", false
	}
	p.offset += length
	return strings.Join(strings.Fields(text[:length]), " "), true
}
