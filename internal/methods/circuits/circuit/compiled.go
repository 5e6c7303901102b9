package circuit

import (
	"context"
	"errors"
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
