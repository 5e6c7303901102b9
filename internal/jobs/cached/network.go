package cached

import (
	"encoding/binary"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// NetworkVersion is part of every key of a network. It changes whenever the same model and settings
// may give another network, or the same network other bytes.
const NetworkVersion = "4"

// Network is what reparam-worker needs to know about a model whose network is stored.
type Network struct {
	Blob    string // digest of the network's bytes
	Domains []int  // number of values per variable
	Names   []byte // message.EncodeNames of the model's
}

// NetworkKey returns the key of a registered model's network, of an owner or, if owner is "", of everybody. It has the
// model's digest and a hash of what else determines the network: the settings, the arithmetic, and whether a query is
// parametric, which takes every factor of the model as a core of its own.
func NetworkKey(owner string, m *wire.Request) (string, error) {
	settings, err := (&wire.Request{Settings: m.Settings}).Digest()
	if err != nil {
		return "", fault.Wrap(fault.BadInput, err)
	}
	if stage.AreParametric(m.Queries) {
		settings += "parametric"
	}
	return cache.KeyOf(owner, cache.NetworkKey(NetworkVersion, m.ModelDigest, settings+NumericKind())), nil
}

// Encode returns the bytes of p as the cache keeps them: the digest in hexadecimal, the number of domains and the
// domains as varints, then the names.
func (p Network) Encode() []byte {
	b := append(make([]byte, 0, len(p.Blob)+2*len(p.Domains)+len(p.Names)+binary.MaxVarintLen64), p.Blob...)
	b = binary.AppendUvarint(b, uint64(len(p.Domains)))
	for _, d := range p.Domains {
		b = binary.AppendUvarint(b, uint64(d))
	}
	return append(b, p.Names...)
}

// DecodeNetwork decodes what Encode wrote: the digest of the network's blob, the number of variables, the number of values
// of each, and the names as the remaining bytes. It returns false for any other bytes.
func DecodeNetwork(b []byte) (Network, bool) {
	n := len(wire.Digest(nil))
	if len(b) < n || !form.IsDigest(string(b[:n])) {
		return Network{}, false
	}

	count, size := binary.Uvarint(b[n:])
	if size <= 0 || count > uint64(len(b)) {
		return Network{}, false
	}
	p := Network{Blob: string(b[:n]), Domains: make([]int, count)}
	b = b[n+size:]
	for i := range p.Domains {
		d, size := binary.Uvarint(b)
		if size <= 0 || d < 1 || d > 1<<31 {
			return Network{}, false
		}
		p.Domains[i] = int(d)
		b = b[size:]
	}
	if len(b) > 0 {
		p.Names = b
	}
	return p, true
}
