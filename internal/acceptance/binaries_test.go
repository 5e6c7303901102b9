package acceptance

// The four worker binaries on a real nats-server and a real redis-server, started with the files in
// deploy/.

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// deployment is a running system of child processes.
type deployment struct {
	nats, redis string
	env         []string // more of the workers' environment
	workers     map[string]*exec.Cmd
	logs        map[string]*output
}

// deploy starts servers and workers; contractors is the number of contract workers. The workers have
// env in their environment.
func deploy(t *testing.T, contractors int, env ...string) *deployment {
	t.Helper()
	needBinaries(t)
	redis := testserver.Redis(t, testserver.RedisOptions{Config: "../../deploy/redis.conf"})
	server := testserver.NATS(t, testserver.NATSOptions{Config: "../../deploy/nats-server.conf"})
	d := &deployment{
		nats: server.URL, redis: redis.URL, env: env, workers: map[string]*exec.Cmd{}, logs: map[string]*output{},
	}
	if out, code := command(t, "btn", "setup", "--nats", d.nats, "--wait", "10s"); code != 0 {
		t.Fatalf("btn setup: exit code %d\n%s", code, out)
	}
	d.start(t, "reparam-worker", "reparam-worker")
	d.start(t, "learn-worker", "learn-worker")
	d.start(t, "aggregator", "aggregator")
	for i := range contractors {
		d.start(t, "contract-worker", fmt.Sprintf("contract-worker-%d", i))
	}
	return d
}

// start runs a worker configured by its environment, as compose does.
func (d *deployment) start(t *testing.T, program, name string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, program))
	cmd.Env = append(os.Environ(), "BTN_NATS="+d.nats, "BTN_REDIS="+d.redis, "BTN_LOG_LEVEL=warn",
		"BTN_LOG_FORMAT=json")
	cmd.Env = append(cmd.Env, d.env...)
	log := &output{}
	d.logs[name] = log
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.workers[name] = cmd
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, log.String())
		}
	})
}

// infer runs `btn infer` against the deployment, or embedded if d is nil.
func (d *deployment) infer(t *testing.T, args ...string) []btn.Result {
	t.Helper()
	args = append([]string{"infer", "--json"}, args...)
	if d != nil {
		args = append(args, "--nats", d.nats)
	}
	out, code := command(t, "btn", args...)
	if code != 0 {
		t.Fatalf("btn %v: exit code %d\n%s", args, code, out)
	}
	return results(t, out)
}

// sameBits compares the numbers of two answers to the same request.
func sameBits(t *testing.T, name string, got, want []btn.Result) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d results, want %d", name, len(got), len(want))
	}
	for q := range want {
		for field, pair := range map[string][2]*float64{
			"log_z": {got[q].LogZ, want[q].LogZ}, "log10_z": {got[q].Log10Z, want[q].Log10Z},
			"residual":            {got[q].Residual, want[q].Residual},
			"ln_explained":        {got[q].LnExplained, want[q].LnExplained},
			"cancellation_digits": {got[q].CancellationDigits, want[q].CancellationDigits},
		} {
			if (pair[0] == nil) != (pair[1] == nil) ||
				pair[0] != nil && math.Float64bits(*pair[0]) != math.Float64bits(*pair[1]) {
				t.Errorf("%s, query %d: %s differs: %v and %v", name, q, field, pair[0], pair[1])
			}
		}
		if got[q].LogZ == nil {
			t.Errorf("%s, query %d: no number: %+v", name, q, got[q])
		}
	}
}

func TestFourBinariesGiveTheEmbeddedAnswerBitForBit(t *testing.T) {
	d := deploy(t, 3)
	for name, args := range map[string][]string{
		"exact": {
			"../../examples/alarm.uai", "--evid", "../../examples/alarm-low-pressure.evid", "--evid",
			"none",
		},
		"symmetry-cp": {
			"../../examples/grid8x8.uai", "--method", "symmetry-cp", "--components", "6", "--sweeps",
			"5",
		},
		"orthogonal": {"../../examples/asia.uai", "--maps", "orthogonal", "--cores", "variables"},
		"native":     {"../../examples/exactly-k.json"},
	} {
		sameBits(t, name, d.infer(t, args...), (*deployment)(nil).infer(t, args...))
	}
}

