package faults

import (
	"fmt"
	"testing"

	"github.com/basetensor/basetensor/internal/base/sentence"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// TestLostRequestsAreTold: an answer that says which bytes are lost names the request of its own job, or another one.
func TestLostRequestsAreTold(t *testing.T) {
	q, err := (&questions{seed: 1}).make(large, 3)
	if err != nil {
		t.Fatal(err)
	}
	j := &job{id: "each-1-317", tenant: tenants[0], q: q}
	request, err := wire.Encode(j.request())
	if err != nil {
		t.Fatal(err)
	}
	for digest, isLost := range map[string]bool{wire.Digest(request): true, wire.Digest(nil): false} {
		text := sentence.Text(fmt.Sprintf("%v: blob %.16s…: %v", bus.ErrLost, digest, bus.ErrNotFound))
		a := &wire.Answer{Status: wire.StatusError, Error: &query.ErrorInfo{Code: fault.Infrastructure, Message: text}}
		if got := requestLost(j, a); got != isLost {
			t.Errorf("%q is the loss of the job's request: %t, want %t", text, got, isLost)
		}
	}
}
