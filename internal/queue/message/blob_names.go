package message

import (
	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// namesBlob are encoded names of variables and values. Stages pass them on as bytes.
type namesBlob struct {
	Variables []string   `msgpack:"names,omitempty"`
	States    [][]string `msgpack:"states,omitempty"`
	Aliases   []string   `msgpack:"aliases,omitempty"`
}

const nameNames = "names-blob"

// EncodeNames returns the bytes of a model's names; nil if it has none.
func EncodeNames(m *factorgraph.Model) ([]byte, error) {
	n := query.Names{Variables: m.Names, States: m.States}
	if !n.Any() && m.Aliases == nil {
		return nil, nil
	}
	return codec.Marshal(nameNames, &namesBlob{n.Variables, n.States, m.Aliases}, true)
}

// DecodeNames returns the names that EncodeNames encoded. The error has the code bad_input.
func DecodeNames(b []byte) (query.Names, error) {
	w, err := decodeNames(b)
	return query.Names{Variables: w.Variables, States: w.States}, err
}

// DecodeLabels returns the labels of a model with these domains whose names EncodeNames encoded. The error has the code
// bad_input.
func DecodeLabels(b []byte, domains []int) (*factorgraph.Labels, error) {
	w, err := decodeNames(b)
	if err != nil {
		return nil, err
	}
	return (&factorgraph.Model{Domains: domains, Names: w.Variables, States: w.States, Aliases: w.Aliases}).Labels()
}

// decodeNames decodes what EncodeNames wrote. No bytes are no names.
func decodeNames(b []byte) (w namesBlob, err error) {
	if len(b) == 0 {
		return w, nil
	}
	if err := codec.Unmarshal(nameNames, b, len(b), &w); err != nil { // len(b): any length is allowed
		return namesBlob{}, codec.WithTypeAndCode(nameNames, err)
	}
	return w, nil
}
