package service_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/jobs/cached"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
	"github.com/basetensor/basetensor/pkg/wire"
)

// register stores a model and returns its digest.
func (r *rig) register(m *factorgraph.Model) string {
	r.t.Helper()
	g, err := wire.NewGraph(m)
	r.must(err)
	digest, err := r.client.PutModel(r.ctx, g)
	r.must(err)
	return digest
}

// byDigest is a request with its model named.
func byDigest(w wire.Request, digest string) wire.Request {
	w.Model, w.ModelDigest = nil, digest
	return w
}

// A job that names its model has the answer of a job that carries it, bit for bit, first and later,
// under any settings.
func TestModelByDigest(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{}, calm)
	r.run(calm, allStages()...)
	m := grid(t, 3, 3, 5)
	digest := r.register(m)
	if again := r.register(m); again != digest {
		t.Errorf("registered twice: %s and %s", digest, again)
	}
	for i, s := range []query.Settings{
		{}, {Cores: query.CoresAreVariables}, {Method: query.MethodSymmetryCP, Maps: query.MapBP},
	} {
		w, p := request(t, fmt.Sprintf("value-%d", i), m, s, observe(1, 0), observe())
		want, err := infer.Run(r.ctx, p)
		r.must(err)
		valued := r.submit(w)
		r.wait(w.Job)
		for k := range 3 {
			named := byDigest(w, digest)
			named.Job = fmt.Sprintf("digest-%d-%d", i, k)
			if named := r.submit(named); named == valued {
				t.Error("by value and by digest, a request has the same digest")
			}
			a := r.wait(named.Job)
			for q := range want {
				want[q].Job = named.Job
			}
			if got, want := plain(t, a.Results), plain(t, want); got != want {
				t.Errorf("%s: %v\ngot\n%s\nwant\n%s", named.Job, a.Error, got, want)
			}
		}
	}
	// One id is one request: by value and by digest are two.
	w, _ := request(t, "value-0", m, query.Settings{}, observe(1, 0), observe())
	if _, err := r.client.Submit(r.ctx, byDigest(w, digest)); !errors.Is(err, client.ErrJobTaken) {
		t.Errorf("the other form under the same id: %v", err)
	}
}

func TestUnknownDigest(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	r.run(calm, allStages()...)
	nobody := wire.Digest([]byte("nobody"))
	broken := wire.Digest([]byte("no graph"))
	mixed := wire.Digest([]byte("something else"))
	r.publish(message.GraphSubject("", broken), []byte("no graph"))
	r.publish(message.GraphSubject("", mixed), []byte("mixed up"))
	text, err := r.client.PutModel(r.ctx, &wire.Graph{Text: "MARKOV\n1\n2\n1\n1 0\n"})
	r.must(err)
	for digest, says := range map[string]string{
		nobody: "no model is registered under the digest " + nobody,
		broken: "registered model " + broken + ": graph: ",
		mixed:  "stored bytes are not those of their digest",
		text:   "registered model " + text,
	} {
		job := "job-" + digest[:8]
		r.submit(wire.Request{Job: job, ModelDigest: digest, Queries: []query.Query{{}}})
		a := r.wait(job)
		if a.Status != wire.StatusError || a.Error.Code != fault.BadInput ||
			!strings.Contains(a.Error.Message, says) {
			t.Errorf("%s: %+v, want %q", a.Status, a.Error, says)
		}
	}
	// The missing model may come: a failure is not remembered.
	g := &wire.Graph{Text: coinText}
	_, digest, err := wire.EncodeGraph(g)
	r.must(err)
	r.submit(wire.Request{Job: "early", ModelDigest: digest, Queries: []query.Query{{}}})
	if a := r.wait("early"); a.Status != wire.StatusError {
		t.Errorf("%+v", a)
	}
	_, err = r.client.PutModel(r.ctx, g)
	r.must(err)
	r.submit(
		wire.Request{
			Job:         "late",
			ModelDigest: digest,
			Queries:     []query.Query{{Evid: "1 0 1"}, {Evid: "1 7 1"}},
		},
	)
	if a := r.wait("late"); a.Status != wire.StatusError ||
		!strings.Contains(a.Error.Message, "query 1") {
		t.Errorf("evidence out of range: %+v", a)
	}
	r.submit(
		wire.Request{Job: "right", ModelDigest: digest, Queries: []query.Query{{Evid: "1 0 1"}}},
	)
	if a := r.wait("right"); a.Status != wire.StatusOK || !near(*a.Results[0].LogZ, -1.3862943611) {
		t.Errorf("%+v", a)
	}
}

