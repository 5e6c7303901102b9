// The pass before decoding: faults that encoding/json lets through and a strict reader must not.

package modeljson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/basetensor/basetensor/internal/base/decimal"
)

// keys are all names of the format, in the case they are written in (encoding/json would fold it).
var keys = map[string]bool{"basetensor_model": true, "description": true, "bayes": true, "variables": true,
	"name": true, "states": true, "domain": true,
	"factors": true, "scope": true, "dense": true, "cp": true, "symmetric": true, "symmetry_cp": true, "low_rank": true,
	"values": true, "log_values": true, "scaled": true, "mantissas": true, "exponents": true, "weights": true,
	"vectors": true, "levels": true, "count": true, "of": true, "terms": true, "alpha": true, "weight": true}

// maxDepth is more than the format nests.
const maxDepth = 16

// container is an object or array being read.
type container struct {
	seen  map[string]bool // object: keys so far; nil for an array
	key   string          // object: the current key; array: the key it stands under
	depth int             // array: depth of nested arrays under that key, from 1
	value bool            // object: a value comes next
}

// scan refuses duplicate and unknown keys, nulls where they mean nothing (encoding/json reads them as 0), numbers that no float64
// holds (those that are too small are 0 there), nesting beyond the format, and anything after the document.
func scan(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	stack := []container{{depth: -1}}
	for started := false; ; started = true {
		t, err := d.Token()
		if errors.Is(err, io.EOF) && started && len(stack) == 1 {
			return nil
		}
		if err != nil {
			return syntaxError("at byte %d: %w", d.InputOffset(), unexpected(err))
		}
		if started && len(stack) == 1 {
			if t == json.Delim('{') {
				return modelError("%s: a second model begins here, and a file has one", position(data, int(d.InputOffset())-1))
			}
			return syntaxError("%s: something after the document", position(data, int(d.InputOffset())))
		}
		if n, ok := t.(json.Number); ok {
			if _, err := decimal.Parse(n.String()); err != nil {
				return modelError("line %d: %.40s %w", 1+bytes.Count(data[:d.InputOffset()], []byte("\n")), n, err)
			}
		}
		if stack, err = step(stack, t, d.InputOffset()); err != nil {
			return err
		}
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func step(stack []container, t json.Token, at int64) ([]container, error) {
	top := &stack[len(stack)-1]
	if key, ok := t.(string); ok && top.seen != nil && !top.value {
		switch {
		case !keys[key]:
			return nil, syntaxError("at byte %d: unknown field %.40q", at, key)
		case top.seen[key]:
			return nil, syntaxError("at byte %d: field %q twice in one object", at, key)
		}
		top.seen[key], top.key, top.value = true, key, true
		return stack, nil
	}
	top.value = false
	switch t {
	case nil:
		if !(top.seen == nil && top.depth == 1 && (top.key == "vectors" || top.key == "log_values")) {
			return nil, syntaxError("at byte %d: null, which only lists of vectors and of log_values may hold", at)
		}
	case json.Delim('{'):
		stack = append(stack, container{seen: map[string]bool{}})
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
		return nil, syntaxError("at byte %d: nested more than %d deep", at, maxDepth)
	}
	return stack, nil
}
