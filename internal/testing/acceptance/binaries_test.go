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
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// deployment is a running system of child processes, as one in production: TLS to both servers, an nkey and the least permissions for
// every process, signed messages.
type deployment struct {
	nats, redis string
	server      *testserver.NATSServer
	users       string                  // folder of btn keys
	cert        testserver.Certificates // of the servers, and of clients for Redis
	env         []string                // more of the workers' environment
	workers     map[string]*exec.Cmd
	logs        map[string]*output
}

// deploy starts servers and workers; contractors is the number of contract workers. The workers have
// env in their environment.
func deploy(t *testing.T, contractors int, env ...string) *deployment {
	t.Helper()
	needBinaries(t)
	d := &deployment{
		users: t.TempDir(), cert: testserver.NewCertificates(t), env: env,
		workers: map[string]*exec.Cmd{}, logs: map[string]*output{},
	}
	if out, code := command(t, "btn", "keys", d.users, "--tenant", "acme", "--tenant", "globex"); code != 0 {
		t.Fatalf("btn keys: exit code %d\n%s", code, out)
	}
	d.serve(t)
	if out, code := command(t, "btn", d.as("operator", "setup", "--wait", "10s")...); code != 0 {
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

// serve starts the servers with the files in deploy/, TLS and the accounts of btn keys.
func (d *deployment) serve(t *testing.T) {
	t.Helper()
	base, err := os.ReadFile("../../../deploy/nats-server.conf")
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "guarded.conf")
	write(t, conf, fmt.Sprintf("%s\ntls { cert_file: %q, key_file: %q }\ninclude accounts.conf\n", base, d.cert.ServerCert, d.cert.ServerKey))
	d.server = testserver.NATS(t, testserver.NATSOptions{Config: conf, StoreDir: d.users}) // where accounts.conf is
	d.nats = d.server.URL

	port := testserver.FreePort(t)
	testserver.Redis(t, testserver.RedisOptions{Config: "../../../deploy/redis.conf", Args: []string{
		"--tls-port", port, "--tls-ca-cert-file", d.cert.CA, "--tls-cert-file", d.cert.ServerCert, "--tls-key-file", d.cert.ServerKey,
	}})
	d.redis = "rediss://127.0.0.1:" + port
}

// as returns the arguments of a btn command that talks to NATS as a user.
func (d *deployment) as(user string, args ...string) []string {
	return append(args, "--nats", d.nats, "--nats-ca", d.cert.CA, "--config", d.settings(user))
}

// settings returns the settings that btn keys wrote for a user.
func (d *deployment) settings(user string) string {
	for _, path := range []string{filepath.Join(d.users, user+".json"), filepath.Join(d.users, "tenants", user+".json")} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return filepath.Join(d.users, user+" has no settings")
}

// connect connects to NATS as a user.
func (d *deployment) connect(t *testing.T, user string) *nats.Conn {
	t.Helper()
	nkey, err := nats.NkeyOptionFromSeed(filepath.Join(d.users, user+".nk"))
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(d.nats, nkey, nats.RootCAs(d.cert.CA), nats.CustomInboxPrefix("_INBOX_"+user))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// start runs a worker configured by its environment and the settings of its user, as compose does.
func (d *deployment) start(t *testing.T, program, name string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, program))
	cmd.Env = append(os.Environ(), "BTN_NATS="+d.nats, "BTN_REDIS="+d.redis, "BTN_LOG_LEVEL=warn",
		"BTN_LOG_FORMAT=json", "BTN_CONFIG="+d.settings(program), "BTN_NATS_CA="+d.cert.CA,
		"BTN_REDIS_CA="+d.cert.CA, "BTN_REDIS_CERT="+d.cert.ClientCert, "BTN_REDIS_KEY="+d.cert.ClientKey)
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
func (d *deployment) infer(t *testing.T, args ...string) []query.Result {
	t.Helper()
	args = append([]string{"infer", "--json"}, args...)
	switch {
	case d != nil && d.users == "": // open to everybody
		args = append(args, "--nats", d.nats)
	case d != nil:
		args = d.as("client", args...)
	}
	out, code := command(t, "btn", args...)
	if code != 0 {
		t.Fatalf("btn %v: exit code %d\n%s", args, code, out)
	}
	return results(t, out)
}

// sameBits compares the numbers of two answers to the same request.
func sameBits(t *testing.T, name string, got, want []query.Result) {
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
		bits := func(p, q float64) bool { return math.Float64bits(p) == math.Float64bits(q) }
		same := func(p, q query.Posterior) bool { return slices.EqualFunc(p.P, q.P, bits) }
		if !slices.EqualFunc(got[q].Marginals, want[q].Marginals, same) {
			t.Errorf("%s, query %d: marginals differ", name, q)
		}
		if got[q].LogZ == nil {
			t.Errorf("%s, query %d: no number: %+v", name, q, got[q])
		}
	}
}

func TestFourBinariesGiveTheEmbeddedAnswerBitForBit(t *testing.T) {
	t.Parallel()
	d := deploy(t, 3)
	for name, args := range map[string][]string{
		"exact": {
			"../../../examples/alarm.uai", "--evid", "../../../examples/alarm-low-pressure.evid", "--evid",
			"none",
		},
		"symmetry-cp": {
			"../../../examples/grid8x8.uai", "--method", "symmetry-cp", "--set", "learned.components=6,learned.objective=frobenius",
		},
		"orthogonal": {
			"../../../examples/asia.uai", "--method", "symmetry-cp", "--set", "learned.maps=orthogonal,learned.components=2,network.cores=variables",
		},
		"native": {"../../../examples/exactly-k.json"},
	} {
		sameBits(t, name, d.infer(t, args...), (*deployment)(nil).infer(t, args...))
	}
}

