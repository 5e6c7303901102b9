package access_test

// Holders of a user's key try every right that it has, with * and > as tokens of subjects, every form of a question to a stream, and
// every header that a server reads. Users, rights and streams are those of the code, so that new ones are tried too. BTN_NIGHTLY=1 tries
// more forms of each.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// everyForm reports whether all forms of an attack are tried.
var everyForm = os.Getenv("BTN_NIGHTLY") != ""

// attackedLane is the lane of the one worker of these tests: it has no messages.
const attackedLane = 5

const (
	secret = "a secret of globex"
	public = "a model for everybody"
)

// filled returns a subject of a filter: globex is a tenant, victim a job, a digest or a name.
func filled(filter string) string {
	tokens := strings.Split(filter, ".")
	last := true
	for i := len(tokens) - 1; i >= 0; i-- {
		switch {
		case tokens[i] != "*" && tokens[i] != ">":
		case last:
			tokens[i], last = "victim", false
		default:
			tokens[i] = "globex"
		}
	}
	return strings.Join(tokens, ".")
}

// victims stores a message of others on a subject of every filter of every stream, and returns their sequences by stream and subject.
func (g *guarded) victims(js jetstream.JetStream) map[string]map[string]uint64 {
	g.t.Helper()
	ctx := patience(g.t)
	all := map[string]map[string]uint64{}
	list := js.ListStreams(ctx)
	for info := range list.Info() {
		if c := info.Config; c.AllowRollup && !c.AllowMsgSchedules { // these need them
			g.t.Errorf("%s lets a message replace all others of the stream", c.Name)
		}
		stored := map[string]uint64{}
		for _, filter := range info.Config.Subjects {
			if strings.Contains(filter, fmt.Sprintf(".%d.", attackedLane)) {
				continue
			}
			ack, err := js.Publish(ctx, filled(filter), []byte(secret))
			must(g.t, err)
			stored[filled(filter)] = ack.Sequence
		}
		all[info.Config.Name] = stored
	}
	must(g.t, list.Err())
	for _, name := range []string{"open", "victim"} {
		_, err := js.Publish(ctx, message.GraphSubject("", name), []byte(public))
		must(g.t, err)
	}
	// the newest message is the secret again: a wildcard would find it
	newest := message.GraphSubject("globex", "victim")
	ack, err := js.Publish(ctx, newest, []byte(secret))
	must(g.t, err)
	all[bus.StreamGraph][newest] = ack.Sequence
	return all
}

// whole reports an error for each message of others that is not stored any more as it was.
func (g *guarded) whole(js jetstream.JetStream, victims map[string]map[string]uint64) {
	g.t.Helper()
	ctx := patience(g.t)
	for name, stored := range victims {
		s, err := js.Stream(ctx, name)
		must(g.t, err)
		for subject, sequence := range stored {
			m, err := s.GetMsg(ctx, sequence)
			if err != nil || m.Subject != subject || string(m.Data) != secret {
				g.t.Errorf("%s of %s was removed or changed: %v", subject, name, err)
			}
		}
	}
}

// literals returns the subjects of a right, with each of some tokens for each wildcard.
func literals(right string) []string {
	tokens := []string{"*", ">", "victim", "3"} // also a lane
	if everyForm {
		tokens = append(tokens, "globex", "_", wire.Digest(nil))
	}
	all := []string{""}
	for _, part := range strings.Split(right, ".") {
		fill := []string{part}
		switch part {
		case "*":
			fill = tokens
		case ">":
			fill = append(slices.Clone(tokens), "btn.v1.graph.>", "btn.v1.>", "globex.victim")
		}
		var longer []string
		for _, start := range all {
			for _, f := range fill {
				longer = append(longer, strings.TrimPrefix(start+"."+f, "."))
			}
		}
		all = longer
	}
	return all
}

// questions are payloads of requests to streams, of all forms that nats-server 2.15.2 reads.
func questions() []string {
	all := []string{
		"", `{}`, `{"last_by_subj": ">"}`, `{"seq": 1, "next_by_subj": ">"}`, `{"multi_last": [">"]}`, `{"seq": 1, "batch": 9}`,
		`{"start_time": "2000-01-01T00:00:00Z"}`, `{"no_hdr": true}`, `{"LAST_BY_SUBJ": "btn.v1.graph.globex.victim"}`,
	}
	if everyForm {
		all = append(all, `{"seq": 1}`, `{"seq": 1, "batch": 9, "max_bytes": 1}`, `{"up_to_seq": 9, "multi_last": [">"]}`,
			`{"up_to_time": "2999-01-01T00:00:00Z", "multi_last": [">"], "batch": 9}`, `{"subjects_filter": ">"}`, `{"offset": 0}`,
			`{"batch": 9, "no_wait": true}`, `{"filter": ">"}`, `{"keep": 1}`)
	}
	return all
}

