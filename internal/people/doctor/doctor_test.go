package doctor

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/nats-io/nats.go/jetstream"
)

// redis answers INFO with a text, or fails.
type redis struct {
	text string
	err  error
}

func (r redis) Do(context.Context, ...any) (any, error) { return r.text, r.err }

// TestVersions: each version of a server has its finding.
func TestVersions(t *testing.T) {
	for said, want := range map[string]string{
		"2.11.4": Bad, "2.14.2": Bad, "2.14.3": Warning, "2.14.5": Warning, "2.14.6": Good, "2.15.2": Good, "3.0.0-beta": Good, "devel": Unknown,
	} {
		if f := Version(said); f.Level != want || want != Good && want != Unknown && f.Do == "" {
			t.Errorf("%s: %+v, want %s", said, f, want)
		}
	}
}

// TestSynced: the monitoring port says how long acknowledged jobs may be lost.
func TestSynced(t *testing.T) {
	for body, want := range map[string]string{
		`{"config":{"sync_interval":120000000000}}`: Warning, `{"config":{"sync_always":true}}`: Good, `no`: Unknown,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(body)) }))
		f := checkSync(t.Context(), s.URL)
		s.Close()
		if f.Level != want || want == Warning && !strings.Contains(f.Says, "2m0s") {
			t.Errorf("%s: %+v, want %s", body, f, want)
		}
	}
	if f := checkSync(t.Context(), ""); f.Level != Unknown || f.Do == "" {
		t.Errorf("no port: %+v", f)
	}
}

// deployed starts a stack whose streams are set up, and connects to it.
func deployed(t *testing.T, o embedded.Options) (*embedded.Stack, *bus.Bus) {
	t.Helper()
	s, err := embedded.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	nc, err := s.Connect("doctor")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.New(nc, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

// TestExamine: a stack whose streams are set up is good once workers are there; a missing stream is found.
func TestExamine(t *testing.T) {
	s, b := deployed(t, embedded.Options{NoRedis: true})
	level := func(part string) string {
		worst := Good
		for _, f := range Examine(t.Context(), Deployment{Bus: b}) {
			if f.Part == part && f.Level != Good {
				worst = f.Level
			}
		}
		return worst
	}
	if got := level("workers"); got != Bad {
		t.Errorf("no workers: %s", got)
	}
	if got := level(bus.StreamModel); got != Warning { // it is in memory
		t.Errorf("models in memory: %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, pipeline.Config{}) }()
	for level("workers") != Good {
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := b.Conn.JS.DeleteStream(t.Context(), bus.StreamTask); err != nil {
		t.Fatal(err)
	}
	if got := level(bus.StreamTask); got != Bad {
		t.Errorf("a stream is missing: %s", got)
	}
}

// late are workers that ask for lane 7 only after so many looks.
type late struct{ looks *int }

func (l late) CheckLane(_ context.Context, lane int) (bool, error) {
	if lane == 7 && *l.looks > 0 {
		*l.looks--
		return true, bus.ErrNoWorkers
	}
	return false, nil
}

// TestLateWorkers: a lane that nobody asks for is found at the third look, in virtual time.
func TestLateWorkers(t *testing.T) {
	for looks, want := range map[int]string{0: Good, 2: Good, 3: Bad} {
		synctest.Test(t, func(t *testing.T) {
			if f := checkLanes(t.Context(), late{&looks}); f.Level != want {
				t.Errorf("after %d looks: %+v, want %s", looks, f, want)
			}
		})
	}
}

// TestStream: room, leaders and replicas of one stream.
func TestStream(t *testing.T) {
	info := &jetstream.StreamInfo{
		Config: jetstream.StreamConfig{MaxBytes: 1000, Replicas: 1, Storage: jetstream.FileStorage}, State: jetstream.StreamState{Bytes: 800},
		Cluster: &jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{{Name: "two", Offline: true}, {Name: "three", Current: true}}},
	}
	var says []string
	for _, f := range checkStream(bus.StreamModel, info, true) {
		says = append(says, f.Level+" "+f.Says)
	}
	want := "bad 80 % of its room is taken: jobs are refused|warning 1 replica(s): it stands still while its server is away|" +
		"bad it has no leader: nothing is stored|warning server two is away or behind by 0"
	if got := strings.Join(says, "|"); got != want {
		t.Errorf("%s", got)
	}
}

// TestRemembered: each policy of Redis has its finding.
func TestRemembered(t *testing.T) {
	for text, want := range map[string]string{
		"maxmemory:0\r\nmaxmemory_policy:noeviction\r\n": Warning, "maxmemory:100\r\nmaxmemory_policy:noeviction\r\n": Warning,
		"maxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n": Good, "": Unknown,
	} {
		if f := checkRedis(t.Context(), redis{text: text}); len(f) != 1 || f[0].Level != want {
			t.Errorf("%q: %+v, want %s", text, f, want)
		}
	}
	if f := checkRedis(t.Context(), redis{err: context.DeadlineExceeded}); f[0].Level != Warning {
		t.Errorf("%+v", f)
	}
}
