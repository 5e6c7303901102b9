package backup

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// service is a real nats-server with streams, a connection to it, and a client.
type service struct {
	url    string
	bus    *bus.Bus
	client *client.Client
}

// start starts a nats-server as in deploy/ whose messages are small, so that payloads go elsewhere.
func start(t *testing.T) *service {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/nats-server.conf")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(config, bytes.Replace(text, []byte("8MB"), []byte("16KB"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	server := testserver.NATS(t, testserver.NATSOptions{Config: config})
	nc, _, err := bus.Connect(server.URL, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if err := pipeline.Setup(t.Context(), nc, pipeline.Streams{MaxBytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	b, err := bus.New(nc, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &service{server.URL, b, c}
}

// work runs the four stages; stop ends them and waits.
func (s *service) work(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 4)
	stages := []pipeline.Stage{pipeline.StageReparam, pipeline.StageLearn, pipeline.StageContract, pipeline.StageAggregate}
	for _, stage := range stages {
		go func() { done <- pipeline.Run(ctx, pipeline.Config{URL: s.url}, stage) }()
	}
	return func() {
		cancel()
		for range stages {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
}

// results returns the results of a job.
func (s *service) results(t *testing.T, job string) []query.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := s.client.Wait(ctx, job)
	if err != nil || a.Status != wire.StatusOK {
		t.Fatalf("job %s: %v %+v", job, err, a)
	}
	return a.Results
}

// The streams of one server are lost, and the jobs accepted there are answered by another, with the same
// numbers.
func TestWhatIsLostComesBack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts two real nats-servers")
	}
	ctx := t.Context()
	first := start(t)
	model := "MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 4\n"
	large := "MARKOV\n14\n" + strings.Repeat("2 ", 14) + "\n1\n14 0 1 2 3 4 5 6 7 8 9 10 11 12 13\n16384\n" + strings.Repeat("0.25 ", 16384)
	var digest string
	stop := first.work(t)
	for _, text := range []string{model, large} { // the second one is in pieces
		var err error
		if digest, err = first.client.PutModel(ctx, &wire.Graph{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := first.client.NameModel(ctx, "large", digest, "ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := first.bus.Models.Put(ctx, "bob", []byte("\xb3what bob registered")); err != nil {
		t.Fatal(err)
	}
	submit := func(s *service, r wire.Request) {
		t.Helper()
		if _, err := s.client.Submit(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	submit(first, wire.Request{Job: "done", Tenant: "ann", Text: model, Queries: []query.Query{{}}})
	want := map[string][]query.Result{"done": first.results(t, "done")}
	stop()
	open := []wire.Request{
		{Job: "open", Tenant: "ann", Text: model, DeadlineMS: 600_000, Queries: []query.Query{{}}},
		{Job: "named", Tenant: "bob", ModelDigest: digest, Queries: []query.Query{{}}},
		{Job: "bob.large", Tenant: "bob", Text: large, Queries: []query.Query{{Marginals: true}}},
	}
	for _, r := range open {
		submit(first, r)
	}
	var copied bytes.Buffer
	counts, err := Write(ctx, first.bus, &copied)
	if err != nil || !reflect.DeepEqual(counts, Counts{Registered: 3, Names: 1, Jobs: 3, Answers: 1}) {
		t.Fatalf("copied %+v, %v", counts, err)
	}
	stop = first.work(t)
	for _, r := range open {
		want[r.Job] = first.results(t, r.Job)
	}
	stop()

	second := start(t)
	if n, err := Read(ctx, second.bus, second.client, bytes.NewReader(copied.Bytes())); err != nil || !reflect.DeepEqual(n, counts) {
		t.Fatalf("stored %+v, %v", n, err)
	}
	registered, err := second.client.Registered(ctx)
	if err != nil || len(registered.Models) != 3 || len(registered.Versions) != 1 {
		t.Errorf("registered: %v %v", registered, err)
	}
	if own, err := second.bus.Models.Get(ctx, "bob", wire.Digest([]byte("\xb3what bob registered"))); err != nil || len(own) == 0 {
		t.Errorf("bob's: %v", err)
	}
	done := second.results(t, "done") // nobody is at work
	if !reflect.DeepEqual(done, want["done"]) {
		t.Errorf("the answer that was there: %+v, want %+v", done, want["done"])
	}
	stop = second.work(t)
	defer stop()
	for _, r := range open {
		if got := numbers(second.results(t, r.Job)); !reflect.DeepEqual(got, numbers(want[r.Job])) {
			t.Errorf("%s: %+v, want %+v", r.Job, got, numbers(want[r.Job]))
		}
	}

	// the same again changes nothing
	if n, err := Read(ctx, second.bus, second.client, bytes.NewReader(copied.Bytes())); err != nil || n.AlreadyThere != 8 {
		t.Errorf("stored again %+v, %v", n, err)
	}
	// a copy that was cut short, and one of something else
	for _, bad := range [][]byte{copied.Bytes()[:copied.Len()/2], []byte(strings.Repeat("x", 1024))} {
		if _, err := Read(ctx, second.bus, second.client, bytes.NewReader(bad)); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("a copy that is none: %v", err)
		}
	}
}

// TestCopiesThatWereCutOff are told from whole ones, also where the cut is between two entries.
func TestCopiesThatWereCutOff(t *testing.T) {
	for n, whole := range map[int]bool{0: false, 512: false, endBytes: true, 10 * endBytes: true} {
		_, err := Read(t.Context(), nil, nil, bytes.NewReader(make([]byte, n)))
		if whole != (err == nil) || !whole && fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// numbers are the parts of results that do not say how long it took.
func numbers(list []query.Result) (all []any) {
	for _, r := range list {
		all = append(all, *r.LogZ, r.Exact, r.Marginals)
	}
	return all
}
