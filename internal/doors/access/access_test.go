package access_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/jobs/service"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

const coin = "MARKOV\n1\n2\n1\n1 0\n2\n1 3\n"

// guarded is a nats-server that knows the users of a folder.
type guarded struct {
	t      *testing.T
	dir    string
	server *testserver.NATSServer
	tenant string // one of the tenants; "": there is none
}

func guard(t *testing.T, tenants ...string) *guarded {
	t.Helper()
	return guardWith(t, access.Limits{}, "", tenants...)
}

// guardWith is guard with limits of tenants and more lines of the server's configuration.
func guardWith(t *testing.T, limits access.Limits, more string, tenants ...string) *guarded {
	t.Helper()
	dir := t.TempDir()
	if _, err := access.WriteKeys(dir, "", tenants, limits); err != nil {
		t.Fatal(err)
	}
	base, err := os.ReadFile("../../../deploy/nats-server.conf")
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "guarded.conf") // is copied beside the accounts, with the store's folder
	if err := os.WriteFile(conf, fmt.Appendf(base, "\ninclude %s\n%s\n", access.ConfigFile, more), 0o644); err != nil {
		t.Fatal(err)
	}
	g := &guarded{t: t, dir: dir, server: testserver.NATS(t, testserver.NATSOptions{Config: conf, StoreDir: dir})}
	if len(tenants) > 0 {
		g.tenant = tenants[0]
	}
	nc, _ := g.connect(access.Operator)
	if err := streams.Setup(t.Context(), nc, streams.Config{}); err != nil {
		t.Fatal(err)
	}
	return g
}

// refusals are the errors that a server sent to a connection.
type refusals struct {
	mu  sync.Mutex
	all []string
}

func (r *refusals) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

// settings returns the settings that WriteKeys made for a user.
func (g *guarded) settings(user string) (s access.Settings) {
	g.t.Helper()
	path := filepath.Join(g.dir, user+".json")
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join(g.dir, "tenants", user+".json")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		g.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		g.t.Fatal(err)
	}
	return s
}

// connect connects as a user, with its settings.
func (g *guarded) connect(user string) (*nats.Conn, *refusals) {
	g.t.Helper()
	s := g.settings(user)
	options, err := connect.NATS{NKey: s.NKey, Inbox: s.Inbox}.Options()
	if err != nil {
		g.t.Fatal(err)
	}
	r := &refusals{}
	options = append(options, nats.MaxReconnects(-1), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, err.Error())
	}))
	nc, err := nats.Connect(g.server.URL, options...)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(nc.Close)
	return nc, r
}

// connectAs is connect without the refusals.
func (g *guarded) connectAs(user string) *nats.Conn {
	g.t.Helper()
	nc, _ := g.connect(user)
	return nc
}

// trust gives a stage all keys of the folder. Only the aggregator reads the seed of answers.
func (g *guarded) trust(c *service.Config) {
	c.MessageKeys = filepath.Join(g.dir, access.MessageKeys)
	c.AnswersKey = filepath.Join(g.dir, access.AnswersKey)
	c.AnswersSeed = filepath.Join(g.dir, access.AnswersSeed)
}

