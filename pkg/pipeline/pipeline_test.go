package pipeline_test

import (
	"context"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

func TestThin(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	began := time.Now()
	s, err := embedded.Start(ctx, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Log("started", time.Since(began))
	go s.Run(ctx, pipeline.Config{})
	nc, err := s.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	m := &factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 4}}}}}
	body, err := wire.NewModelBody(m)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		began = time.Now()
		job := "j" + string(rune('a'+i))
		if _, err := c.Submit(ctx, wire.Model{Job: job, Model: body, Queries: []wire.Query{{}}}); err != nil {
			t.Fatal(err)
		}
		a, err := c.Wait(ctx, job)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(time.Since(began), a.Status, a.Error, *a.Results[0].LogZ, a.Results[0].Cache, a.Results[0].TimingsMS)
	}
}
