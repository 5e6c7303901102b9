package acceptance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/schemas"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// referenceModels are solved exactly by one elimination order within the default budget.
var referenceModels = []string{
	"uai/Grids_11", "uai/Segmentation_11", "uai/CSP_13", "uai/Alchemy_11", "uai/Promedus_29",
	"uai/Pedigree_13", "uai/relational_3",
}

func TestExactOnReferenceModels(t *testing.T) {
	t.Parallel()
	needBinaries(t)
	data := os.Getenv("BTN_DATA")
	if data == "" {
		t.Skip("BTN_DATA names no folder of reference models")
	}
	models := append([]string{}, referenceModels...)
	ising, err := filepath.Glob(filepath.Join(data, "ising", "*.uai"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range ising {
		models = append(models, "ising/"+strings.TrimSuffix(filepath.Base(path), ".uai"))
	}
	for _, name := range models {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(data, name+".uai")
			out, code := command(t, "btn", "infer", path, "--method", "exact", "--json")
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, out)
			}
			r := results(t, out)[0]
			raw, err := os.ReadFile(path + ".PR")
			if err != nil {
				t.Fatal(err)
			}
			fields := strings.Fields(string(raw))
			last := fields[len(fields)-1]
			want, err := strconv.ParseFloat(last, 64)
			if err != nil {
				t.Fatal(err)
			}
			_, decimals, _ := strings.Cut(last, ".")
			tolerance := max(1e-5, 0.51*math.Pow(10, -float64(len(decimals)))) // the competition prints six digits
			if r.Log10Z == nil || math.Abs(*r.Log10Z-want) > tolerance || !r.Exact {
				t.Errorf("log10 Z %v, want %v within %g", r.Log10Z, want, tolerance)
			}
			if r.EvidenceFile == nil || *r.EvidenceFile != path+".evid" {
				t.Errorf("the evidence beside the model is not named: %v", r.EvidenceFile)
			}
		})
	}
}

func TestMoreComponentsExplainMoreAndTheCertificateHolds(t *testing.T) {
	t.Parallel()
	needBinaries(t)
	dir := t.TempDir()
	models := []string{filepath.Join(dir, "grid3x3.uai"), filepath.Join(dir, "k5.uai")}
	for _, args := range [][]string{
		{"grid", "--rows", "3", "--columns", "3", "--delta", "0.5", "-o", models[0]},
		{"complete", "-n", "5", "--delta", "1", "-o", models[1]},
	} {
		if out, code := command(t, "btn", append([]string{"generate", "ising"}, args...)...); code != 0 {
			t.Fatalf("generate %v: exit code %d: %s", args, code, out)
		}
	}
	if data := os.Getenv("BTN_DATA"); data != "" {
		models = append(models, filepath.Join(data, "ising", "complete15_mixed_0.5_s0.uai"))
	}
	for _, model := range models {
		out, _ := command(t, "btn", "infer", model, "--method", "exact", "--json", "--evid", "none")
		lnZ := *results(t, out)[0].LogZ
		explained := math.Inf(-1)
		for _, components := range []int{1, 2, 4} {
			out, code := command(t, "btn", "infer", model, "--method", "symmetry-cp", "--set",
				fmt.Sprint("learned.objective=frobenius,learned.components=", components), "--json", "--evid", "none")
			r := results(t, out)[0]
			if code != 0 || r.LnExplained == nil || r.Residual == nil || r.ConditionGram == nil ||
				r.CancellationDigits == nil || r.Certificate == nil || r.Components == 0 || r.Exact {
				t.Fatalf("%s, %d components: exit code %d, fields missing: %s", model, components, code, out)
			}
			if *r.LnExplained <= explained {
				t.Errorf("%s: %d components explain %v, fewer explained %v", model, components, *r.LnExplained, explained)
			}
			explained = *r.LnExplained
			if lnZ > r.Certificate.LnUpper || r.Certificate.LnLower != nil && lnZ < *r.Certificate.LnLower {
				t.Errorf("%s: ln Z %v is outside the certificate %+v", model, lnZ, r.Certificate)
			}
			if !strings.Contains(strings.Join(r.Warnings, " "), "unknown quality") {
				t.Errorf("%s: no warning that this is an estimate: %v", model, r.Warnings)
			}
		}
	}
}

