package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// site is a nats-server on which everybody has the permissions of their part.
type site struct {
	t      *testing.T
	dir    string
	server *testserver.NATSServer
}

// newSite starts one with the accounts of btn keys, edited.
func newSite(t *testing.T, edit func(accounts string) string) *site {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	s := &site{t: t, dir: t.TempDir()}
	if _, err := access.WriteKeys(s.dir, "", []string{"acme"}, access.Limits{}); err != nil {
		t.Fatal(err)
	}
	s.rewrite(edit)
	base, err := os.ReadFile("../../../deploy/nats-server.conf")
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(s.dir, "server.conf")
	if err := os.WriteFile(conf, fmt.Appendf(base, "\ninclude %s\n", access.ConfigFile), 0o600); err != nil {
		t.Fatal(err)
	}
	s.server = testserver.NATS(t, testserver.NATSOptions{Config: conf, StoreDir: s.dir})
	return s
}

// rewrite edits the accounts.
func (s *site) rewrite(edit func(string) string) {
	s.t.Helper()
	path := filepath.Join(s.dir, access.ConfigFile)
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(edit(string(text))), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func unchanged(accounts string) string { return accounts }

// operator connects as the operator.
func (s *site) operator() *nats.Conn {
	s.t.Helper()
	pair, err := nats.NkeyOptionFromSeed(filepath.Join(s.dir, access.Operator+".nk"))
	if err != nil {
		s.t.Fatal(err)
	}
	nc, err := nats.Connect(s.server.URL, pair, nats.CustomInboxPrefix(access.InboxPrefix(access.Operator)))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(nc.Close)
	return nc
}

// setUp makes the streams.
func (s *site) setUp() {
	s.t.Helper()
	if err := streams.Setup(s.t.Context(), s.operator(), streams.Config{}); err != nil {
		s.t.Fatal(err)
	}
}

// settings is the file of settings of a user, with changes.
func (s *site) settings(user string, changes map[string]string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, user+".json"))
	if err != nil {
		s.t.Fatal(err)
	}
	values := map[string]string{}
	if err := json.Unmarshal(text, &values); err != nil {
		s.t.Fatal(err)
	}
	for k, v := range changes {
		values[k] = v
	}
	text, err = json.Marshal(values)
	if err != nil {
		s.t.Fatal(err)
	}
	path := filepath.Join(s.t.TempDir(), "settings.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// journal is the log of a worker.
type journal struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.out.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.out.String()
}

// process is a worker that runs in a goroutine.
type process struct {
	t    *testing.T
	log  *journal
	stop context.CancelFunc
	code chan int
}

// start starts a worker of a stage with a file of settings.
func (s *site) start(stage, settings string, args ...string) *process {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	s.t.Cleanup(stop)
	p := &process{t: s.t, log: &journal{}, stop: stop, code: make(chan int, 1)}
	args = append([]string{"--nats", s.server.URL, "--redis", "off", "--config", settings, "--http", "127.0.0.1:0"}, args...)
	go func() { p.code <- run(ctx, stage, "it works.", args, io.Discard, p.log) }()
	return p
}

// until waits for a condition.
func (p *process) until(what string, holds func() bool) {
	p.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("not in time: %s\n%s", what, p.log)
		}
	}
}

// ended waits for the end, and returns the exit code.
func (p *process) ended() int {
	p.t.Helper()
	select {
	case code := <-p.code:
		return code
	case <-time.After(2 * time.Minute):
		p.t.Fatalf("it does not end:\n%s", p.log)
	}
	return 0
}

var served = regexp.MustCompile(`url=(http://\S+)`)

