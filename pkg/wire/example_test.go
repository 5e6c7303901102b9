package wire_test

import (
	"fmt"

	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// A request as upstream publishes it: two variables that agree, asked with and without evidence.
func Example() {
	m := &wire.Request{
		Job:     "agree-1",
		Text:    "MARKOV 2 2 2 1 2 0 1 4 2 1 1 2",
		Queries: []query.Query{{}, {Evid: "1 0 1"}},
	}
	payload, err := wire.Encode(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(wire.ModelSubject(wire.Lane(m.Tenant), m.Job))

	var got wire.Request
	if err := wire.Decode(payload, &got); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(got.Text, got.Queries[1].Evid)
	fmt.Println(wire.Decode(payload[:20], new(wire.Request)))
	// Output:
	// btn.v1.model.3.agree-1
	// MARKOV 2 2 2 1 2 0 1 4 2 1 1 2 1 0 1
	// model: wire: malformed message: at byte 17: a string of 7 where 3 bytes remain
}
