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
	seen  map[string]bool // object: keys so far; nil for an array
	under string          // object: the key it stands under
	key   string          // object: the current key; array: the key it stands under
	depth int             // array: depth of nested arrays under that key, from 1
	value bool            // object: a value comes next
}

// scan refuses duplicate and unknown keys, nulls where they mean nothing (encoding/json reads them as 0), numbers that no float64
// holds (those that are too small are 0 there), nesting beyond the format, and anything after the document.
func scan(data []byte) (found places, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	stack := []container{{depth: -1}}
	for started := false; ; started = true {
		t, err := d.Token()
		if errors.Is(err, io.EOF) && started && len(stack) == 1 {
			return found, nil
		}
		if err != nil {
			return found, syntaxError("%s: %w", position(data, faultAt(err, d.InputOffset())), unexpected(err))
		}
		at := int(d.InputOffset()) - 1 // the last byte of the token
		if started && len(stack) == 1 {
			if t == json.Delim('{') {
				return found, modelError("%s: a second model begins here, and a file has one", position(data, at))
			}
			return found, syntaxError("%s: something after the document", position(data, at))
		}
		if n, ok := t.(json.Number); ok {
			if _, err := decimal.Parse(n.String()); err != nil {
				return found, modelError("%s: %.40s %w", position(data, at+1-len(n)), n, err)
			}
		}
		if top := stack[len(stack)-1]; t == json.Delim('{') && len(stack) == 3 && top.seen == nil && top.depth == 1 {
			found.note(at, top.key == "variables", top.key == "factors")
		}
		if stack, err = step(stack, t); err != nil {
			if key, ok := t.(string); ok {
				at = max(at-len(key)-1, 0) // its first quote
			}
			return found, fmt.Errorf("%w: %s: %w", ErrSyntax, position(data, at), err)
		}
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// faultAt is the place of an error in the text, or the end of what was read.
func faultAt(err error, read int64) int {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset > read {
		return int(syntax.Offset) - 1
	}
	return int(read)
}

// step takes a token into the containers that are open.
func step(stack []container, t json.Token) ([]container, error) {
	top := &stack[len(stack)-1]
	if key, ok := t.(string); ok && top.seen != nil && !top.value {
		switch {
		case !slices.Contains(fields[top.under], key):
			return nil, fmt.Errorf("unknown field %.40q%s", key, nearest.Suggest(key, nil, fields[top.under]))
		case top.seen[key]:
			return nil, fmt.Errorf("field %q twice in one object", key)
		}
		top.seen[key], top.key, top.value = true, key, true
		return stack, nil
	}
	top.value = false
	switch t {
	case nil:
		if !(top.seen == nil && top.depth == 1 && (top.key == "vectors" || top.key == "log_values")) {
			return nil, errors.New("null, which only lists of vectors and of log_values may hold")
		}
	case json.Delim('{'):
		stack = append(stack, container{seen: map[string]bool{}, under: top.key})
	case json.Delim('['):
		inner := container{key: top.key, depth: 1}
		if top.seen == nil {
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