// A tenant at the command line: its jobs are its own, for everybody else.
func TestTenantsAtTheCommandLine(t *testing.T) {
	t.Parallel()
	d := deploy(t, 1)
	want := (*deployment)(nil).infer(t, "../../../examples/asia.uai")
	out, code := command(t, "btn", d.as("acme", "infer", "--json", "../../../examples/asia.uai")...)
	if code != 0 {
		t.Fatalf("btn infer: exit code %d\n%s", code, out)
	}
	got := results(t, out)
	sameBits(t, "as a tenant", got, want)
	if !strings.HasPrefix(got[0].Job, "acme.") {
		t.Errorf("job %s", got[0].Job)
	}

	job, code := command(t, "btn", d.as("acme", "submit", "--job", "mine", "../../../examples/asia.uai")...)
	if job != "acme.mine\n" || code != 0 {
		t.Fatalf("btn submit: %q, exit code %d", job, code)
	}
	if out, code := command(t, "btn", d.as("acme", "watch", "--json", "acme.mine")...); code != 0 {
		t.Errorf("btn watch: exit code %d\n%s", code, out)
	}
	for _, foreign := range [][]string{
		{"watch", "acme.mine"}, {"cancel", "acme.mine"}, {"submit", "--job", "acme.other", "../../../examples/asia.uai"},
		{"dlq", "list"}, {"dlq", "replay", "acme.mine"}, {"model", "ls"}, {"forget", "acme"},
	} {
		if out, code := command(t, "btn", d.as("globex", foreign...)...); code != config.ExitBadInput {
			t.Errorf("globex: btn %v: exit code %d\n%s", foreign, code, out)
		}
	}

	// Another tenant is forgotten, this one is not.
	forget := func(tenant string) string {
		t.Helper()
		out, code := command(t, "btn", d.as("operator", "forget", tenant)...)
		if code != 0 {
			t.Fatalf("btn forget: exit code %d\n%s", code, out)
		}
		return out
	}
	forget("globex")
	if out, code := command(t, "btn", d.as("acme", "watch", "--json", "acme.mine")...); code != 0 {
		t.Errorf("after another was forgotten: exit code %d\n%s", code, out)
	}
	if out := forget("acme"); !strings.Contains(out, "2 jobs") {
		t.Errorf("forgotten: %s", out)
	}
	if out, code := command(t, "btn", d.as("acme", "watch", "--json", "acme.mine")...); code != config.ExitBadInput {
		t.Errorf("after it was forgotten: exit code %d\n%s", code, out)
	}
}

func TestSlicesOverThreeContractWorkers(t *testing.T) {
	t.Parallel()
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
		for a := range whole.Marginals[v].P {
			if math.Float64bits(here[0].Marginals[v].P[a]) != math.Float64bits(r.Marginals[v].P[a]) {
				t.Errorf("P(x_%d = %d) has other bits here and there", v, a)
			}
			if math.Abs(whole.Marginals[v].P[a]-r.Marginals[v].P[a]) > 1e-10 {
				t.Errorf("P(x_%d = %d) = %v in slices, %v whole", v, a, r.Marginals[v].P[a], whole.Marginals[v].P[a])
			}
		}
	}
}

func TestOtherEvidenceHitsTheCacheOfTheBinaries(t *testing.T) {
	t.Parallel()
	d := deploy(t, 2)
	for _, method := range [][]string{{"auto"}, {"symmetry-cp", "--set", "learned.objective=frobenius"}} {
		for i, evid := range []string{"asia-dyspnoea", "asia-visit-dyspnoea", "asia-smoker-xray"} {
			args := []string{"../../../examples/asia.uai", "--evid", "../../../examples/" + evid + ".evid", "--method"}
			r := d.infer(t, append(args, method...)...)
			want := "hit"
			if i == 0 {
				want = "miss"
			}
			if r[0].Cache != want {
				t.Errorf("%s, evidence %d: cache %q, want %q", method[0], i+1, r[0].Cache, want)
			}
		}
	}
}

func TestKilledContractWorkerChangesNothing(t *testing.T) {
	t.Parallel()
	d := deploy(t, 3)
	model := filepath.Join(t.TempDir(), "grid.uai")
	if out, code := command(t, "btn", "generate", "ising", "grid", "--rows", "17", "--columns", "40",
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

	nc := d.connect(t, "client")
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
	if _, err := answers.NextMsg(time.Minute); err != nil {
		t.Fatalf("no answer was republished: %v", err)
	}
	if m, err := answers.NextMsg(6 * time.Second); err == nil { // longer than a redelivery takes
		t.Errorf("a second answer came: %s", m.Subject)
	}
}

func TestBinariesRefuseBadInputAndDrain(t *testing.T) {
	t.Parallel()
	d := deploy(t, 1)
	nc := d.connect(t, "client")
	c, err := client.New(nc, client.Options{})
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
	if out, code := command(t, "btn", d.as("operator", "dlq", "list")...); code != 0 ||
		!strings.Contains(out, "raw-") {
		t.Errorf("dead letters after bytes that are no message: exit code %d\n%s", code, out)
	}
}