func TestResultsMatchTheirSchema(t *testing.T) {
	t.Parallel()
	needBinaries(t)
	compiler := jsonschema.NewCompiler()
	for _, path := range schemas.Paths() {
		raw, err := schemas.FS.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource(schemas.Base+path, doc); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile(schemas.Base + "result.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	impossible := filepath.Join(t.TempDir(), "impossible.evid")
	write(t, impossible, "2 1 1 5 0") // tuberculosis, and neither tuberculosis nor cancer
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"exact":    {[]string{"../../../examples/asia.uai"}, 0},
		"estimate": {[]string{"../../../examples/asia.uai", "--method", "symmetry-cp", "--set", "learned.objective=frobenius"}, 0},
		"evidence": {
			[]string{"../../../examples/asia.uai", "--evid", "../../../examples/asia-dyspnoea.evid", "--evid", "none"},
			0,
		},
		"zero":      {[]string{"../../../examples/asia.uai", "--evid", impossible}, 0},
		"over":      {[]string{"../../../examples/grid8x8.uai", "--method", "exact", "--memory", "1kB"}, 5},
		"deadline":  {[]string{"../../../examples/asia.uai", "--deadline", "1ms"}, 5},
		"no file":   {[]string{"absent.uai"}, 3},
		"bad input": {[]string{"../../../examples/README.md"}, 3},
	} {
		out, code := command(t, "btn", append([]string{"infer", "--json"}, c.args...)...)
		if code != c.code {
			t.Errorf("%s: exit code %d, want %d: %s", name, code, c.code, out)
		}
		for line := range strings.Lines(out) {
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
			if err != nil {
				t.Fatalf("%s: %v: %s", name, err, line)
			}
			if err := schema.Validate(value); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			var r query.Result
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			if name == "zero" && (!r.Zero || r.LogZ != nil || r.Log10Z != nil || r.Status != query.StatusOK) {
				t.Errorf("impossible evidence: %s", line)
			}
		}
	}
}

func TestUpAnswersFromItsCacheAndEndsOnInterrupt(t *testing.T) {
	needBinaries(t)
	up := exec.Command(filepath.Join(bin, "btn"), "up", "--port", "0")
	out, err := up.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	defer up.Process.Kill()
	d := &deployment{}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "ready") {
		if fields := strings.Fields(lines.Text()); len(fields) == 2 && fields[0] == "nats" {
			d.nats = fields[1]
		}
	}
	if d.nats == "" {
		t.Fatal("btn up printed no URL of NATS")
	}
	for i, evid := range []string{"asia-dyspnoea", "asia-visit-dyspnoea", "asia-smoker-xray"} {
		r := d.infer(t, "../../../examples/asia.uai", "--evid", "../../../examples/"+evid+".evid")
		want := "hit"
		if i == 0 {
			want = "miss"
		}
		if r[0].Cache != want {
			t.Errorf("evidence %d: cache %q, want %q", i+1, r[0].Cache, want)
		}
	}
	job, code := command(t, "btn", "submit", "--nats", d.nats, "--job", "mine", "../../../examples/asia.uai")
	if code != 0 || strings.TrimSpace(job) != "mine" {
		t.Errorf("submit: exit code %d, %q", code, job)
	}
	watched, code := command(t, "btn", "watch", "--nats", d.nats, "--json", "mine")
	if code != 0 || results(t, watched)[0].Job != "mine" {
		t.Errorf("watch: exit code %d, %s", code, watched)
	}
	if _, code := command(t, "btn", "submit", "--nats", d.nats, "--job", "mine",
		"../../../examples/alarm.uai"); code != 3 {
		t.Errorf("another model under a taken id: exit code %d, want 3", code)
	}
	if err := up.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := up.Wait(); err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
}

// used is the processor time of a process, a minute where the system does not tell.
func used(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if err != nil || len(fields) < 13 {
		return time.Minute
	}
	user, _ := strconv.Atoi(fields[11]) // hundredths of a second
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

func TestInterruptIs130(t *testing.T) {
	needBinaries(t)
	dir := t.TempDir()
	model := filepath.Join(dir, "k60.uai")
	if out, code := command(t, "btn", "generate", "ising", "complete", "-n", "60", "-o", model); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	cmd := exec.Command(filepath.Join(bin, "btn"), "infer", model, "--method", "symmetry-cp",
		"--set", "learned.components=200,learned.objective=frobenius")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(5 * time.Minute); used(t, cmd.Process.Pid) < time.Second && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond) // it has begun to learn, which takes minutes
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d, want 130: %s%s", code, stdout.String(), stderr.String())
	}
	if strings.ContainsAny(fmt.Sprint(stderr.String(), stdout.String()), "\r\x1b") {
		t.Error("a progress bar was drawn into a pipe")
	}
}