// apis are requests to JetStream; %s is a stream.
var apis = []string{
	"INFO", "STREAM.NAMES", "STREAM.LIST", "STREAM.INFO.%s", "STREAM.CREATE.%s", "STREAM.UPDATE.%s", "STREAM.DELETE.%s", "STREAM.PURGE.%s",
	"STREAM.SNAPSHOT.%s", "STREAM.RESTORE.%s", "STREAM.MSG.GET.%s", "STREAM.MSG.DELETE.%s", "STREAM.PEER.REMOVE.%s",
	"STREAM.LEADER.STEPDOWN.%s", "CONSUMER.NAMES.%s", "CONSUMER.LIST.%s", "CONSUMER.CREATE.%s", "CONSUMER.CREATE.%s.x",
	"CONSUMER.CREATE.%s.x.>", "CONSUMER.DURABLE.CREATE.%s.x", "CONSUMER.INFO.%s.x", "CONSUMER.DELETE.%s.x", "CONSUMER.PAUSE.%s.x",
	"CONSUMER.UNPIN.%s.x", "CONSUMER.RESET.%s.x", "CONSUMER.MSG.NEXT.%s.x", "DIRECT.GET.%s", "DIRECT.GET.%s.>", "DIRECT.GET.%s.*",
	"DIRECT.GET.%s.btn.v1.>", "META.LEADER.STEPDOWN", "SERVER.REMOVE", "ACCOUNT.PURGE.BASETENSOR",
}

// rightsOf returns the subjects of the requests that a user may make, as the user names them.
func rightsOf(user string) (subjects []string) {
	for _, r := range access.Roles() {
		if r.Name == user {
			return slices.Concat(r.Publish, r.StoredFor)
		}
	}
	for _, i := range access.TenantImports(user) {
		if !i.Stream {
			subjects = append(subjects, cmp.Or(i.Local, i.Subject))
		}
	}
	return subjects
}

// No form of a question to a stream tells a tenant a message of another, nor removes one. A client, which may read all, removes none.
func TestNoQuestionTellsOthers(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme", "globex")
	operator, _ := g.connect(access.Operator)
	js, err := jetstream.New(operator)
	must(t, err)
	victims := g.victims(js)

	for _, user := range []string{"acme", access.Client} {
		g.question(user, victims)
		g.whole(js, victims)
	}
}

// question has a user ask everything. A tenant is told nothing of others.
func (g *guarded) question(user string, victims map[string]map[string]uint64) {
	t := g.t
	t.Helper()
	var subjects []string
	for _, right := range rightsOf(user) {
		subjects = append(subjects, literals(right)...)
	}
	for stream := range victims {
		for _, api := range apis {
			if strings.Contains(api, "%") {
				api = fmt.Sprintf(api, stream)
			}
			subjects = append(subjects, "$JS.API."+api)
		}
	}

	nc, _ := g.connect(user)
	asked := map[string]string{} // by the subject of the reply
	told, open := 0, 0
	inbox := nc.NewInbox()
	replies, err := nc.Subscribe(inbox+".*", func(m *nats.Msg) {
		switch body := string(m.Data) + fmt.Sprint(m.Header); {
		case user != access.Client && (strings.Contains(body, secret) || strings.Contains(body, "globex.victim")):
			told++
			t.Errorf("%s\n\ttells %.300s", asked[m.Subject], body)
		case strings.Contains(body, public):
			open++
		}
	})
	must(t, err)
	must(t, replies.SetPendingLimits(-1, -1))
	n := 0
	for _, subject := range subjects {
		for _, body := range questions() {
			n++
			reply := fmt.Sprintf("%s.%d", inbox, n)
			asked[reply] = subject + " " + body
		}
	}
	for reply, question := range asked {
		subject, body, _ := strings.Cut(question, " ")
		must(t, nc.PublishRequest(subject, reply, []byte(body)))
	}
	// An answer to one more question shows that the server has answered all earlier ones.
	_, err = nc.RequestWithContext(patience(t), "$JS.API.DIRECT.GET.BTN_GRAPH."+message.GraphSubject("", "open"), nil)
	must(t, err)
	must(t, nc.Flush())
	must(t, replies.Drain())
	for replies.IsValid() {
		must(t, nc.Flush())
	}
	if open == 0 {
		t.Error("everybody's models cannot be read: the questions ask nothing")
	}
	t.Logf("%s: %d questions, %d tell of others", user, n, told)
}

