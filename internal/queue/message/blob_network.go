package message

import (
	"fmt"
	"math"
	"reflect"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// networkBlob is an encoded btn.Network. Equal maps are written once.
type networkBlob struct {
	Dims    []int         `msgpack:"dims"`
	Maps    []mapBlob     `msgpack:"maps,omitempty"`     // the distinct maps
	LegMaps []int         `msgpack:"leg_maps,omitempty"` // per leg, index into Maps
	Cores   coreList      `msgpack:"cores"`
	Links   linkList      `msgpack:"links"`
	Domains []int         `msgpack:"domains,omitempty"` // per variable
	Homes   []int         `msgpack:"homes,omitempty"`   // per variable, the link with its weights
	Scale   scaled.Number `msgpack:"scale"`
	Choice  string        `msgpack:"choice,omitempty"`

	Directed bool     `msgpack:"directed,omitempty"`
	Warnings []string `msgpack:"warnings,omitempty"`
	Owner    string   `msgpack:"owner,omitempty"`
}

// mapBlob is a btn.Map.
type mapBlob struct {
	Kind string    `msgpack:"kind"`
	A    []float64 `msgpack:"a,omitempty"`
}

// piece is a core or a link.
type piece struct {
	Legs  []int  `msgpack:"legs"`
	Table Tensor `msgpack:"table"`
}

const nameNetwork = "network-blob"

// EncodeNetwork returns the bytes of a network, which is stored under their digest. Time and size
// are linear in the network's.
func EncodeNetwork(n *btn.Network) ([]byte, error) { return EncodeNetworkOf("", n) }

// EncodeNetworkOf is EncodeNetwork for an owner's network. The owner is part of the bytes, so that equal networks of
// different owners have different digests. DecodeNetwork reads both.
func EncodeNetworkOf(owner string, n *btn.Network) ([]byte, error) {
	w := networkBlob{
		Owner:    owner,
		Dims:     n.Dims,
		Cores:    n.Cores,
		Links:    n.Links,
		Scale:    n.Scale,
		Choice:   string(n.Choice),
		Directed: n.Directed,
		Warnings: n.Warnings,
	}

	if n.Maps != nil { // equal maps of several legs are stored once
		w.Maps, w.LegMaps = distinctMaps(n.Maps)
	}
	if n.Variables != nil { // an empty list that is not nil stays one
		w.Domains = make([]int, len(n.Variables))
		w.Homes = make([]int, len(n.Variables))
	}
	for i, v := range n.Variables {
		w.Domains[i] = v.Domain
		w.Homes[i] = v.Link
	}
	return encodeBlob(nameNetwork, &w)
}

// distinctMaps returns the distinct maps, in the order of their first leg, and for each leg the position of its map.
// Maps are equal if their kinds and the bits of their entries are.
func distinctMaps(maps []btn.Map) ([]mapBlob, []int) {
	distinct := []mapBlob{}
	legs := make([]int, len(maps)) // by leg, the position of its map in distinct
	positions := map[string]int{}  // by the key of a map, its position in distinct

	for leg, m := range maps {
		// Most networks have the identity on every leg, which needs no key.
		isLikePrevious := leg > 0 && m.Kind == maps[leg-1].Kind && m.A == nil && maps[leg-1].A == nil
		if isLikePrevious {
			legs[leg] = legs[leg-1]
			continue
		}

		key := string(m.Kind) + "\x00" + tableKey(m.A)
		position, ok := positions[key]
		if !ok {
			position = len(distinct)
			positions[key] = position
			distinct = append(distinct, mapBlob{string(m.Kind), m.A})
		}
		legs[leg] = position
	}
	return distinct, legs
}

// tableKey returns a key that distinguishes lists of floats by their bits. The key of nil differs from that of an empty
// list.
func tableKey(numbers []float64) string {
	if numbers == nil {
		return ""
	}
	key := make([]byte, 1, 1+8*len(numbers)) // a zero byte, and 8 bytes for each number
	for _, x := range numbers {
		bits := math.Float64bits(x)
		for range 8 {
			key, bits = append(key, byte(bits)), bits>>8
		}
	}
	return string(key)
}

// DecodeNetwork decodes what EncodeNetwork wrote. It checks everything that keeps later indices in range: shapes and
// lengths, legs of the right dimension, links of variables. It does not check whether the cores are disjoint and cover
// the legs; the network's own validation does. Legs with equal maps share one slice. Its errors are those of
// codec.Unmarshal.
func DecodeNetwork(b []byte) (*btn.Network, error) {
	var w networkBlob
	err := unmarshal(nameNetwork, b, MaxBlob, &w)
	if err != nil {
		return nil, blame(nameNetwork, err)
	}
	n, err := w.decode()
	return n, blame(nameNetwork, err)
}

// decode returns the network. It checks everything that keeps later indices in range: sizes of legs, legs of cores and
// links, maps, and links of variables.
func (w *networkBlob) decode() (*btn.Network, error) {
	for leg, d := range w.Dims {
		if d < 1 || d > math.MaxInt32 {
			return nil, invalid(fmt.Sprintf("dims[%d]", leg), "%d values", d)
		}
	}

	n := &btn.Network{
		Dims:     w.Dims,
		Cores:    w.Cores,
		Links:    w.Links,
		Scale:    w.Scale,
		Choice:   query.CoreChoice(w.Choice),
		Directed: w.Directed,
		Warnings: w.Warnings,
	}

	if err := checkNumber(w.Scale); err != nil {
		return nil, under("scale", err)
	}
	if err := w.decodeMaps(n); err != nil {
		return nil, err
	}

	for i, c := range w.Cores {
		if err := checkLegs(c.Legs, c.T.Dims(), w.Dims); err != nil {
			return nil, under(fmt.Sprintf("cores[%d]", i), err)
		}
	}

	for i, l := range w.Links {
		if err := checkLegs(l.Legs, l.T.Dims(), w.Dims); err != nil {
			return nil, under(fmt.Sprintf("links[%d]", i), err)
		}
	}
	return n, w.decodeVariables(n)
}

// decodeMaps sets the maps of n, one for each leg. If the blob has none, n has none.
func (w *networkBlob) decodeMaps(n *btn.Network) error {
	if w.LegMaps == nil {
		return nil
	}
	if len(w.LegMaps) != len(w.Dims) {
		return invalid("leg_maps", "%d for %d legs", len(w.LegMaps), len(w.Dims))
	}

	n.Maps = make([]btn.Map, len(w.Dims))
	for leg, position := range w.LegMaps {
		if position < 0 || position >= len(w.Maps) {
			return invalid(fmt.Sprintf("leg_maps[%d]", leg), "map %d of %d", position, len(w.Maps))
		}
		m := w.Maps[position]
		if d := w.Dims[leg]; m.A != nil && !isSquare(m.A, d) {
			return invalid(
				fmt.Sprintf("leg_maps[%d]", leg), "a map of %d entries for %d values", len(m.A), d,
			)
		}
		n.Maps[leg] = btn.Map{Kind: query.MapKind(m.Kind), A: m.A}
	}
	return nil
}

// isSquare reports whether a list has the d × d entries of a square matrix.
func isSquare(entries []float64, d int) bool {
	n, ok := product([]int{d, d})
	return ok && len(entries) == n
}

// coreList and linkList are lists of cores and links, encoded as pieces.
type (
	coreList []btn.Core
	linkList []btn.Link
)

// Encode writes the cores, one at a time.
func (l *coreList) Encode(w *codec.Writer) error {
	return under(
		"cores",
		form.WritePieces(
			w, "legs", len(*l), func(i int) ([]int, tensor.Tensor) { return (*l)[i].Legs, (*l)[i].T },
		),
	)
}

// Encode writes the links, one at a time.
func (l *linkList) Encode(w *codec.Writer) error {
	return under(
		"links",
		form.WritePieces(
			w, "legs", len(*l), func(i int) ([]int, tensor.Tensor) { return (*l)[i].Legs, (*l)[i].T },
		),
	)
}

// Decode reads n cores, one at a time. Charge bounds the memory of the list before it is allocated.
func (l *coreList) Decode(r *codec.Reader, n int) error {
	if err := r.Charge(n, reflect.TypeFor[btn.Core]()); err != nil {
		return err
	}
	*l = make(coreList, n)
	return readPieces(
		r, n, func(i int, legs []int, t tensor.Tensor) { (*l)[i] = btn.Core{Legs: legs, T: t} },
	)
}

// Decode reads n links, one at a time. Charge bounds the memory of the list before it is allocated.
func (l *linkList) Decode(r *codec.Reader, n int) error {
	if err := r.Charge(n, reflect.TypeFor[btn.Link]()); err != nil {
		return err
	}
	*l = make(linkList, n)
	return readPieces(
		r, n, func(i int, legs []int, t tensor.Tensor) { (*l)[i] = btn.Link{Legs: legs, T: t} },
	)
}

// readPieces reads n cores or links, which have the same encoded form (piece), and calls put with the legs and the tensor
// of each. It checks each tensor by itself. The reader bounds the memory of all together.
func readPieces(r *codec.Reader, n int, put func(i int, legs []int, t tensor.Tensor)) error {
	p := new(piece)
	memory := new(form.Tensors) // the memory of the decoded tensors, which is allocated for many at a time
	for i := range n {
		*p = piece{}
		err := r.Value(p)

		var t tensor.Tensor
		if err == nil {
			t, err = p.Table.Decode(memory)
		}
		if err != nil {
			return under(fmt.Sprintf("[%d]", i), err)
		}
		put(i, p.Legs, t)
	}
	return nil
}

// checkLegs checks that a tensor of this shape fits its legs: legs[mode] is one of the network's legs and has
// shape[mode] values. dims has the number of values of each leg.
func checkLegs(legs, shape, dims []int) error {
	if len(legs) != len(shape) {
		return invalid("legs", "%d for %d modes", len(legs), len(shape))
	}
	for mode, leg := range legs {
		switch {
		case leg < 0 || leg >= len(dims):
			return invalid("legs", "leg %d of %d", leg, len(dims))
		case dims[leg] != shape[mode]:
			return invalid(
				"legs", "leg %d has %d values, mode %d has %d", leg, dims[leg], mode, shape[mode],
			)
		}
	}
	return nil
}

// decodeVariables sets the variables of n. Variable i has w.Domains[i] values, and its weights, one for each value, are in
// the tensor of link w.Homes[i].
func (w *networkBlob) decodeVariables(n *btn.Network) error {
	if len(w.Domains) != len(w.Homes) {
		return invalid("homes", "%d for %d variables", len(w.Homes), len(w.Domains))
	}
	if w.Domains == nil {
		return nil
	}

	n.Variables = make([]btn.Variable, len(w.Domains))
	for i, d := range w.Domains {
		home := w.Homes[i]
		switch {
		case d < 1 || d > math.MaxInt32:
			return invalid(fmt.Sprintf("domains[%d]", i), "%d values", d)
		case home < 0 || home >= len(w.Links):
			return invalid(fmt.Sprintf("homes[%d]", i), "link %d of %d", home, len(w.Links))
		case !isCPWithTerms(w.Links[home].T, d):
			return invalid(
				fmt.Sprintf("homes[%d]", i), "link %d has no weight per value of the variable",
				home,
			)
		}
		n.Variables[i] = btn.Variable{Domain: d, Link: home}
	}
	return nil
}

// isCPWithTerms reports whether t is in CP form with n terms, one for each value of a variable.
func isCPWithTerms(t tensor.Tensor, n int) bool {
	cp, ok := t.(*tensor.CP)
	return ok && len(cp.Weights) == n
}
