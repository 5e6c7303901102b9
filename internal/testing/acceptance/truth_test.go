package acceptance

// Models that were answered wrongly, or not at all, before: the files of the folder truth.

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// truths are ln Z by hand, by exact rational arithmetic, or by the exact way where an estimate is
// asked for.
var truths = []struct {
	model    string
	args     []string
	lnZ      float64
	estimate bool
}{
	{"w1.json", nil, 246.37660495036, false},
	{"w2.json", nil, 600 * math.Ln2, false},
	{"w4.json", []string{"--evid", "w4.evid"}, -1000, false},
	{"wrong878.json", []string{"--mar"}, 195.1260995332946, false},
	{
		"orth_min2.json", []string{"--evid", "om2.evid", "--method", "exact"},
		-17 * math.Ln10, false,
	},
	{"hang.json", []string{"--method", "symmetry-cp", "--deadline", "2m"}, 711.5283525374016, false},
	{"hang_exact.json", []string{"--method", "exact", "--memory", "1KiB"}, 1425.552447550236, false},
	{"c1908.isc.cnf.uai.gz", []string{"--mar", "--memory", "8GiB"}, 9.93398985691 * math.Ln10, false},
	{"qmr600_14.json.gz", []string{"--evid", "qmr600_14.evid"}, -32.22419986003, false},
	{"ldpc_1.uai", []string{"--method", "truncated", "--set", "truncated.bond=4"}, -5.717453679364, true},
	{"colour_4.uai", []string{"--method", "truncated", "--set", "truncated.bond=4"}, 11.623858425677, true},
}

func TestTruths(t *testing.T) {
	needBinaries(t)
	data := os.Getenv("BTN_DATA")
	if data == "" {
		t.Skip("BTN_DATA names no folder of reference models")
	}
	for _, c := range truths {
		t.Run(c.model, func(t *testing.T) {
			args := []string{"infer", filepath.Join(data, "truth", c.model), "--json"}
			for k, a := range c.args {
				if k > 0 && c.args[k-1] == "--evid" {
					a = filepath.Join(data, "truth", a)
				}
				args = append(args, a)
			}
			out, code := command(t, "btn", args...)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, out)
			}
			r := results(t, out)[0]
			tolerance := 1e-9 * math.Abs(c.lnZ)
			if c.estimate && r.Uncertainty != nil {
				tolerance = 3 * *r.Uncertainty
			}
			if r.LogZ == nil || r.Exact == c.estimate || math.Abs(*r.LogZ-c.lnZ) > tolerance {
				t.Errorf("want ln Z %v within %v: %s", c.lnZ, tolerance, out)
			}
		})
	}
}