// serverHeaders are headers that nats-server 2.15.2 reads of stored messages, with values that ask about others or act on them.
func serverHeaders(victims map[string]map[string]uint64) []nats.Header {
	all := []nats.Header{
		{"Nats-Rollup": {"all"}}, {"Nats-Rollup": {"sub"}}, {"Nats-Msg-Id": {"victim"}}, {"Nats-Expected-Stream": {"BTN_ANSWER"}},
		{"Nats-Expected-Last-Sequence": {"0"}}, {"Nats-Expected-Last-Msg-Id": {"victim"}}, {"Nats-TTL": {"1"}}, {"Nats-Incr": {"1"}},
		{"Nats-Batch-Id": {"victim"}, "Nats-Batch-Sequence": {"1"}, "Nats-Batch-Commit": {"1"}}, {"Nats-Stream-Source": {"BTN_MODEL 1"}},
		{"Nats-Required-Api-Level": {"99"}}, {"Nats-Counter-Sources": {"{}"}}, {"Nats-Marker-Reason": {"Purge"}},
		{"nats-rollup": {"all"}},
	}
	for _, stored := range victims {
		for subject := range stored {
			all = append(all,
				nats.Header{"Nats-Expected-Last-Subject-Sequence": {"0"}, "Nats-Expected-Last-Subject-Sequence-Subject": {subject}})
			if !everyForm {
				break
			}
		}
	}
	for subject := range victims[bus.StreamDeadline] {
		all = append(all, nats.Header{"Nats-Schedule": {"@at 2020-01-01T00:00:00Z"}, "Nats-Schedule-Target": {subject}},
			nats.Header{"Nats-Schedule": {"@every 1s"}, "Nats-Schedule-Target": {"btn.v1.deadline.3.new"}, "Nats-Schedule-Source": {subject}},
			nats.Header{"Nats-Scheduler": {subject}, "Nats-Schedule-Next": {"purge"}})
		if !everyForm {
			break
		}
	}
	return all
}

// No message of a tenant or a client removes or changes one of others, on whatever subject and with whatever headers of the server, and
// the reply is the same whether others have a message or not. Nothing is stored on a subject with * or > for a token.
func TestNoMessageActsOnOthers(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme", "globex")
	operator, _ := g.connect(access.Operator)
	js, err := jetstream.New(operator)
	must(t, err)
	g.run(workers.Settings{Lanes: []int{attackedLane}}, query.StageReparam)
	victims := g.victims(js)

	ours := map[string]bool{}
	for _, user := range []string{"acme", access.Client} {
		nc, _ := g.connect(user)
		for _, right := range rightsOf(user) {
			if strings.HasPrefix(right, "$JS.") || strings.HasPrefix(right, wire.InferSubject) {
				continue // questions store nothing
			}
			for _, subject := range literals(strings.Replace(right, ">", "*", 1)) {
				if message.KindOf(subject) == message.KindRoom {
					continue
				}
				for _, header := range append(serverHeaders(victims), nil) {
					if stored(victims, subject) { // a client may replace what nobody owns
						continue
					}
					ours[subject] = true
					m := &nats.Msg{Subject: subject, Header: header, Data: []byte("attack")}
					reply, err := nc.RequestMsgWithContext(patience(t), m)
					if errors.Is(err, nats.ErrNoResponders) {
						continue
					}
					must(t, err)
					if strings.Contains(string(reply.Data), `"error"`) {
						continue
					}
					if header != nil {
						t.Errorf("%s stores on %s with %v: %s", user, subject, header, reply.Data)
					}
				}
			}
		}
	}
	g.whole(js, victims)

	for name := range victims {
		s, err := js.Stream(patience(t), name)
		must(t, err)
		info, err := s.Info(patience(t), jetstream.WithSubjectFilter(">"))
		must(t, err)
		for subject := range info.State.Subjects {
			if tokens := strings.Split(subject, "."); slices.Contains(tokens, "*") || slices.Contains(tokens, ">") {
				t.Errorf("%s has a message on %s", name, subject)
			}
		}
	}
	t.Logf("%d subjects", len(ours))
}

// stored reports whether a subject has a message of others.
func stored(victims map[string]map[string]uint64, subject string) bool {
	for _, stored := range victims {
		if stored[subject] > 0 {
			return true
		}
	}
	return false
}

// A tenant that makes its message depend on a message of another hears the same whether there is one or not.
func TestConditionsTellNothing(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme", "globex")
	operator, _ := g.connect(access.Operator)
	js, err := jetstream.New(operator)
	must(t, err)
	g.run(workers.Settings{Lanes: []int{attackedLane}}, query.StageReparam)
	victims := g.victims(js)
	nc, _ := g.connect("acme")
	for stream, own := range map[string]string{
		bus.StreamModel: wire.ModelSubject(wire.Lane("acme"), "acme.probe"), bus.StreamControl: wire.CancelSubject("acme.probe"),
		bus.StreamGraph: message.GraphSubject("acme", "probe"),
	} {
		says := func(subject string) string {
			reply, err := nc.RequestMsgWithContext(patience(t), &nats.Msg{Subject: own, Data: []byte("probe"), Header: nats.Header{
				"Nats-Expected-Last-Subject-Sequence": {"0"}, "Nats-Expected-Last-Subject-Sequence-Subject": {subject},
			}})
			must(t, err)
			var said struct {
				Error *jetstream.APIError `json:"error"`
			}
			must(t, json.Unmarshal(reply.Data, &said))
			if said.Error == nil {
				return "stored"
			}
			return strings.ReplaceAll(said.Error.Error(), subject, "SUBJECT")
		}
		for subject := range victims[stream] {
			absent := strings.Replace(subject, "victim", "absent", 1)
			if there, not := says(subject), says(absent); there != not {
				t.Errorf("%s: %q where there is a message on %s, %q where not", own, there, subject, not)
			}
		}
	}
}