// run starts workers, all four unless stages are named, each as the user of its stage, with its keys. stop ends them.
func (g *guarded) run(settings workers.Settings, stages ...string) (stop func()) {
	g.t.Helper()
	if len(stages) == 0 {
		stages = stage.Names()
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	stop = func() { cancel(); all.Wait() }
	defer g.t.Cleanup(stop) // before the connections are closed
	for _, stage := range stages {
		nc, refused := g.connect(stage)
		c := service.Config{NC: nc, Settings: settings}
		g.trust(&c)
		all.Go(func() {
			if err := service.Run(ctx, c, stage); err != nil {
				g.t.Errorf("%s: %v", stage, err)
			}
			for _, r := range refused.take() {
				g.t.Errorf("%s was refused something that it needs: %s", stage, r)
			}
		})
	}
	if g.tenant != "" && slices.Contains(stages, query.StageReparam) { // it stores for tenants: wait until it does
		nc, _ := g.connect(g.tenant)
		for {
			_, err := nc.Request(message.GraphSubject(g.tenant, "x"), nil, time.Minute)
			if err == nil {
				break
			}
			if !errors.Is(err, nats.ErrNoResponders) {
				g.t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return stop
}

const (
	stages     = "reparam-worker learn-worker contract-worker aggregator"
	everybody  = "operator " + stages + " client acme globex"
	laneOfAcme = 2
)

// publishes maps each publication to its permitted users; everybody else tries and is refused. Jobs
// are open, or acme's. With a * behind the user it goes to reparam-worker, which checks and stores it.
var publishes = map[string]string{
	"btn.v1.model.3.job":               "operator reparam-worker aggregator client*",
	"btn.v1.model.2.acme.job":          "operator reparam-worker aggregator acme*",
	"btn.v1.model.3.acme.job":          "operator reparam-worker aggregator", // not acme's lane
	"btn.v1.network.3.job":             "operator reparam-worker",
	"btn.v1.network.2.acme.job":        "operator reparam-worker",
	"btn.v1.task.3.job.1.0":            "operator learn-worker",
	"btn.v1.task.2.acme.job.1.0":       "operator learn-worker",
	"btn.v1.partial.3.job.1.0":         "operator contract-worker aggregator",
	"btn.v1.partial.2.acme.job.1.0":    "operator contract-worker aggregator",
	"btn.v1.answer.job":                "operator aggregator",
	"btn.v1.answer.acme.job":           "operator aggregator",
	"btn.v1.done.job":                  "operator",
	"btn.v1.done.acme.job":             "operator",
	"btn.v1.progress.job":              "operator " + stages,
	"btn.v1.here":                      "operator " + stages,
	"btn.v1.progress.acme.job":         "operator " + stages,
	"btn.v1.cancel.job":                "operator reparam-worker client*",
	"btn.v1.cancel.acme.job":           "operator reparam-worker acme*",
	"btn.v1.timer.3.job":               "operator reparam-worker client*",
	"btn.v1.timer.2.acme.job":          "operator reparam-worker",
	"btn.v1.deadline.3.job":            "operator",
	"btn.v1.deadline.2.acme.job":       "operator",
	"btn.v1.redrive.2.acme.job":        "operator " + stages,
	"btn.v1.end.2.acme.job":            "operator " + stages,
	"btn.v1.dlq.aggregator.job":        "operator aggregator",
	"btn.v1.dlq.learn-worker.acme.job": "operator learn-worker",
	"btn.v1.blob._.D":                  "operator client* " + stages,
	"btn.v1.blob.acme.D":               "operator acme* " + stages,
	"btn.v1.graph._.D":                 "operator reparam-worker client*",
	"btn.v1.graph.acme.D":              "operator reparam-worker acme*",
	"btn.v1.keep.2.graph.acme.D":       "operator", // the server maps acme's models here, from the name above
	"btn.v1.infer":                     "operator client",
	"btn.v1.infer.acme":                "operator acme",
	"btn.v1.room.2":                    "operator client acme",
	"btn.v1.serves":                    "operator contract-worker",
	"_INBOX_aggregator.x":              "operator",

	"$JS.API.STREAM.CREATE.NONE":                            "operator",
	"$JS.API.STREAM.UPDATE.NONE":                            "operator",
	"$JS.API.STREAM.DELETE.NONE":                            "operator",
	"$JS.API.CONSUMER.CREATE.BTN_ANSWER.x":                  "operator",
	"$JS.API.CONSUMER.DELETE.BTN_TASK.none":                 "operator",
	"$JS.API.STREAM.INFO.BTN_MODEL":                         "operator client " + stages,
	"$JS.API.CONSUMER.INFO.BTN_TASK.contract-0":             "operator client " + stages,
	"$JS.API.STREAM.PURGE.BTN_GRAPH":                        "operator",
	"$JS.API.STREAM.PURGE.BTN_ANSWER":                       "operator aggregator",
	"$JS.API.STREAM.MSG.DELETE.BTN_ANSWER":                  "operator aggregator",
	"$JS.API.STREAM.MSG.DELETE.BTN_TASK":                    "operator learn-worker aggregator",
	"$JS.API.STREAM.MSG.GET.BTN_ANSWER":                     "operator client " + stages,
	"$JS.API.CONSUMER.MSG.NEXT.BTN_MODEL.reparam-9":         "operator reparam-worker",
	"$JS.API.CONSUMER.MSG.NEXT.BTN_MODEL.sweep":             "operator aggregator",
	"$JS.API.CONSUMER.MSG.NEXT.BTN_TASK.contract":           "operator contract-worker",
	"$JS.ACK.BTN_TASK.contract-9.1.1.1.1.0":                 "operator contract-worker",
	"$JS.ACK.BTN_PARTIAL.aggregate-9.1.1.1.1.0":             "operator aggregator",
	"$JS.API.DIRECT.GET.BTN_ANSWER.btn.v1.answer.acme.job":  "operator client acme " + stages,
	"$JS.API.DIRECT.GET.BTN_MODEL.btn.v1.model.2.acme.job":  "operator client acme " + stages,
	"$JS.API.DIRECT.GET.BTN_ANSWER.btn.v1.answer.job":       "operator client " + stages,
	"$JS.API.DIRECT.GET.BTN_ANSWER":                         "operator client " + stages,
	"$JS.API.DIRECT.GET.BTN_GRAPH.btn.v1.graph._.D":         "operator client acme globex " + stages,
	"$JS.API.DIRECT.GET.BTN_GRAPH.btn.v1.graph.acme.D":      "operator client acme " + stages,
	"$JS.API.DIRECT.GET.BTN_BLOB.btn.v1.blob.acme.D":        "operator client acme " + stages,
	"$JS.API.DIRECT.GET.BTN_BLOB.btn.v1.blob._.D":           "operator client " + stages,
	"$JS.API.DIRECT.GET.BTN_CONTROL.btn.v1.cancel.acme.job": "operator client acme " + stages,
}

// hears maps each message to its permitted subscribers.
var hears = map[string]string{
	"btn.v1.done.job":               "operator reparam-worker client",
	"btn.v1.done.acme.job":          "operator reparam-worker acme",
	"btn.v1.progress.job":           "operator", // of stages: TestWhoHearsStages
	"btn.v1.progress.acme.job":      "operator",
	"btn.v1.here":                   "operator",
	"btn.v1.answer.acme.job":        "operator",
	"btn.v1.serves":                 "operator", // others hear it from the account of contract-workers
	"btn.v1.model.2.acme.job":       "operator",
	"btn.v1.network.2.acme.job":     "operator",
	"btn.v1.task.2.acme.j.1.0":      "operator",
	"btn.v1.partial.2.acme.j.1.0":   "operator",
	"btn.v1.cancel.acme.job":        "operator",
	"btn.v1.blob.acme.D":            "operator",
	"btn.v1.keep.2.blob.acme.D":     "operator reparam-worker",
	"btn.v1.infer.acme":             "operator reparam-worker",
	"_INBOX_aggregator.x":           "operator", // a reply comes only to a request
	"_INBOX_client.x":               "operator",
	"$JS.API.STREAM.INFO.BTN_MODEL": "operator",
}

// Every user tries everything: requests that its part needs reach the account of the streams, nothing
// else does.
func TestWhoMayPublish(t *testing.T) {
	t.Parallel()
	if wire.Lane("acme") != laneOfAcme || wire.Lane("globex") == laneOfAcme {
		t.Fatal("the lanes are others", wire.Lane("acme"), wire.Lane("globex"))
	}
	g := guard(t, "acme", "globex")
	watcher, _ := g.connect(access.Operator)
	seen, err := watcher.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	if err := watcher.Flush(); err != nil {
		t.Fatal(err)
	}

	cells := 0
	for _, user := range strings.Fields(everybody) {
		nc, refused := g.connect(user)
		for subject, allowed := range publishes {
			cells++
			token := user + " on " + subject
			if err := nc.PublishMsg(&nats.Msg{Subject: subject, Data: []byte(token)}); err != nil {
				t.Fatal(err)
			}
			want := ""
			switch may := strings.Fields(allowed); {
			case slices.Contains(may, user):
				want = subject
			case slices.Contains(may, user+"*"):
				owner := user
				if user == access.Client {
					owner = ""
				}
				want = message.KeepSubject(owner, subject)
			}
			if arrived := arrives(t, nc, watcher, seen, token); arrived != want {
				t.Errorf("%s publishes on %s: it arrives on %q, want %q %q", user, subject, arrived, want, refused.take())
			}
		}
	}
	t.Logf("%d cells", cells)
}

// arrives returns the subject on which the watcher has a message with a text, after everything that both connections sent was
// handled; "": none. Of several it is the first.
func arrives(t *testing.T, from, watcher *nats.Conn, seen *nats.Subscription, text string) (subject string) {
	t.Helper()
	if err := errors.Join(from.Flush(), watcher.Flush()); err != nil {
		t.Fatal(err)
	}
	for {
		n, _, err := seen.Pending()
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return subject
		}
		m, err := seen.NextMsg(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if string(m.Data) == text && subject == "" { // an answer is republished
			subject = m.Subject
		}
	}
}

// Every user listens everywhere, and hears the messages that its part needs and nothing else. A tenant may ask for anything, and
// hears of its own.
func TestWhoHears(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme", "globex")
	speaker, _ := g.connect(access.Operator)
	for _, user := range strings.Fields(everybody) {
		nc, _ := g.connect(user)
		all, err := nc.SubscribeSync(">")
		if err != nil {
			t.Fatal(err)
		}
		for subject, allowed := range hears {
			one, err := nc.SubscribeSync(subject)
			if err != nil {
				t.Fatal(err)
			}
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
			token := "to " + user + " on " + subject
			if err := speaker.Publish(subject, []byte(token)); err != nil {
				t.Fatal(err)
			}
			may := slices.Contains(strings.Fields(allowed), user)
			if heard := arrives(t, speaker, nc, one, token) != ""; heard != may {
				t.Errorf("%s hears %s: %v, want %v", user, subject, heard, may)
			}
			if arrives(t, speaker, nc, all, token) != "" && !may {
				t.Errorf("%s hears %s by listening to everything", user, subject)
			}
			one.Unsubscribe()
		}
	}
}

// Contract-workers announce themselves to each other and to learn-workers. The progress of a job comes from every stage, and reaches its
// owner and no other tenant.
func TestWhoHearsStages(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme", "globex")
	for _, c := range []struct{ speakers, subject, hearers string }{
		{"contract-worker", "btn.v1.serves", "contract-worker learn-worker operator"},
		{"reparam-worker learn-worker contract-worker aggregator", "btn.v1.progress.job", "operator client"},
		{"reparam-worker learn-worker contract-worker aggregator", "btn.v1.here", "operator client"},
		{"reparam-worker learn-worker contract-worker aggregator", "btn.v1.progress.acme.job", "operator acme"},
	} {
		for _, name := range strings.Fields(c.speakers) {
			speaker, _ := g.connect(name)
			for _, user := range strings.Fields("operator client acme globex contract-worker learn-worker") {
				nc, _ := g.connect(user)
				heard, err := nc.SubscribeSync(c.subject)
				must(t, err)
				must(t, nc.Flush())
				must(t, speaker.Publish(c.subject, []byte(user)))
				may := slices.Contains(strings.Fields(c.hearers), user) || user == name
				if hears := arrives(t, speaker, nc, heard, user) != ""; hears != may {
					t.Errorf("%s hears %s of %s: %v, want %v", user, c.subject, name, hears, may)
				}
			}
		}
	}
}

// A reply goes to the requester, even if a tenant names another subject for it: it cannot direct the server's messages to the subject of
// another.
func TestRepliesCannotBeAimed(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme", "globex")
	watcher, _ := g.connect(access.Operator)
	seen, err := watcher.SubscribeSync("btn.v1.answer.>")
	if err != nil {
		t.Fatal(err)
	}
	must(t, watcher.Flush())
	nc, _ := g.connect("globex")
	lane := wire.Lane("globex")
	for _, subject := range []string{
		wire.ModelSubject(lane, "globex.j"),
		"$JS.API.DIRECT.GET.BTN_MODEL." + wire.ModelSubject(lane, "globex.j"), message.InferSubject("globex"),
	} {
		must(t, nc.PublishMsg(&nats.Msg{Subject: subject, Reply: wire.AnswerSubject("acme.victim"), Data: []byte("x")}))
	}
	must(t, errors.Join(nc.Flush(), watcher.Flush()))
	if n, _, err := seen.Pending(); n != 0 || err != nil {
		t.Errorf("%d messages in place of an answer: %v", n, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
