// The pass before decoding, quickly: most documents have nothing to be said about.

package modeljson

import "math"

// place is an object or array being walked.
type place struct {
	isObject    bool   // whether it is an object; else it is an array, or the document itself
	seenKeys    uint32 // of an object: bit k is set if the key with the number k was there
	key         int    // of an object: the number of the current key; of an array: that of the key under which it stands, −1 at the top
	depth       int    // of an array: how many arrays under that key it is in, itself counted
	isValueNext bool   // of an object: whether a value comes next
}

// walker goes through a document byte by byte.
type walker struct {
	data   []byte
	offset int     // the byte that is read next
	stack  []place // the document, and the objects and arrays that are open, the innermost last
	found  places  // where variables and factors begin, so far
}

// scanQuickly walks through a document and returns where variables and factors begin. It returns true only if scan
// accepts the document as well, or if it is no JSON at all, which decoding finds. False decides nothing: scan then
// finds an error, or none.
func scanQuickly(data []byte) (places, bool) {
	// The stack begins with the file, around the document.
	w := walker{data: data, stack: append(make([]place, 0, maxDepth+2), place{key: -1, depth: -1})}
	started := false
	for {
		w.skipBlanks()
		hasEnded := started && len(w.stack) == 1 // whether the document is complete
		if w.offset == len(data) {
			return w.found, hasEnded
		}
		if hasEnded || !w.readToken() || len(w.stack) > maxDepth {
			return places{}, false
		}
		started = true
	}
}

// add notes the place of an item in the list of variables, or in that of factors.
func (p *places) add(offset int, isVariable, isFactor bool) {
	if isVariable {
		p.variables = append(p.variables, offset)
	}
	if isFactor {
		p.factors = append(p.factors, offset)
	}
}

// skipBlanks skips the space between tokens, and commas and colons within the document.
func (w *walker) skipBlanks() {
	for ; w.offset < len(w.data); w.offset++ {
		switch w.data[w.offset] {
		case ' ', '\n', '\r', '\t':
		case ',', ':':
			if len(w.stack) == 1 { // no object or array is open
				return
			}
		default:
			return
		}
	}
}

// readToken reads one token. It returns false if scan has to decide.
func (w *walker) readToken() bool {
	top := &w.stack[len(w.stack)-1]
	c := w.data[w.offset]
	w.offset++
	if top.isObject && !top.isValueNext && c != '}' {
		return c == '"' && w.readKey(top)
	}
	top.isValueNext = false
	switch c {
	case '{':
		if isListItem := !top.isObject && top.depth == 1 && len(w.stack) == 3; isListItem { // of a list that is a field of the document
			w.found.add(w.offset-1, top.key == keyNumbers["variables"], top.key == keyNumbers["factors"])
		}
		w.stack = append(w.stack, place{isObject: true, key: -1}) // −1: no key yet
	case '[':
		inner := place{key: top.key, depth: 1}
		if !top.isObject {
			inner.depth = top.depth + 1
		}
		w.stack = append(w.stack, inner)
	case '}', ']':
		if top.isObject != (c == '}') || len(w.stack) == 1 {
			return false
		}
		w.stack = w.stack[:len(w.stack)-1]
	case '"':
		_, ok := w.readText()
		return ok
	case 'n':
		return false // a null, which few lists may hold
	default:
		return w.skipWord(w.offset - 1)
	}
	return true
}

// readKey reads a key of the object top, and notes it: top.seenKeys has a bit for each key. It returns false if the key is unknown or there
// twice.
func (w *walker) readKey(top *place) bool {
	name, ok := w.readText()
	number, known := keyNumbers[string(name)]
	if !ok || !known || top.seenKeys>>number&1 == 1 {
		return false
	}
	top.seenKeys |= 1 << number
	top.key = number
	top.isValueNext = true
	return true
}

// readText reads the rest of a string. It returns false if the string has escapes.
func (w *walker) readText() ([]byte, bool) {
	start := w.offset
	for ; w.offset < len(w.data); w.offset++ {
		switch w.data[w.offset] {
		case '"':
			w.offset++
			return w.data[start : w.offset-1], true
		case '\\':
			return nil, false
		}
	}
	return nil, false
}

// skipWord skips a number, true or false, that begins at start. It returns false if that may be a number too small for a float64.
func (w *walker) skipWord(start int) bool {
	exponent := math.MaxInt // where the exponent begins, if there is one
	for ; w.offset < len(w.data); w.offset++ {
		switch w.data[w.offset] {
		case 'e', 'E':
			exponent = w.offset
		case ' ', '\n', '\r', '\t', ',', ']', '}', ':', '"', '[', '{':
			// With fewer than 200 characters and an exponent of at most e-99 it is not too small, which decoding would read as 0.
			// Decoding finds a number that is too large. Without an exponent the second difference is negative.
			return w.offset-start < 200 && w.offset-exponent < len("e-300")
		}
	}
	return true
}

// keyNumbers has a number for each key of the format.
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
