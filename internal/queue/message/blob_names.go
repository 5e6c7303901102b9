package message

import (
	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/pkg/query"
)

// namesBlob are encoded names of variables and values. Stages pass them on as bytes.
type namesBlob struct {
	Variables []string   `msgpack:"names,omitempty"`
	States    [][]string `msgpack:"states,omitempty"`
}

const nameNames = "names-blob"

// EncodeNames returns the bytes of names; nil where there are none.
func EncodeNames(n query.Names) ([]byte, error) {
	if !n.Any() {
		return nil, nil
	}
	return codec.Marshal(nameNames, &namesBlob{n.Variables, n.States}, true)
}

// DecodeNames is the inverse of EncodeNames. The error has the code bad_input.
func DecodeNames(b []byte) (query.Names, error) {
	if len(b) == 0 {
		return query.Names{}, nil
	}
	var w namesBlob
	if err := codec.Unmarshal(nameNames, b, len(b), &w); err != nil {
		return query.Names{}, codec.Blame(nameNames, err)
	}
	return query.Names{Variables: w.Variables, States: w.States}, nil
}