// coinText is a coin that shows 1 a quarter of the time.
const coinText = "MARKOV\n1\n2\n1\n1 0\n2\n0.75 0.25\n"

func near(x, want float64) bool { return x-want < 1e-9 && want-x < 1e-9 }

// A known model is not built again: jobs are answered after it was removed, by this worker and,
// through Redis, by another. A network that is gone is built again, from the model.
func TestKnownModelIsNotBuiltAgain(t *testing.T) {
	t.Parallel()
	r, remembering := newRig(t, embedded.Options{NoRedis: true}, calm), remembering(t)
	stop, _ := r.run(remembering, allStages()...)
	digest, err := r.client.PutModel(r.ctx, &wire.Graph{Text: coinText})
	r.must(err)
	ask := func(job, status string) {
		t.Helper()
		r.submit(
			wire.Request{
				Job:         job,
				ModelDigest: digest,
				Queries:     []query.Query{{}, {Evid: "1 0 0"}},
			},
		)
		if a := r.wait(job); a.Status != status {
			t.Errorf("%s: %s %v", job, a.Status, a.Error)
		}
	}
	ask("first", wire.StatusOK)
	store, err := cache.Open(remembering.Redis, cache.Options{Timeout: 5 * time.Second})
	r.must(err)
	defer store.Close()
	for i := 0; ; i++ { // Redis has a tenth of a second to take it, which a busy machine may miss
		if entries, err := store.Entries(r.ctx, "btn:v1:network:"); err == nil &&
			len(entries) == 1 {
			break
		}
		stop()
		stop, _ = r.run(remembering, allStages()...)
		ask(fmt.Sprintf("again-%d", i), wire.StatusOK)
	}
	r.must(r.client.RemoveModel(r.ctx, digest))
	ask("same-worker", wire.StatusOK)
	stop()
	stop, _ = r.run(remembering, allStages()...)
	for i := 0; ; i++ { // as long has it for an answer, and is left alone for a while when it missed that
		job := fmt.Sprintf("other-worker-%d", i)
		r.submit(wire.Request{Job: job, ModelDigest: digest, Queries: []query.Query{{}}})
		a := r.wait(job)
		if a.Status == wire.StatusOK {
			break
		}
		select {
		case <-r.ctx.Done():
			t.Fatalf("%v", a.Error)
		case <-time.After(50 * time.Millisecond):
		}
	}
	blobs, err := r.js.Stream(r.ctx, "BTN_BLOB")
	r.must(err)
	r.must(blobs.Purge(r.ctx))
	stop()
	stop, _ = r.run(remembering, allStages()...)
	ask("gone", wire.StatusError)
	_, err = r.client.PutModel(r.ctx, &wire.Graph{Text: coinText})
	r.must(err)
	ask("back", wire.StatusOK)
	r.must(blobs.Purge(r.ctx))
	time.Sleep(1100 * time.Millisecond) // this worker took the network for stored
	ask("built-again", wire.StatusOK)
	stop()
}