func TestSlicesOverThreeContractWorkers(t *testing.T) {
	d := deploy(t, 3)
	model := filepath.Join(t.TempDir(), "k26.uai")
	if out, code := command(t, "btn", "generate", "ising", "complete", "-n", "26", "--delta", "0.5", "-o",
		model); code != 0 {
		t.Fatalf("generate: exit code %d\n%s", code, out)
	}
	args := []string{model, "--method", "exact", "--mar"}
	whole := (*deployment)(nil).infer(t, args...)[0]
	sliced := append(args, "--memory", fmt.Sprintf("%.0fB", whole.Plan.Bytes/4))
	here, there := (*deployment)(nil).infer(t, sliced...), d.infer(t, sliced...)
	sameBits(t, "sliced", there, here)
	r := there[0]
	if r.Plan.Slices < 2 || r.Plan.Bytes > whole.Plan.Bytes/4 || !r.Exact {
		t.Errorf("a quarter of %.0f bytes: %+v", whole.Plan.Bytes, r.Plan)
	}
	if math.Abs(*r.LogZ-*whole.LogZ) > 1e-10 {
		t.Errorf("ln Z %v in slices, %v whole", *r.LogZ, *whole.LogZ)
	}
	for v := range whole.Marginals {
		for a := range whole.Marginals[v] {
			if math.Float64bits(here[0].Marginals[v][a]) != math.Float64bits(r.Marginals[v][a]) {
				t.Errorf("P(x_%d = %d) has other bits here and there", v, a)
			}
			if math.Abs(whole.Marginals[v][a]-r.Marginals[v][a]) > 1e-10 {
				t.Errorf("P(x_%d = %d) = %v in slices, %v whole", v, a, r.Marginals[v][a], whole.Marginals[v][a])
			}
		}
	}
}

func TestOtherEvidenceHitsTheCacheOfTheBinaries(t *testing.T) {
	d := deploy(t, 2)
	for _, method := range []string{"auto", "symmetry-cp"} {
		for i, evid := range []string{"asia-dyspnoea", "asia-visit-dyspnoea", "asia-smoker-xray"} {
			r := d.infer(t, "../../examples/asia.uai", "--evid", "../../examples/"+evid+".evid", "--method", method)
			want := "hit"
			if i == 0 {
				want = "miss"
			}
			if r[0].Cache != want {
				t.Errorf("%s, evidence %d: cache %q, want %q", method, i+1, r[0].Cache, want)
			}
		}
	}
}

func TestKilledContractWorkerChangesNothing(t *testing.T) {
	d := deploy(t, 3)
	model := filepath.Join(t.TempDir(), "grid.uai")
	if out, code := command(t, "btn", "generate", "ising", "grid", "--rows", "14", "--columns", "40",
		"--delta", "0.5", "-o", model); code != 0 {
		t.Fatalf("generate: exit code %d\n%s", code, out)
	}
	args := []string{model}
	for i := range 24 {
		evid := filepath.Join(t.TempDir(), "q.evid")
		write(t, evid, fmt.Sprintf("1 %d %d\n", 7*i, i%2))
		args = append(args, "--evid", evid)
	}
	want := (*deployment)(nil).infer(t, args...)

	remote, err := client.Connect(d.nats)
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	nc, err := nats.Connect(d.nats)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	answers, err := nc.SubscribeSync(wire.Prefix + "done.*") // every answer that was stored
	if err != nil {
		t.Fatal(err)
	}
	progress, err := nc.SubscribeSync(wire.Prefix + "progress.*")
	if err != nil {
		t.Fatal(err)
	}
	killed := make(chan error, 1)
	go func() { // as soon as the first chunk is in, one worker dies over the next
		for {
			m, err := progress.NextMsg(time.Minute)
			if err != nil {
				killed <- err
				return
			}
			var p wire.Progress
			if wire.Decode(m.Data, &p) == nil && p.Stage == "contract-worker" && p.Done >= 1 && p.Done < p.Total {
				killed <- d.workers["contract-worker-1"].Process.Kill()
				return
			}
		}
	}()
	got := d.infer(t, args...)
	if err := <-killed; err != nil {
		t.Fatalf("no worker was killed in the middle of the job: %v", err)
	}
	sameBits(t, "one worker killed", got, want)
	if _, err := answers.NextMsg(time.Second); err != nil {
		t.Fatalf("no answer was republished: %v", err)
	}
	if m, err := answers.NextMsg(6 * time.Second); err == nil { // longer than a redelivery takes
		t.Errorf("a second answer came: %s", m.Subject)
	}
}

func TestBinariesRefuseBadInputAndDrain(t *testing.T) {
	d := deploy(t, 1)
	nc, err := nats.Connect(d.nats)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c, err := client.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	checkBadInputByRawMessage(ctx, t, nc, c)
	for name, cmd := range d.workers {
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("%s died of bad input: %v", name, err)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s after SIGTERM: %v", name, err)
		}
	}
	if out, code := command(t, "btn", "dlq", "list", "--nats", d.nats); code != 0 ||
		!strings.Contains(out, "raw-") {
		t.Errorf("dead letters after bytes that are no message: exit code %d\n%s", code, out)
	}
}
