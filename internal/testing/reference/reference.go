// Package reference gives tests the models with known answers in the folder that BTN_DATA names; without it they skip.
package reference

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/uai"
)

// Tolerance is the largest difference of log10 Z from a solution where the file prints enough
// digits.
const Tolerance = 1e-5

// Path returns the model file of a name such as "uai/Grids_11", or skips the test.
func Path(t testing.TB, name string) string {
	t.Helper()
	return file(t, name+".uai")
}

// file returns the path of a file in the folder, or skips the test.
func file(t testing.TB, name string) string {
	t.Helper()
	data := os.Getenv("BTN_DATA")
	if data == "" {
		t.Skip("BTN_DATA names no folder of reference models")
	}
	return filepath.Join(data, filepath.FromSlash(name))
}

// Read reads the model of a file such as "bn/munin.bif.gz", in the format that its name or its text tells, or skips the test.
func Read(t testing.TB, name string) *factorgraph.Model {
	t.Helper()
	m, err := formats.Read(bytes.NewReader(read(t, file(t, name))), "", name, uai.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// Names returns the names of all models in a folder such as "ising", or skips the test.
func Names(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(Path(t, folder+"/*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no models in %s: %v", folder, err)
	}
	for i, file := range files {
		files[i] = folder + "/" + strings.TrimSuffix(filepath.Base(file), ".uai")
	}
	return files
}

// Model reads a model and the evidence beside it.
func Model(t testing.TB, name string) (*factorgraph.Model, factorgraph.Evidence) {
	t.Helper()
	path := Path(t, name)
	m, err := uai.Read(bytes.NewReader(read(t, path)), uai.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	evidence, err := uai.ReadEvidence(bytes.NewReader(read(t, path+".evid")), m.Domains)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m, evidence
}

// Network returns a model as a base tensor network, conditioned on its evidence.
func Network(t testing.TB, name string) *btn.Network {
	t.Helper()
	m, evidence := Model(t, name)
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err == nil {
		net, err = net.Condition(evidence)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return net
}

// Log10Z returns the solution's log10 Z, and the largest difference of an answer from it:
// Tolerance, or half a unit in the last place that the file prints.
func Log10Z(t testing.TB, name string) (value, tolerance float64) {
	t.Helper()
	raw := read(t, Path(t, name)+".PR")
	value, err := uai.ReadPR(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	fields := strings.Fields(string(raw))
	_, decimals, _ := strings.Cut(fields[len(fields)-1], ".")
	return value, max(Tolerance, 0.5001*math.Pow(10, -float64(len(decimals))))
}

// Marginals returns the solution's marginals.
func Marginals(t testing.TB, name string) [][]float64 {
	t.Helper()
	p, err := uai.ReadMAR(bytes.NewReader(read(t, Path(t, name)+".MAR")))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
