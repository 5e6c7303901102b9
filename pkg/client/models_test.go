package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

func TestModelsComeAndGo(t *testing.T) {
	ctx, _, _, c := open(t)
	digest, err := c.PutModel(ctx, &wire.Graph{Text: coin})
	if err != nil {
		t.Fatal(err)
	}
	g, err := c.Model(ctx, digest)
	if err != nil || g.Text != coin {
		t.Errorf("%+v %v", g, err)
	}
	one, err := c.StatModel(ctx, digest)
	if err != nil || one.Digest != digest || one.Bytes < uint64(len(coin)) || one.Time.IsZero() {
		t.Errorf("%+v %v", one, err)
	}
	if list, err := c.Registered(ctx); err != nil || len(list.Models) != 1 || list.Models[0] != one {
		t.Errorf("%+v %v", list, err)
	}
	if _, err := c.PutModel(ctx, &wire.Graph{}); fault.CodeOf(err) != fault.BadInput ||
		!strings.Contains(err.Error(), "neither model nor text") {
		t.Errorf("a model that is none: %v", err)
	}
	if err := c.RemoveModel(ctx, digest); err != nil {
		t.Error(err)
	}
	for _, d := range []string{digest, "", strings.ToUpper(digest), "a.b", ">"} {
		_, err := c.Model(ctx, d)
		_, statErr := c.StatModel(ctx, d)
		for _, err := range []error{err, statErr, c.RemoveModel(ctx, d)} {
			if fault.CodeOf(err) != fault.BadInput ||
				errors.Is(err, client.ErrNotFound) != (d == digest) {
				t.Errorf("%q: %v", d, err)
			}
		}
	}
	if list, err := c.Registered(ctx); err != nil || len(list.Models) != 0 {
		t.Errorf("%+v %v", list, err)
	}
}

func TestInferWithoutWorkers(t *testing.T) {
	ctx, _, _, c := open(t)
	m := wire.Request{Text: coin, Queries: []query.Query{{}}}
	if _, err := c.Infer(ctx, m); fault.CodeOf(err) != fault.Infrastructure ||
		!strings.Contains(err.Error(), "no reparam-worker offers btn.v1.infer") {
		t.Errorf("%v", err)
	}
	m.Job = "a.b.c"
	if _, err := c.Infer(ctx, m); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("%v", err)
	}
}

func ExampleClient_Infer() {
	ctx := context.Background()
	stack, err := embedded.Start(ctx, embedded.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stack.Close()
	go stack.Run(ctx, pipeline.Config{})
	nc, err := stack.Connect("example") // in a deployment: client.Connect(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := client.New(nc, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	digest, err := c.PutModel(ctx, &wire.Graph{Text: "MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 4\n"})
	if err != nil {
		fmt.Println(err)
		return
	}
	question := wire.Request{ModelDigest: digest, Queries: []query.Query{{}, {Evid: "1 0 1"}}}
	answer, err := c.Infer(ctx, question)
	for ; err != nil &&
		strings.Contains(err.Error(), "no reparam-worker"); answer, err = c.Infer(ctx, question) {
		// the workers are still starting
	}
	var pending *client.PendingError
	if errors.As(err, &pending) { // it takes longer than a second
		answer, err = c.Wait(ctx, pending.Job)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range answer.Results {
		fmt.Printf("query %d: ln Z = %.6f\n", r.Query, *r.LogZ)
	}
	// Output:
	// query 0: ln Z = 2.302585
	// query 1: ln Z = 1.945910
}
