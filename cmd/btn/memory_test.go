package main

import (
	"testing"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// The room of tables grows with --memory, is all of it up to the default, and leaves room for the model and the rest above.
func TestTables(t *testing.T) {
	large := &factorgraph.Model{Factors: []factorgraph.Factor{{Table: &tensor.Dense{Data: make([]float64, 1<<20)}}}}
	last := int64(0)
	for memory := config.Size(1 << 10); memory < 1<<40; memory += memory/3 + 1 {
		got := tableMemory(memory, nil)
		if got < last || got > int64(memory) || memory <= 2<<30 && got != int64(memory) {
			t.Errorf("%s leaves %d for tables, less %d", memory, got, last)
		}
		last = got
	}
	if with, without := tableMemory(8<<30, large), tableMemory(8<<30, nil); without-with != 4*8<<20 || without > 7600<<20 {
		t.Errorf("%d bytes for tables beside a model, %d without", with, without)
	}
}
