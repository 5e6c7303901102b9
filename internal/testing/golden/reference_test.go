package golden

// The reference models in the folder that BTN_DATA names, with budgets in counted work.

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// referenceSettings are the settings of the requests on every reference model.
var referenceSettings = map[string]query.Settings{
	"auto":           {Method: query.MethodAuto, Budget: 1e9},
	"auto-variables": {Method: query.MethodAuto, Budget: 1e8, Cores: query.CoresAreVariables},
	"truncated":      {Method: query.MethodTruncated, Budget: 2e8, Bond: 8},
	"regions":        {Method: query.MethodRegions, Budget: 1e9},
	"symmetry-cp":    {Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 1, Budget: 1e8},
	"symmetry-cp-bp": {
		Method:     query.MethodSymmetryCP,
		Components: 1,
		Budget:     1e8,
		Maps:       query.MapBP,
	},
	"symmetry-cp-variables": {Method: query.MethodSymmetryCP, Components: 1,
		Budget: 1e8, Maps: query.MapOrthogonal,
		Cores: query.CoresAreVariables},
	"exact": {Method: query.MethodExact, Memory: 1 << 30},
}

var otherEvidence = map[string]string{"truth/orth_min2": "truth/om2.evid"}

// referenceModels are the names of all models that there is a reader for.
func referenceModels(t *testing.T, data string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if name := strings.TrimSuffix(path, ".gz"); err == nil &&
			(strings.HasSuffix(name, ".uai") || strings.HasSuffix(name, ".json")) {
			name, err = filepath.Rel(data, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func plain(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil && strings.HasSuffix(path, ".gz") {
		var r io.Reader
		if r, err = gzip.NewReader(bytes.NewReader(text)); err == nil {
			text, err = io.ReadAll(r)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// leftOut are the cases that take more than some four seconds of a processor: plans of truncated
// legs above all, whose search is counted, too, but in moves that Budget does not bound.
var leftOut = map[string][]string{
	"truncated": {"ising/grid100x14_attractive_0.5_s0.uai", "ising/grid100x14_attractive_1.0_s0.uai",
		"ising/grid100x14_mixed_0.5_s0.uai",
		"ising/grid100x14_mixed_1.0_s0.uai", "protein/pdb1f4p.uai.gz", "protein/pdb1npl.uai.gz",
		"protein/pdb1wad.uai.gz",
		"truth/c1908.isc.cnf.uai.gz",
		"uai/linkage_11.uai", "uai/linkage_13.uai", "uai/linkage_15.uai", "uai/linkage_25.uai"},
	"auto":           {"truth/qmr600_14.json.gz"},
	"auto-variables": {"truth/qmr600_14.json.gz"},
	"regions":        {"truth/qmr600_14.json.gz"},
	"exact":          {"truth/qmr600_14.json.gz", "protein/pdb1f4p.uai.gz", "uai/2bitcomp_5.cnf.uai"},
}

// quickModels are the models that are asked where BTN_GOLDENS is not set.
var quickModels = []string{"ising/grid10x10_mixed_1.0_s0.uai", "uai/Grids_11.uai", "uai/Pedigree_13.uai",
	"uai/Promedus_29.uai",
	"uai/Segmentation_11.uai",
	"truth/w1.json", "truth/w2.json", "truth/w4.json", "truth/wrong878.json", "truth/orth_min2.json",
	"truth/hang_exact.json"}

// readReference reads a model and the evidence beside it, if there is any.
func readReference(t *testing.T, data, name string) (*factorgraph.Model, factorgraph.Evidence, error) {
	t.Helper()
	text := bytes.NewReader(plain(t, filepath.Join(data, name)))
	whole := strings.TrimSuffix(name, ".gz")
	stem := strings.TrimSuffix(strings.TrimSuffix(whole, ".uai"), ".json")
	var m *factorgraph.Model
	var ev factorgraph.Evidence
	var err error
	if strings.HasSuffix(whole, ".uai") {
		m, err = uai.Read(text, uai.Limits{})
	} else {
		m, err = modeljson.Decode(text, modeljson.Limits{})
	}
	for _, beside := range []string{whole + ".evid", stem + ".evid", otherEvidence[stem]} {
		path := filepath.Join(data, beside)
		if info, statErr := os.Stat(path); err == nil && statErr == nil && !info.IsDir() {
			ev, err = uai.ReadEvidence(bytes.NewReader(plain(t, path)), m.Domains)
		}
	}
	return m, ev, err
}

// referenceModel asks one model by every setting.
func (a *answers) referenceModel(t *testing.T, data, name string) {
	m, ev, err := readReference(t, data, name)
	if err != nil {
		a.results.add(name+" read", "code="+string(fault.CodeOf(err)))
		return
	}
	for setting, s := range referenceSettings {
		if !slices.Contains(leftOut[setting], name) {
			a.ask(t, name+" "+setting, m, []query.Query{{Evidence: ev, Marginals: true}}, s)
		}
	}
}

// TestReferenceModels takes those models of the folder that there are goldens of: the folder is no
// part of the project. Each is a test of its own, whose goldens are written when it is done.
func TestReferenceModels(t *testing.T) {
	data := os.Getenv("BTN_DATA")
	if data == "" {
		t.Skip("BTN_DATA names no folder of reference models")
	}
	here(t)
	known := map[string]bool{}
	for name := range read(t, "reference").cases {
		model, _, _ := strings.Cut(name, " ")
		known[model] = true
	}
	var file sync.Mutex
	for _, name := range referenceModels(t, data) {
		switch {
		case os.Getenv("BTN_GOLDENS") == "" && !slices.Contains(quickModels, name):
			continue
		case !known[name] && !*update:
			t.Logf("%s: there are no goldens of this model", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAnswers()
			a.referenceModel(t, data, name)
			isOfModel := func(golden string) bool { model, _, _ := strings.Cut(golden, " "); return model == name }
			file.Lock()
			defer file.Unlock()
			a.results.hold(t, "reference", meant, isOfModel)
			a.decompositions.hold(t, decompositionsOf("reference"), bump, isOfModel)
		})
	}
}