// An unreadable entry under a network's key, of another version or of nobody, is replaced.
func TestUnreadableNetworkEntry(t *testing.T) {
	t.Parallel()
	r, remembering := newRig(t, embedded.Options{NoRedis: true}, calm), remembering(t)
	digest := r.register(grid(t, 2, 2, 1))
	store, err := cache.Open(remembering.Redis, cache.Options{Timeout: 5 * time.Second})
	r.must(err)
	defer store.Close()
	garbage := []string{
		"",
		"x",
		strings.Repeat("z", 64),
		wire.Digest(nil) + "\x80",
		wire.Digest(nil) + "\x01\x00",
		wire.Digest(nil) + "\x02\x02",
		wire.Digest(nil) + "\x02\x02\x02",
	}
	for i, value := range garbage {
		stop, _ := r.run(remembering, allStages()...)
		job := fmt.Sprintf("job-%d", i)
		r.submit(
			wire.Request{
				Job:         job,
				ModelDigest: digest,
				Queries:     []query.Query{{}, {Evid: "1 3 0"}},
			},
		)
		if a := r.wait(job); a.Status != wire.StatusOK {
			t.Errorf("after %q: %v", garbage[max(i-1, 0)], a.Error)
		}
		stop()
		entries, err := store.Entries(r.ctx, "btn:v1:network:")
		r.must(err)
		for _, e := range entries {
			store.Put(r.ctx, e.Key, []byte(value))
			if _, err := cached.Describe(
				t.Context(), e.Key, []byte(value),
			); (err == nil) != (i == len(garbage)-1) {
				t.Errorf("%q: %v", value, err)
			}
		}
	}
}

// Models stay when everything is restarted, the server too.
func TestRegisteredModelSurvivesRestarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	digest := ""
	for round := range 3 {
		r := newRig(t, embedded.Options{Dir: dir, NoRedis: true}, calm)
		if round == 0 {
			digest = r.register(grid(t, 3, 3, 5))
		}
		for k := range 2 {
			stop, _ := r.run(calm, allStages()...)
			job := fmt.Sprintf("job-%d-%d", round, k)
			r.submit(wire.Request{Job: job, ModelDigest: digest, Queries: []query.Query{{}}})
			if a := r.wait(job); a.Status != wire.StatusOK {
				t.Errorf("%s: %v", job, a.Error)
			}
			stop()
		}
		r.must(r.stack.Close())
	}
}

// A model that differs in the last bit of one entry is another model, and never answered from the first one's cache.
func TestAnotherEntryIsAnotherModel(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{}, calm)
	r.run(calm, allStages()...)
	z := map[float64]bool{}
	for i, entry := range []string{"0.75", "0.7500000000000001"} {
		digest, err := r.client.PutModel(
			r.ctx, &wire.Graph{Text: strings.Replace(coinText, "0.75", entry, 1)},
		)
		r.must(err)
		job := fmt.Sprintf("job-%d", i)
		r.submit(
			wire.Request{Job: job, ModelDigest: digest, Queries: []query.Query{{Evid: "1 0 0"}}},
		)
		a := r.wait(job)
		if a.Status != wire.StatusOK || !near(*a.Results[0].LogZ, -0.2876820725) {
			t.Fatalf("%s: %+v", job, a)
		}
		z[*a.Results[0].LogZ] = true
	}
	if len(z) != 2 {
		t.Errorf("both have ln Z = %v", z)
	}
}

// The networks that caches name were made by this version of the code: where a model's network
// comes out otherwise, the version in their keys has to change with it.
func TestNetworksKeepTheirVersion(t *testing.T) {
	f, err := os.Open("../../../examples/asia.uai")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := uai.Read(f, uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	// no arithmetic: the same on every processor
	net, err := stage.Reparameterise(context.Background(), m, query.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := message.EncodeNetwork(net)
	if err != nil {
		t.Fatal(err)
	}
	const version, digest = "4", "c783ad0a5d448fe10bed6c57bbc95cec90678c9662d6fc13209d65229c43e993"
	if got := wire.Digest(b); got != digest || cached.NetworkVersion != version {
		t.Errorf(
			"the network of asia.uai is %s under version %s: a new one needs a new networkVersion, and both belong here",
			got, cached.NetworkVersion,
		)
	}
}
