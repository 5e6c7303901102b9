package client_test

import (
	"bytes"
	"context"
	"math"
	"net"
	"sync/atomic"
	"testing"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// flipping connects like net.Dialer. In the next writes that have a text one bit of its last byte is changed, a number of times.
type flipping struct {
	text  []byte
	flips atomic.Int32
}

func (d *flipping) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return flippingConn{c, d}, err
}

type flippingConn struct {
	net.Conn
	d *flipping
}

func (c flippingConn) Write(b []byte) (int, error) {
	if at := bytes.Index(b, c.d.text); at >= 0 && c.d.flips.Add(-1) >= 0 {
		changed := bytes.Clone(b)
		changed[at+len(c.d.text)-1] ^= 1
		return c.Conn.Write(changed)
	}
	return c.Conn.Write(b)
}

// TestDamagedRequests: a request of which one bit changes on its way is never answered for another model, nor blamed on its sender: a
// client's questions are sent again, and a job that was stored so ends as damaged.
func TestDamagedRequests(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stack, err := embedded.Start(ctx, embedded.Options{NoRedis: true, Listen: true})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- stack.Run(ctx, pipeline.Config{}) }()
	defer func() {
		cancel()
		<-ended
		stack.Close()
	}()
	wrong := &flipping{text: []byte("MARKOV\n1\n2\n1\n1 0\n2\n1 3")} // 3 becomes 2
	nc, err := nats.Connect(stack.NATSURL(), nats.SetCustomDialer(wrong))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c, err := client.New(nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := wire.Request{Text: string(wrong.text) + "\n", Queries: []query.Query{{}}}
	right := func(a *wire.Answer, err error) {
		t.Helper()
		if err != nil || a.Status != wire.StatusOK || math.Abs(*a.Results[0].LogZ-math.Log(4)) > 1e-12 {
			t.Errorf("%+v, %v", a, err)
		}
	}
	for c.Served(ctx, "") != nil {
	}
	wrong.flips.Store(2)
	right(c.Infer(ctx, r))
	wrong.flips.Store(3)
	if a, err := c.Infer(ctx, r); fault.CodeOf(err) != fault.Damaged {
		t.Errorf("damaged thrice: %+v, %v", a, err)
	}

	wrong.flips.Store(1)
	r.Job = "stored"
	digest, err := c.Submit(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Wait(ctx, r.Job)
	if err != nil || a.Status != wire.StatusError || a.Error.Code != fault.Damaged || a.Digest != digest {
		t.Errorf("stored damaged: %+v, %v", a, err)
	}
	r.Job = "again"
	if _, err := c.Submit(ctx, r); err != nil {
		t.Fatal(err)
	}
	right(c.Wait(ctx, r.Job))
}
