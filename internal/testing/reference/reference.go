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

// Path returns the path of the file of a model with a name such as "uai/Grids_11". It skips the test if BTN_DATA is not set.
func Path(t testing.TB, name string) string {
	t.Helper()
	return filePath(t, name+".uai")
}

// filePath returns the path of a file in the folder of BTN_DATA, or skips the test if that is not set.
func filePath(t testing.TB, name string) string {
	t.Helper()
	data := os.Getenv("BTN_DATA")
	if data == "" {
		t.Skip("BTN_DATA names no folder of reference models")
	}
	return filepath.Join(data, filepath.FromSlash(name))
}

// Read reads the model in a file such as "bn/munin.bif.gz". The format follows from its name, or from its text. It skips the test if
// BTN_DATA is not set.
func Read(t testing.TB, name string) *factorgraph.Model {
	t.Helper()
	m, err := formats.Read(bytes.NewReader(readFile(t, filePath(t, name))), "", name, uai.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// Names returns the names of all models in a folder such as "ising": "ising/a", "ising/b", …. It skips the test if BTN_DATA is not set.
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

// Model reads the model of this name, and its evidence from the file beside it, ….uai.evid.
func Model(t testing.TB, name string) (*factorgraph.Model, factorgraph.Evidence) {
	t.Helper()
	path := Path(t, name)
	m, err := uai.Read(bytes.NewReader(readFile(t, path)), uai.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	evidence, err := uai.ReadEvidence(bytes.NewReader(readFile(t, path+".evid")), m.Domains)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m, evidence
}

// Network returns the model of this name as a base tensor network, conditioned on its evidence.
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

// Log10Z returns log10 Z from the solution of the model of this name, and the largest difference that a correct answer may have from it:
// Tolerance, or half a unit of the last decimal in the file if that is more.
func Log10Z(t testing.TB, name string) (value, tolerance float64) {
	t.Helper()
	raw := readFile(t, Path(t, name)+".PR")
	value, err := uai.ReadPR(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	fields := strings.Fields(string(raw))
	_, decimals, _ := strings.Cut(fields[len(fields)-1], ".")
	return value, max(Tolerance, 0.5001*math.Pow(10, -float64(len(decimals))))
}

// Marginals returns the marginals from the solution of the model of this name.
func Marginals(t testing.TB, name string) [][]float64 {
	t.Helper()
	p, err := uai.ReadMAR(bytes.NewReader(readFile(t, Path(t, name)+".MAR")))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// readFile returns the content of a file.
func readFile(t testing.TB, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