// ready asks /readyz.
func (p *process) ready() (status int, body string) {
	p.t.Helper()
	p.until("it serves its health", func() bool { return served.MatchString(p.log.String()) })
	response, err := http.Get(served.FindStringSubmatch(p.log.String())[1] + "/readyz")
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

// A worker with the user of another stage ends, and says which subject its user may not use.
func TestWorkerOfAnotherUserEnds(t *testing.T) {
	s := newSite(t, unchanged)
	s.setUp()
	for stage, wants := range map[string]struct{ user, verb, subject string }{
		query.StageContract:  {query.StageLearn, "publish on", "CONSUMER.MSG.NEXT." + bus.StreamTask},
		query.StageReparam:   {query.StageContract, "", ""},
		query.StageAggregate: {query.StageLearn, "publish on", "CONSUMER.MSG.NEXT."},
	} {
		seed := map[string]string{"answers-seed": filepath.Join(s.dir, access.AnswersSeed)}
		p := s.start(stage, s.settings(wants.user, seed))
		if code := p.ended(); code != config.ExitInfrastructure {
			t.Errorf("%s as %s: exit code %d", stage, wants.user, code)
		}
		for _, part := range []string{"level=ERROR", "may not " + wants.verb, wants.subject, "permissions of " + stage} {
			if !strings.Contains(p.log.String(), part) {
				t.Errorf("%s as %s does not say %q:\n%s", stage, wants.user, part, p.log)
			}
		}
	}
}

// A worker with the user of a tenant, who sees no streams, ends, and says whose permissions it needs.
func TestWorkerOfATenantEnds(t *testing.T) {
	s := newSite(t, unchanged)
	s.setUp()
	for _, stage := range []string{query.StageReparam, query.StageLearn, query.StageContract, query.StageAggregate} {
		p := s.start(stage, s.settings("tenants/acme", map[string]string{
			"message-keys": filepath.Join(s.dir, access.MessageKeys), "answers-seed": filepath.Join(s.dir, access.AnswersSeed),
		}))
		if code := p.ended(); code != config.ExitInfrastructure {
			t.Errorf("%s: exit code %d", stage, code)
		}
		for _, part := range []string{"level=ERROR", "user (nkey U", "permissions of " + stage, "btn keys"} {
			if !strings.Contains(p.log.String(), part) {
				t.Errorf("%s does not say %q:\n%s", stage, part, p.log)
			}
		}
	}
}

// A consumer that is gone is the operator's to make: the worker does not try to make those of other stages, asks for the right to make its
// own once, is not ready, says once what to do, and goes on when that is done.
func TestWorkerWithoutItsConsumerWaits(t *testing.T) {
	s := newSite(t, unchanged)
	s.setUp()
	operator, err := jetstream.New(s.operator())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ stream, consumer string }{
		{bus.StreamNetwork, bus.ConsumerNetwork + "-3"}, {bus.StreamDeadline, streams.Deadlines.Name},
	} {
		if err := operator.DeleteConsumer(t.Context(), c.stream, c.consumer); err != nil {
			t.Fatal(err)
		}
	}
	p := s.start(query.StageLearn, s.settings(query.StageLearn, nil))
	p.until("it is not ready", func() bool {
		status, body := p.ready()
		return status == http.StatusServiceUnavailable && strings.Contains(body, "run `btn setup` as the operator")
	})
	p.until("it says so", func() bool { return strings.Contains(p.log.String(), "run `btn setup` as the operator") })
	s.setUp()
	p.until("it runs", func() bool { return strings.Contains(p.log.String(), "msg=running") })
	p.until("it is ready", func() bool { status, _ := p.ready(); return status == http.StatusOK })
	p.stop()
	if code := p.ended(); code != config.ExitOK {
		t.Errorf("exit code %d:\n%s", code, p.log)
	}
	if n := strings.Count(p.log.String(), "Permissions Violation"); n != 1 || strings.Contains(p.log.String(), "CREATE."+bus.StreamDeadline) {
		t.Errorf("%d refusals, want one, of a consumer of its own:\n%s", n, p.log)
	}
}

// Streams that are missing are said once in an error, with what to do.
func TestWorkerWithoutStreamsSaysOnceWhatToDo(t *testing.T) {
	s := newSite(t, unchanged)
	p := s.start(query.StageLearn, s.settings(query.StageLearn, nil))
	p.until("it says what is missing", func() bool { return strings.Contains(p.log.String(), "cannot start yet") })
	p.stop()
	p.ended()
	for line := range strings.Lines(p.log.String()) {
		if strings.Contains(line, "cannot start yet") && strings.Count(line, "btn setup") != 1 {
			t.Error(line)
		}
	}
}

// Replies come to a user's own subjects: a worker that may not hear them ends.
func TestWorkerThatHearsNoRepliesEnds(t *testing.T) {
	s := newSite(t, unchanged)
	s.setUp()
	p := s.start(query.StageContract, s.settings(query.StageContract, map[string]string{"nats-inbox": "_INBOX_elsewhere"}))
	if code := p.ended(); code != config.ExitInfrastructure {
		t.Errorf("exit code %d", code)
	}
	if want := "may not subscribe to _INBOX_elsewhere."; !strings.Contains(p.log.String(), want) {
		t.Errorf("it does not say %q:\n%s", want, p.log)
	}
}

