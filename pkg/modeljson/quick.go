// The pass before decoding, quickly: most documents have nothing to be said about.

package modeljson

import "math"

// place is an object or array being walked.
type place struct {
	object bool
	seen   uint32 // object: the keys so far, by number
	key    int    // object: the current key; array: the key it stands under, −1 at the top
	depth  int    // array: depth of nested arrays under that key, from 1
	value  bool   // object: a value comes next
}

// walker goes through a document byte by byte.
type walker struct {
	data  []byte
	at    int
	stack []place
	found places
}

// quick reports whether scan accepts a document, and returns the same places. False decides nothing: scan then finds the error, or none.
// A document that is not JSON at all may pass: decoding it fails.
func quick(data []byte) (places, bool) {
	w := walker{data: data, stack: append(make([]place, 0, maxDepth+2), place{key: -1, depth: -1})}
	started := false
	for {
		w.blanks()
		if w.at == len(data) {
			return w.found, started && len(w.stack) == 1
		}
		if started && len(w.stack) == 1 || !w.token() || len(w.stack) > maxDepth {
			return places{}, false
		}
		started = true
	}
}

// note keeps the place of an item of one of the two lists.
func (p *places) note(at int, variable, factor bool) {
	if variable {
		p.variables = append(p.variables, at)
	}
	if factor {
		p.factors = append(p.factors, at)
	}
}

// blanks passes the space between tokens.
func (w *walker) blanks() {
	for ; w.at < len(w.data); w.at++ {
		switch w.data[w.at] {
		case ' ', '\n', '\r', '\t':
		case ',', ':':
			if len(w.stack) == 1 {
				return
			}
		default:
			return
		}
	}
}

// token passes one token.
func (w *walker) token() bool {
	top := &w.stack[len(w.stack)-1]
	c := w.data[w.at]
	w.at++
	if top.object && !top.value && c != '}' {
		return c == '"' && w.key(top)
	}
	top.value = false
	switch c {
	case '{':
		if !top.object && top.depth == 1 && len(w.stack) == 3 {
			w.found.note(w.at-1, top.key == keyNumbers["variables"], top.key == keyNumbers["factors"])
		}
		w.stack = append(w.stack, place{object: true, key: -1})
	case '[':
		inner := place{key: top.key, depth: 1}
		if !top.object {
			inner.depth = top.depth + 1
		}
		w.stack = append(w.stack, inner)
	case '}', ']':
		if top.object != (c == '}') || len(w.stack) == 1 {
			return false
		}
		w.stack = w.stack[:len(w.stack)-1]
	case '"':
		_, ok := w.text()
		return ok
	case 'n':
		return false // a null, which few lists may hold
	default:
		return w.word(w.at - 1)
	}
	return true
}

// key passes a name and notes that it was there.
func (w *walker) key(top *place) bool {
	name, ok := w.text()
	number, known := keyNumbers[string(name)]
	if !ok || !known || top.seen>>number&1 == 1 {
		return false
	}
	top.seen |= 1 << number
	top.key = number
	top.value = true
	return true
}

// text passes the rest of a string without escapes.
func (w *walker) text() ([]byte, bool) {
	from := w.at
	for ; w.at < len(w.data); w.at++ {
		switch w.data[w.at] {
		case '"':
			w.at++
			return w.data[from : w.at-1], true
		case '\\':
			return nil, false
		}
	}
	return nil, false
}

// word passes a number, true or false, that begins at a byte. False: it may be a number that no float64 holds.
func (w *walker) word(from int) bool {
	exponent := math.MaxInt
	for ; w.at < len(w.data); w.at++ {
		switch w.data[w.at] {
		case 'e', 'E':
			exponent = w.at
		case ' ', '\n', '\r', '\t', ',', ']', '}', ':', '"', '[', '{':
			return w.at-from < 200 && w.at-exponent < len("e-300")
		}
	}
	return true
}

// keyNumbers numbers the names of the format.
var keyNumbers = func() map[string]int {
	out := map[string]int{}
	for _, list := range fields {
		for _, name := range list {
			if _, known := out[name]; !known {
				out[name] = len(out)
			}
		}
	}
	return out
}()
