// The pass before decoding: faults that encoding/json lets through and a strict reader must not.

package modeljson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/internal/base/nearest"
)

// fields are the fields of objects, by the field under which an object or a list of them stands; "" is the document. They are in the
// case they are written in (encoding/json would fold it).
var fields = map[string][]string{
	"":            {"basetensor_model", "description", "bayes", "variables", "factors"},
	"variables":   {"name", "domain", "states", "display", "place"},
	"factors":     {"scope", "dense", "cp", "symmetric", "symmetry_cp", "low_rank"},
	"dense":       {"values"},
	"cp":          {"weights", "vectors"},
	"low_rank":    {"weight", "vectors"},
	"symmetric":   {"levels", "values", "log_values", "scaled"},
	"symmetry_cp": {"levels", "terms"},
	"terms":       {"alpha", "values", "log_values", "scaled", "vectors"},
	"levels":      {"count", "of"},
	"scaled":      {"mantissas", "exponents"},
}

// maxDepth is more than the format nests.
const maxDepth = 16

// container is an object or array being read.
type container struct {
	seenKeys    map[string]bool // of an object: the keys so far; nil for an array, and for the document itself
	under       string          // of an object: the key under which it stands
	key         string          // of an object: the current key; of an array: the key under which it stands
	depth       int             // of an array: how many arrays under that key it is in, itself counted
	isValueNext bool            // of an object: whether a value comes next
}

// scan refuses duplicate and unknown keys, nulls where they mean nothing (encoding/json reads them as 0), numbers that no float64
// holds (encoding/json reads a number that is too small as 0), nesting beyond the format, and anything after the document. It returns where
// variables and factors begin.
func scan(data []byte) (found places, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	stack := []container{{depth: -1}} // the file, in which the document is the only value; then the open objects and arrays
	for started := false; ; started = true {
		hasEnded := started && len(stack) == 1 // whether the document is complete
		token, err := d.Token()
		if errors.Is(err, io.EOF) && hasEnded {
			return found, nil
		}
		if err != nil {
			return found, syntaxError("%s: %w", positionText(data, errorOffset(err, d.InputOffset())), unexpected(err))
		}

		// after the end of the document, and numbers
		tokenEnd := int(d.InputOffset()) - 1 // the last byte of the token
		if hasEnded {
			if token == json.Delim('{') {
				return found, modelError("%s: a second model begins here, and a file has one", positionText(data, tokenEnd))
			}
			return found, syntaxError("%s: something after the document", positionText(data, tokenEnd))
		}
		if n, ok := token.(json.Number); ok {
			if _, err := decimal.Parse(n.String()); err != nil {
				return found, modelError("%s: %.40s %w", positionText(data, tokenEnd+1-len(n)), n, err)
			}
		}

		// variables and factors: objects in a list (no seenKeys, depth 1) that is a field of the document, so that file, document and
		// list are open
		top := stack[len(stack)-1]
		if isInList := len(stack) == 3 && top.seenKeys == nil && top.depth == 1; token == json.Delim('{') && isInList {
			found.add(tokenEnd, top.key == "variables", top.key == "factors")
		}
		if stack, err = step(stack, token); err != nil {
			if key, ok := token.(string); ok {
				tokenEnd = max(tokenEnd-len(key)-1, 0) // its first quote
			}
			return found, fmt.Errorf("%w: %s: %w", ErrSyntax, positionText(data, tokenEnd), err)
		}
	}
}

// unexpected returns an error of reading, with io.ErrUnexpectedEOF in place of io.EOF.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// errorOffset returns the offset of an error in the text or, if it has none, of the end of what was read.
func errorOffset(err error, read int64) int {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset > read {
		return int(syntax.Offset) - 1
	}
	return int(read)
}

// step takes a token into the stack of open objects and arrays, the innermost last, and returns the new stack; the old one is changed.
// It returns an error for a key that is unknown or there twice, for null where it means nothing, and for too many objects and arrays
// within each other.
func step(stack []container, token json.Token) ([]container, error) {
	// a key: a string in an object where no value comes next
	top := &stack[len(stack)-1]
	if key, ok := token.(string); ok && top.seenKeys != nil && !top.isValueNext {
		switch {
		case !slices.Contains(fields[top.under], key):
			return nil, fmt.Errorf("unknown field %.40q%s", key, nearest.Suggest(key, nil, fields[top.under]))
		case top.seenKeys[key]:
			return nil, fmt.Errorf("field %q twice in one object", key)
		}
		top.seenKeys[key], top.key, top.isValueNext = true, key, true
		return stack, nil
	}

	// a value, the beginning of one, or the end of an object or array
	top.isValueNext = false
	switch token {
	case nil:
		// seenKeys is nil in an array, and its key is the one under which it stands.
		mayBeNull := top.seenKeys == nil && top.depth == 1 && (top.key == "vectors" || top.key == "log_values")
		if !mayBeNull {
			return nil, errors.New("null, which only lists of vectors and of log_values may hold")
		}
	case json.Delim('{'):
		stack = append(stack, container{seenKeys: map[string]bool{}, under: top.key})
	case json.Delim('['):
		inner := container{key: top.key, depth: 1}
		if top.seenKeys == nil { // an array in an array
			inner.depth = top.depth + 1
		}
		stack = append(stack, inner)
	case json.Delim('}'), json.Delim(']'):
		stack = stack[:len(stack)-1]
	}
	if len(stack) > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	return stack, nil
}
