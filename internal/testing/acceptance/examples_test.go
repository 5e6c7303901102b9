package acceptance

// The two clients in examples/, in Go and in Node.js, against a real nats-server: their output
// equals the results of infer.Run on the request that pkg/wire reads out of the stream.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

const examples = "../../../examples/"

// program is an example as it is started.
type program struct {
	argv []string
	unit string // of its durations
	text bool   // asks for the text form in place of JSON
}

const nodeDir = examples + "client-node"

// builtClient builds examples/client-go once.
var builtClient = sync.OnceValues(func() ([]byte, error) {
	return exec.Command("go", "build", "-ldflags=-s -w", "-o", bin,
		"github.com/basetensor/basetensor/examples/client-go").CombinedOutput()
})

func goClient(t *testing.T) program {
	t.Helper()
	if out, err := builtClient(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program{argv: []string{filepath.Join(bin, "client-go")}, unit: "ms"}
}

// installed installs the dependencies of examples/client-node once, unless they are there.
var installed = sync.OnceValues(func() ([]byte, error) {
	if _, err := os.Stat(nodeDir + "/node_modules"); err == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund")
	install.Dir = nodeDir
	out, err := install.CombinedOutput()
	if err != nil {
		os.RemoveAll(nodeDir + "/node_modules")
	}
	return out, err
})

func nodeClient(t *testing.T) program {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node on PATH: install Node.js 20 or later to test examples/client-node")
	}
	if out, err := installed(); err != nil {
		t.Skipf("npm ci in examples/client-node (no npm, or no registry?): %v\n%s", err, out)
	}
	return program{argv: []string{node, nodeDir + "/infer.mjs"}}
}

// served is a real nats-server with the stages in this process.
type served struct {
	url string
	bus *bus.Bus
}

// maxPayload is the server's limit per message, so low that small requests and answers exceed it.
const maxPayload = 32 << 10

func serve(t *testing.T, stages ...pipeline.Stage) served {
	t.Helper()
	if testing.Short() {
		t.Skip("runs servers and programs: not with -short")
	}
	config := filepath.Join(t.TempDir(), "nats.conf")
	write(t, config, fmt.Sprintf("max_payload: %d\n", maxPayload))
	s := served{url: testserver.NATS(t, testserver.NATSOptions{Config: config}).URL}
	nc, err := nats.Connect(s.url)
	if err != nil {
		t.Fatal(err)
	}
	if s.bus, err = bus.New(nc, bus.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := pipeline.Setup(t.Context(), nc, pipeline.Streams{InMemory: true, MaxBytes: 512 << 20}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- pipeline.Run(ctx, pipeline.Config{NC: nc}, stages...) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		nc.Close()
	})
	return s
}

