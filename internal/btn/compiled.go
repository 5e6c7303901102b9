package btn

// Parts that are arithmetic circuits.

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/basetensor/basetensor/internal/circuit"
)

// Circuit is B as an arithmetic circuit over the values of the variables, whose weights are those of the query: one pass gives Z, one
// more all marginals.
type Circuit struct {
	Of *Compiled `msgpack:"-"`
	// Ask is empty for a part that Z is the sum of. Otherwise it says which assignments are to be found, MPE or samples, and the part's
	// Z is 0.
	Ask Ask `msgpack:"ask,omitempty"`
}

// Compiled is a circuit, as it was compiled from a network. It does not change.
type Compiled struct {
	// Form is circuit.Circuit.Append's. Its first variables are those of the network, in order; others are auxiliary.
	Form []byte `msgpack:"circuit"`
	// Functional says that the variables determine the auxiliary ones wherever the product is not 0, which maxima need.
	Functional bool `msgpack:"functional,omitempty"`
	// Parametric says that the numbers of the network's cores are weights, too: of the variables after the network's, see
	// logic.CompileParameters.
	Parametric bool `msgpack:"parametric,omitempty"`

	mutex   sync.Mutex
	read    bool // circuit and err are what the form is
	circuit *circuit.Circuit
	err     error
}

// NewCompiled returns the compiled form of a circuit.
func NewCompiled(c *circuit.Circuit, functional bool) *Compiled {
	return &Compiled{Form: c.Append(nil), Functional: functional, circuit: c, read: true}
}

// Circuit returns the circuit, which is read once. Errors wrap circuit.ErrCircuit, or are the context's: then it is read the next time.
func (c *Compiled) Circuit(ctx context.Context) (*circuit.Circuit, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.read {
		return c.circuit, c.err
	}
	of, err := circuit.Decode(ctx, c.Form)
	if err != nil && !errors.Is(err, circuit.ErrCircuit) {
		return nil, err
	}
	c.circuit, c.err, c.read = of, err, true
	return of, err
}

// Bytes is about what the circuit takes.
func (c *Compiled) Bytes() int64 { return 2 * int64(len(c.Form)) }

// The bits of the first byte of an encoded form.
const (
	isFunctional = 1 << iota
	isParametric
)

// Encode returns the compiled form as bytes, for caches.
func (c *Compiled) Encode() []byte {
	flags := byte(0)
	if c.Functional {
		flags |= isFunctional
	}
	if c.Parametric {
		flags |= isParametric
	}
	return append([]byte{flags}, c.Form...)
}

// DecodeCompiled reads what Encode returned. Errors wrap circuit.ErrCircuit, or are the context's.
func DecodeCompiled(ctx context.Context, b []byte) (*Compiled, error) {
	if len(b) == 0 || b[0] > isFunctional|isParametric {
		return nil, fmt.Errorf("%w: no compiled form", circuit.ErrCircuit)
	}
	c := &Compiled{Form: b[1:], Functional: b[0]&isFunctional != 0, Parametric: b[0]&isParametric != 0}
	_, err := c.Circuit(ctx)
	return c, err
}

// Class implements Part.
func (*Circuit) Class() Class { return ClassCircuit }

// Common implements Sharer.
func (p *Circuit) Common() any { return p.Of }

// Share implements Sharer.
func (p *Circuit) Share(common any) (ok bool) {
	p.Of, ok = common.(*Compiled)
	return ok
}

// Fits implements Part: the circuit is one, and its first variables are the network's.
func (p *Circuit) Fits(n *Network) error {
	switch {
	case p.Of == nil:
		return misfit("it has no circuit")
	case n.Variables == nil:
		return misfit("the network has no variables whose values have weights")
	case p.Ask != "" && p.Ask != AskMPE && p.Ask != AskSamples:
		return misfit("it asks for %.40q", p.Ask)
	}
	c, err := p.Of.Circuit(context.Background())
	if err != nil {
		return misfit("%w", err)
	}
	if c.Variables() < len(n.Variables) {
		return misfit("the circuit has %d variables, the network %d", c.Variables(), len(n.Variables))
	}
	for v, own := range n.Variables {
		if d := c.Offset(v+1) - c.Offset(v); d != own.Domain {
			return misfit("variable %d has %d values in the circuit, %d in the network", v, d, own.Domain)
		}
	}
	return nil
}

// Describe implements Part.
func (*Circuit) Describe(*EstimateResult) {}

func (*Circuit) part() {}