// Without a right that only some messages need a worker works on, is not ready, and says so once.
func TestWorkerWithoutARightIsNotReady(t *testing.T) {
	s := newSite(t, func(accounts string) string {
		return strings.ReplaceAll(accounts, `"`+wire.Prefix+`here"`, `"`+wire.Prefix+`elsewhere"`)
	})
	s.setUp()
	p := s.start(query.StageLearn, s.settings(query.StageLearn, nil))
	p.until("it is not ready", func() bool {
		status, body := p.ready()
		return status == http.StatusServiceUnavailable && strings.Contains(body, "may not publish on "+wire.Prefix+"here")
	})
	p.stop()
	if code := p.ended(); code != config.ExitOK {
		t.Errorf("exit code %d:\n%s", code, p.log)
	}
	if n := strings.Count(p.log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings, want one:\n%s", n, p.log)
	}
}

// A worker whose key signs no other worker's messages is not ready, and one with the right key is.
func TestWorkerWithAnotherKeyIsNotReady(t *testing.T) {
	s := newSite(t, unchanged)
	s.setUp()
	other := t.TempDir()
	if _, err := access.WriteKeys(other, "", nil, access.Limits{}); err != nil {
		t.Fatal(err)
	}
	reparam := s.start(query.StageReparam, s.settings(query.StageReparam, nil))
	learn := s.start(query.StageLearn, s.settings(query.StageLearn,
		map[string]string{"message-keys": filepath.Join(other, access.MessageKeys)}))
	c, err := client.New(s.operator(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if _, err := c.Submit(t.Context(), wire.Request{
			Job: fmt.Sprint("job-", i), Text: "MARKOV\n1\n2\n1\n1 0\n2\n1 3\n", Queries: []query.Query{{}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	learn.until("it is not ready", func() bool {
		status, body := learn.ready()
		return status == http.StatusServiceUnavailable && strings.Contains(body, "--message-keys")
	})
	learn.stop()
	learn.ended()
	right := s.start(query.StageLearn, s.settings(query.StageLearn, nil))
	right.until("it is ready", func() bool { status, _ := right.ready(); return status == http.StatusOK })
	reparam.stop()
	reparam.ended()
}

// Wrong credentials end a worker, and streams that nobody has made leave it waiting, not ready.
func TestWorkerWithoutCredentialsOrStreams(t *testing.T) {
	s := newSite(t, unchanged)
	other := t.TempDir()
	if _, err := access.WriteKeys(other, "", nil, access.Limits{}); err != nil {
		t.Fatal(err)
	}
	unknown := map[string]string{"nats-nkey": filepath.Join(other, query.StageContract+".nk")}
	p := s.start(query.StageContract, s.settings(query.StageContract, unknown))
	if code := p.ended(); code != config.ExitInfrastructure || !strings.Contains(p.log.String(), "Authorization Violation") {
		t.Errorf("unknown to the server: exit code %d\n%s", code, p.log)
	}
	waiting := s.start(query.StageContract, s.settings(query.StageContract, nil))
	waiting.until("it says what is missing", func() bool {
		status, body := waiting.ready()
		return status == http.StatusServiceUnavailable && strings.Contains(body, "stream")
	})
	s.setUp()
	waiting.until("it is ready", func() bool { status, _ := waiting.ready(); return status == http.StatusOK })
}

// The first line of a worker's log names its user and server; a stop that somebody asked for is no reason for a warning.
func TestLogOfAWorker(t *testing.T) {
	s := newSite(t, unchanged)
	s.setUp()
	for lanes, args := range map[string][]string{"all": nil, "[1 5]": {"--lanes", "1,5"}} {
		p := s.start(query.StageContract, s.settings(query.StageContract, nil), args...)
		p.until("it runs", func() bool { return strings.Contains(p.log.String(), "msg=running") })
		p.stop()
		if code := p.ended(); code != config.ExitOK {
			t.Errorf("exit code %d", code)
		}
		first, _, _ := strings.Cut(p.log.String(), "\n")
		for _, part := range []string{"server=" + s.server.URL, "user=", "version=", "lanes=", lanes} {
			if !strings.Contains(first, part) {
				t.Errorf("the first line has no %q: %s", part, first)
			}
		}
		if strings.Contains(p.log.String(), "level=WARN") {
			t.Errorf("a clean stop has warnings:\n%s", p.log)
		}
		if strings.Contains(p.log.String(), "lanes=[]") {
			t.Errorf("the lanes:\n%s", p.log)
		}
	}
}
