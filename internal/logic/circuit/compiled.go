package circuit

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Circuits as bytes.

// Compiled is a circuit, as it was compiled from a network. It does not change.
type Compiled struct {
	// Form is Circuit.Append's. Its first variables are the network's, in order; others are auxiliary.
	Form []byte `msgpack:"circuit"`
	// Functional says that the variables determine the auxiliary ones wherever the product is not 0, which maxima need.
	Functional bool `msgpack:"functional,omitempty"`
	// Parametric says that the numbers of the network's cores are weights, too: of the variables after the network's, see
	// logic.CompileParameters.
	Parametric bool `msgpack:"parametric,omitempty"`

	mutex   sync.Mutex
	read    bool // circuit and err are the decoded form
	circuit *Circuit
	err     error
}

// NewCompiled returns the compiled form of a
func NewCompiled(c *Circuit, functional bool) *Compiled {
	return &Compiled{Form: c.Append(nil), Functional: functional, circuit: c, read: true}
}

// Circuit returns the circuit, which is read once. Errors wrap ErrCircuit, or are the context's: then it is read the next time.
func (c *Compiled) Circuit(ctx context.Context) (*Circuit, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.read {
		return c.circuit, c.err
	}
	of, err := Decode(ctx, c.Form)
	if err != nil && !errors.Is(err, ErrCircuit) {
		return nil, err
	}
	c.circuit, c.err, c.read = of, err, true
	return of, err
}

// Bytes is the circuit's memory, roughly.
func (c *Compiled) Bytes() int64 { return 2 * int64(len(c.Form)) }

// The bits of the first byte of an encoded form.
const (
	isFunctional = 1 << iota
	isParametric
)

// MarshalBinary returns the compiled form as bytes, for caches. It does not fail.
func (c *Compiled) MarshalBinary() ([]byte, error) {
	flags := byte(0)
	if c.Functional {
		flags |= isFunctional
	}
	if c.Parametric {
		flags |= isParametric
	}
	return append([]byte{flags}, c.Form...), nil
}

// DecodeCompiled reads what MarshalBinary returned. Errors wrap ErrCircuit, or are the context's.
func DecodeCompiled(ctx context.Context, b []byte) (*Compiled, error) {
	if len(b) == 0 || b[0] > isFunctional|isParametric {
		return nil, fmt.Errorf("%w: no compiled form", ErrCircuit)
	}
	c := &Compiled{Form: b[1:], Functional: b[0]&isFunctional != 0, Parametric: b[0]&isParametric != 0}
	_, err := c.Circuit(ctx)
	return c, err
}