// run starts the example and returns its output. onProgress is called at the first line of
// progress, if it is not nil.
func (p program) run(
	t *testing.T, s served, onProgress func(*os.Process), args ...string,
) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	argv := append(p.argv[1:len(p.argv):len(p.argv)], "--nats", s.url)
	if !p.text {
		argv = append(argv, "--json")
	}
	argv = append(argv, args...)
	cmd := exec.CommandContext(ctx, p.argv[0], argv...)
	var out bytes.Buffer
	cmd.Stdout = &out
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	buffer := make([]byte, 4096)
	for {
		n, err := log.Read(buffer)
		said.Write(buffer[:n])
		if onProgress != nil && strings.Contains(said.String(), "learn-worker 1/1") {
			onProgress(cmd.Process)
			onProgress = nil
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd.Wait()
	return out.String(), said.String(), cmd.ProcessState.ExitCode()
}

// request reads the stored model of a job as the workers do.
func (s served) request(t *testing.T, job string) (wire.Request, nats.Header) {
	t.Helper()
	stored, err := s.bus.Log.Get(t.Context(), bus.StreamModel, wire.Prefix+"model.*."+job)
	if err != nil {
		t.Fatal(err)
	}
	var m wire.Request
	if err := wire.Decode(stored.Data, &m); err != nil {
		t.Fatalf("what is stored for job %s: %v", job, err)
	}
	if want := wire.ModelSubject(wire.Lane(m.Tenant), job); stored.Subject != want {
		t.Errorf("job %s is on %s, its tenant's lane is %s", job, stored.Subject, want)
	}
	return m, stored.Header
}

// computed returns the results of infer.Run for a request.
func computed(t *testing.T, m wire.Request) []query.Result {
	t.Helper()
	r := infer.Request{Job: m.Job, Settings: m.Settings}
	var err error
	if m.Text != "" {
		r.Model, err = uai.Read(strings.NewReader(m.Text), uai.Limits{})
	} else {
		r.Model, err = m.Model.Decode()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range m.Queries {
		if q.Evid != "" {
			if q.Evidence, err = uai.ReadEvidence(strings.NewReader(q.Evid), r.Model.Domains); err != nil {
				t.Fatal(err)
			}
		}
		r.Queries = append(r.Queries, query.Query{
			Evidence: q.Evidence, Marginals: q.Marginals, Over: q.Over, Joint: q.Joint, EvidenceFile: q.EvidenceFile,
		})
	}
	want, err := infer.Run(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// bare is a result as JSON, with all digits of its numbers, but without duration and cache hits.
func bare(t *testing.T, r query.Result) string {
	t.Helper()
	r.TimingsMS, r.Cache = nil, ""
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// check compares the output of an example for a job with the results of infer.Run on the stored
// request.
func (s served) check(t *testing.T, job, stdout string) []query.Result {
	t.Helper()
	m, header := s.request(t, job)
	digest, err := m.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range message.Headers(&m, job, digest, m.Tenant) {
		if got := header[name]; len(got) != 1 || got[0] != want[0] {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	got, want := results(t, stdout), computed(t, m)
	if len(got) != len(want) {
		t.Fatalf("%d results, want %d", len(got), len(want))
	}
	for q := range want {
		if g, w := bare(t, got[q]), bare(t, want[q]); g != w {
			t.Fatalf("query %d: the example printed\n%s\ninfer.Run says\n%s", q, g, w)
		}
	}
	return got
}

func TestGoExample(t *testing.T)   { testExample(t, goClient) }
func TestNodeExample(t *testing.T) { testExample(t, nodeClient) }

func testExample(t *testing.T, prepare func(*testing.T) program) {
	t.Parallel()
	s := serve(t, pipeline.Stages()...)
	p := prepare(t)
	ask := func(t *testing.T, want int, args ...string) (string, string) {
		t.Helper()
		stdout, stderr, code := p.run(t, s, nil, args...)
		if code != want {
			t.Fatalf("exit code %d, want %d\n%s%s", code, want, stdout, stderr)
		}
		return stdout, stderr
	}
	alarm := []string{
		"--text", examples + "alarm.uai", "--evid", examples + "alarm-low-pressure.evid", "--evid",
		examples + "alarm-no-breath.evid",
	}

	t.Run("native", func(t *testing.T) {
		stdout, stderr := ask(t, 0, "--job", "native")
		r := s.check(t, "native", stdout)
		// By hand: P(wet) = 0.8·0.4·0.9 + 0.2·(0.99·0.8 + 0.01·0.99); half of its own second part is
		// P(rain, wet).
		both := 0.2 * (0.99*0.8 + 0.01*0.99)
		wet := 0.8*0.4*0.9 + both
		if math.Abs(*r[1].LogZ-math.Log(wet)) > 1e-12 || math.Abs(math.Exp(*r[2].Ratio.Ln)-both/wet) > 1e-12 {
			t.Errorf("ln P(wet) %v, want %v; P(rain | wet) %v, want %v",
				*r[1].LogZ, math.Log(wet), math.Exp(*r[2].Ratio.Ln), both/wet)
		}
		if !strings.Contains(stderr, "reparam-worker 1/1") {
			t.Errorf("no progress was shown: %s", stderr)
		}
	})
	t.Run("text, twice, and taken", func(t *testing.T) {
		args := append([]string{"--job", "alarm", "--tenant", "Käse & Co"}, alarm...)
		first, _ := ask(t, 0, args...)
		s.check(t, "alarm", first)
		if second, _ := ask(t, 0, args...); second != first {
			t.Errorf("the same request again is another answer:\n%s\n%s", first, second)
		}
		for _, other := range [][]string{
			args[:len(args)-2], append([]string{"--job", "alarm", "--tenant", "other"}, alarm...),
		} {
			if _, stderr := ask(t, 2, other...); !strings.Contains(stderr, "taken") {
				t.Errorf("another request under the same id: %s", stderr)
			}
		}
		if stored, err := s.bus.Log.Subjects(t.Context(), bus.StreamModel, wire.Prefix+"model.*.alarm"); err != nil ||
			len(stored) != 1 {
			t.Errorf("stored under one id: %v, %v", stored, err)
		}
	})
	t.Run("the same request by another client", func(t *testing.T) {
		m, _ := s.request(t, "alarm")
		m.Job, m.Settings = "foreign", m.Settings.WithDefaults() // the same request in other bytes
		data, err := wire.Encode(&m)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := m.Digest()
		if err != nil {
			t.Fatal(err)
		}
		msg := &nats.Msg{
			Subject: wire.ModelSubject(wire.Lane(m.Tenant), m.Job),
			Header:  message.Headers(&m, m.Job, digest, m.Tenant),
			Data:    data,
		}
		if _, err := s.bus.Conn.JS.PublishMsg(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
		stdout, _ := ask(t, 0, append([]string{"--job", "foreign", "--tenant", m.Tenant}, alarm...)...)
		s.check(t, "foreign", stdout)
	})
	t.Run("error answer", func(t *testing.T) {
		bad := filepath.Join(t.TempDir(), "bad.uai")
		write(t, bad, "MARKOV\n2\n2 x\n")
		if _, stderr := ask(t, 1, "--job", "bad", "--text", bad); !strings.Contains(stderr, "bad_input") ||
			!strings.Contains(stderr, "line 3") {
			t.Errorf("%s", stderr)
		}
	})
	t.Run("a query that is impossible", func(t *testing.T) {
		evid := filepath.Join(t.TempDir(), "no.evid")
		write(t, evid, "2 1 1 5 0\n") // tuberculosis, and neither tuberculosis nor cancer
		stdout, _ := ask(t, 0, "--job", "impossible", "--text", examples+"asia.uai", "--evid", evid)
		if r := s.check(t, "impossible", stdout); !r[1].Zero || r[0].Zero {
			t.Errorf("%s", stdout)
		}
	})
	t.Run("payloads beyond the server's limit", func(t *testing.T) {
		model := filepath.Join(t.TempDir(), "wide.uai")
		write(t, model,
			"MARKOV\n12\n"+strings.Repeat("2 ",
				12)+"\n1\n12 "+numbers(12)+"\n4096\n"+strings.Repeat("0.125000\n", 1<<12))
		stdout, _ := ask(t, 0, "--job", "wide", "--text", model)
		if again, _ := ask(t, 0, "--job", "wide", "--text", model); again != stdout {
			t.Errorf("the same request again is another answer:\n%s\n%s", stdout, again)
		}
		if m, header := s.request(t, "wide"); len(m.Text) < maxPayload || header.Get("Btn-Blob") == "" {
			t.Errorf("a model of %d bytes, headers %v", len(m.Text), header)
		}
		s.check(t, "wide", stdout)
		args := append([]string{"--job", "long"}, alarm[:2]...)
		for range 40 {
			args = append(args, alarm[2:4]...)
		}
		stdout, _ = ask(t, 0, args...)
		if answer, err := s.bus.Log.Get(t.Context(), bus.StreamAnswer, wire.AnswerSubject("long")); err != nil ||
			len(answer.Data) < maxPayload {
			t.Errorf("an answer of %d bytes, %v", len(answer.Data), err)
		}
		s.check(t, "long", stdout)
	})
	t.Run("sampled components", func(t *testing.T) {
		args := []string{"--job", "sampled", "--text", examples + "grid8x8.uai", "--method", "sampled", "--accuracy", "0.05", "--flops", "3e8"}
		stdout, _ := ask(t, 0, args...)
		r := s.check(t, "sampled", stdout)[0]
		last := r.Estimates[len(r.Estimates)-1]
		const truth = 61.4792266625 // as in examples/README.md
		if r.Exact || r.Bounds == nil || !(*r.Bounds.Lower <= truth && truth <= *r.Bounds.Upper) || last.EffectiveSamples == nil {
			t.Fatalf("%s", stdout)
		}
		human := p
		human.text = true
		said, _, code := human.run(t, s, nil, args...)
		for _, want := range []string{
			fmt.Sprintf("ln Z = %.10f (an estimate)", *r.LogZ),
			fmt.Sprintf("from %.6f to %.6f, at level %g", *r.Bounds.Lower, *r.Bounds.Upper, r.Bounds.Level),
			fmt.Sprintf("uncertainty %.6f", *r.Uncertainty),
			fmt.Sprintf("standard error %.6f, %d components worth %.6f of one", *last.StandardError, last.Components, *last.EffectiveSamples),
		} {
			if code != 0 || !strings.Contains(said, want) {
				t.Errorf("no %q in\n%s", want, said)
			}
		}
	})
	t.Run("no server", func(t *testing.T) {
		if _, stderr, code := p.run(t, served{url: "nats://127.0.0.1:1"}, nil); code != 2 ||
			!strings.Contains(stderr, "127.0.0.1:1") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	})
}

func TestGoExampleEnds(t *testing.T)   { testExampleEnds(t, goClient) }
func TestNodeExampleEnds(t *testing.T) { testExampleEnds(t, nodeClient) }

// Without contract-workers no job is answered: it ends by its deadline, by Ctrl-C, or when patience
// is over.
func testExampleEnds(t *testing.T, prepare func(*testing.T) program) {
	t.Parallel()
	s := serve(t, pipeline.StageReparam, pipeline.StageLearn, pipeline.StageAggregate)
	p := prepare(t)
	interrupt := func(p *os.Process) { p.Signal(os.Interrupt) }
	for _, c := range []struct {
		name, flag, ms string
		onProgress     func(*os.Process)
		want           string
	}{
		{"deadline", "--deadline", "300", nil, "deadline: "},                           // which stage says so depends on how busy the machine is
		{"patience", "--patience", "15000", nil, "cancelled: cancelled: nobody waits"}, // the job is stored by then
		{"interrupt", "--patience", "50000", interrupt, "cancelled: cancelled: nobody waits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, code := p.run(t, s, c.onProgress, "--job", c.name, c.flag, c.ms+p.unit)
			// A stage that the deadline meets answers every query with it.
			if code != 1 || !strings.Contains(stderr, c.want) || strings.Contains(stdout, `"status":"ok"`) {
				t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
			}
		})
	}
}

// The questions of examples/client-node/model.mjs have the answers that enumeration has: its own tests.
func TestNodeQuestions(t *testing.T) {
	t.Parallel()
	p := nodeClient(t)
	cmd := exec.Command(p.argv[0], "--test", nodeDir+"/model.test.mjs")
	cmd.Env = append(os.Environ(), "BTN_NATS="+serve(t, pipeline.Stages()...).url)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The digest that examples/client-node computes is the one that pkg/wire computes, for every kind
// of request.
func TestNodeDigest(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs node: not with -short")
	}
	p := nodeClient(t)
	script := `import { digest, fromBytes } from './wire.mjs'
		for (const hex of process.argv.slice(1)) console.log(digest(fromBytes('model', Buffer.from(hex, 'hex'))))`
	args, want := []string{"--input-type=module", "-e", script}, []string{}
	for i, m := range digestSamples(t) {
		data, err := wire.Encode(&m)
		if err != nil {
			t.Fatalf("sample %d: %v", i, err)
		}
		digest, err := m.Digest()
		if err != nil {
			t.Fatal(err)
		}
		args, want = append(args, fmt.Sprintf("%x", data)), append(want, digest)
	}
	cmd := exec.Command(p.argv[0], args...)
	cmd.Dir = nodeDir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := strings.Fields(string(out))
	if len(got) != len(want) {
		t.Fatalf("%d digests of %d requests:\n%s", len(got), len(want), out)
	}
	seen := map[string]bool{}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("sample %d: digest %s, want %s (a new field or default belongs into "+
				"examples/client-node/wire.mjs too)",
				i, got[i], want[i])
		}
		seen[want[i]] = true
	}
	if len(seen) != len(want) {
		t.Error("two samples have one digest")
	}
}
