package access_test

// Holders of a user's keys try to make the server write where the user may not: as the reply to any request, as the
// delivery of a consumer, as the trace or the schedule of a message.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// targets are subjects where a message would do harm; %s is the attack's own name.
var targets = []string{
	"btn.v1.answer.acme.%s", "btn.v1.answer.%s", "btn.v1.done.acme.%s", "btn.v1.progress.acme.%s", "btn.v1.cancel.acme.%s",
	"btn.v1.model.2.acme.%s", "btn.v1.network.2.acme.%s", "btn.v1.task.2.acme.%s.1.0", "btn.v1.partial.2.acme.%s.1.0",
	"btn.v1.end.2.acme.%s", "btn.v1.redrive.2.acme.%s", "btn.v1.timer.2.acme.%s", "btn.v1.deadline.2.acme.%s",
	"btn.v1.dlq.aggregator.acme.%s", "btn.v1.blob.acme.%s", "btn.v1.graph.acme.%s", "btn.v1.graph._.%s", "btn.v1.infer.%s",
	"_INBOX_aggregator.%s", "_INBOX_operator.%s", "_INBOX.%s",
	"$JS.API.STREAM.PURGE.%s", "$JS.API.STREAM.MSG.DELETE.%s", "$JS.ACK.BTN_TASK.contract-2.1.1.1.1.%s",
}

// attack is a message that makes the server write on a subject.
type attack struct {
	what string
	msg  func(to, name string) *nats.Msg
}

// asks is a request with the target as its reply subject.
func asks(subject, body string) attack {
	return attack{subject + " " + body, func(to, _ string) *nats.Msg {
		return &nats.Msg{Subject: subject, Reply: to, Data: []byte(body)}
	}}
}

// attacks returns all attacks of a user. stored has the subject of one message per stream: the attacker chose its
// bytes, and the user may read it.
func attacks(user string, stored map[string]string) []attack {
	var all []attack
	for stream, subject := range stored {
		all = append(all,
			asks("$JS.API.DIRECT.GET."+stream+"."+subject, ""),
			asks("$JS.API.DIRECT.GET."+stream, `{"last_by_subj": "`+subject+`"}`),
			asks("$JS.API.DIRECT.GET."+stream, `{"seq": 1, "next_by_subj": "`+subject+`"}`),
			asks("$JS.API.DIRECT.GET."+stream, `{"seq": 1, "batch": 2, "next_by_subj": ">"}`),
			asks("$JS.API.DIRECT.GET."+stream, `{"multi_last": [">"], "batch": 2}`),
			asks("$JS.API.STREAM.MSG.GET."+stream, `{"last_by_subj": "`+subject+`"}`),
			asks("$JS.API.STREAM.INFO."+stream, ""),
			asks("$JS.API.STREAM.PURGE."+stream, `{"filter": "none"}`),
			asks("$JS.API.STREAM.MSG.DELETE."+stream, `{"seq": 1000000}`),
			asks("$JS.API.STREAM.SNAPSHOT."+stream, `{"deliver_subject": "_INBOX.x"}`),
			attack{subject + " stored", func(to, _ string) *nats.Msg {
				return &nats.Msg{Subject: subject, Reply: to, Data: []byte("x")}
			}},
			attack{subject + " traced", func(to, _ string) *nats.Msg {
				return &nats.Msg{Subject: subject, Data: []byte("x"), Header: nats.Header{"Nats-Trace-Dest": {to}}}
			}},
		)
		for _, call := range []string{"CREATE", "DURABLE.CREATE"} {
			for _, subject := range []string{"$JS.API.CONSUMER." + call + "." + stream + "."} {
				all = append(all, attack{subject, func(to, name string) *nats.Msg {
					of := strings.Split(subject, ".")
					body, _ := json.Marshal(map[string]any{"stream_name": of[len(of)-2], "config": map[string]any{
						"name": name, "durable_name": name, "deliver_subject": to, "ack_policy": "none", "deliver_policy": "all",
					}})
					return &nats.Msg{Subject: subject + name, Data: body}
				}})
			}
		}
	}
	for _, feed := range []string{
		"BTN_MODEL.reparam-2", "BTN_NETWORK.learn-2", "BTN_TASK.contract-2", "BTN_PARTIAL.aggregate-2", "BTN_CONTROL.end",
	} {
		all = append(all, asks("$JS.API.CONSUMER.MSG.NEXT."+feed, `{"batch": 1, "no_wait": true}`),
			asks("$JS.API.CONSUMER.MSG.NEXT."+feed, `{"batch": 1, "expires": 1000000}`),
			asks("$JS.ACK."+feed+".1.1.1.1.0", "+NXT"), asks("$JS.API.CONSUMER.INFO."+feed, ""))
	}
	own := ""
	if user == "globex" {
		own = "globex."
	}
	schedule := func(to, name string) *nats.Msg {
		return &nats.Msg{Subject: "btn.v1.timer.3." + name, Data: []byte("x"), Header: nats.Header{
			"Nats-Schedule": {"@at 2020-01-01T00:00:00Z"}, "Nats-Schedule-Target": {to},
		}}
	}
	return append(all,
		asks("$JS.API.INFO", ""), asks("$JS.API.STREAM.NAMES", ""), asks("$JS.API.STREAM.LIST", ""),
		asks("$JS.API.CONSUMER.NAMES.BTN_TASK", ""), asks("$JS.API.CONSUMER.LIST.BTN_TASK", ""),
		asks("$SRV.PING", ""), asks("$SRV.INFO.btn", ""), asks("$SRV.STATS", ""),
		asks(strings.TrimSuffix("btn.v1.infer."+own, "."), "no request"), asks("btn.v1.room.2", ""),
		attack{"schedule", schedule},
		attack{"published", func(to, _ string) *nats.Msg { return &nats.Msg{Subject: to, Data: []byte("x")} }},
	)
}

// mayPublish reports whether a user has the right to publish on a subject.
func mayPublish(user, subject string) bool {
	var filters []string
	for _, r := range access.Roles() {
		if r.Name == user {
			filters = slices.Concat(r.Publish, r.StoredFor, r.Announces)
		}
	}
	if !access.IsReservedName(user) {
		for _, i := range access.TenantImports(user) {
			if !i.Stream {
				filters = append(filters, cmp.Or(i.Local, i.Subject))
			}
		}
	}
	return slices.ContainsFunc(filters, func(f string) bool {
		want, have := strings.Split(f, "."), strings.Split(subject, ".")
		for i, w := range want {
			if w == ">" {
				return len(have) > i
			}
			if i >= len(have) || w != "*" && w != have[i] {
				return false
			}
		}
		return len(want) == len(have)
	})
}

// No message of a user other than the operator makes the server write on a subject that the user may not publish on,
// wherever its reply is to go. The stages work on meanwhile.
func TestNothingCanBeAimed(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme", "globex")
	g.run(workers.Settings{})
	acme := g.as("acme")
	want(t, acme, "acme.before")

	watcher, _ := g.connect(access.Operator)
	must(t, watcher.Flush())
	cells := map[string]string{} // attack by its target
	var seen []string
	all, err := watcher.Subscribe(">", func(m *nats.Msg) { seen = append(seen, m.Subject) })
	must(t, err)
	must(t, all.SetPendingLimits(-1, -1))
	must(t, watcher.Flush())

	reached := map[string]int{}
	for _, user := range append(strings.Fields(stages), access.Client, "globex") {
		nc, _ := g.connect(user)
		forged := forgery(t, "acme.victim")
		digest := wire.Digest(forged.Data)
		stored := map[string]string{bus.StreamBlob: message.BlobSubject("", digest)}
		if user == "globex" {
			stored = map[string]string{
				bus.StreamBlob: message.BlobSubject("globex", digest), bus.StreamGraph: message.GraphSubject("globex", "stored"),
				bus.StreamModel: wire.ModelSubject(wire.Lane("globex"), "globex.stored"),
			}
		}
		for _, subject := range stored {
			data := forged.Data
			if subject == message.GraphSubject("globex", "stored") { // a name has versions
				data = fmt.Appendf(nil, `{"versions": [{"digest": %q, "time": "2026-01-02T03:04:05Z"}]}`, digest)
			}
			reply, err := nc.RequestMsgWithContext(patience(t), &nats.Msg{Subject: subject, Header: forged.Header, Data: data})
			must(t, err)
			if !strings.Contains(string(reply.Data), `"seq"`) {
				t.Fatalf("%s stores on %s: %s", user, subject, reply.Data)
			}
		}
		for a, way := range attacks(user, stored) {
			for i, to := range targets {
				name := fmt.Sprintf("%s-%d-%d", user, a, i)
				to = fmt.Sprintf(to, name)
				if mayPublish(user, to) || way.what == "schedule" && strings.HasPrefix(to, "btn.v1.deadline.") {
					continue // it gains nothing: deadlines are signed
				}
				cells[to] = user + ": " + way.what
				must(t, nc.PublishMsg(way.msg(to, name)))
			}
		}
		must(t, nc.Flush())
		// An answer to one more request shows that the server has answered all earlier ones.
		for _, subject := range []string{
			"$JS.API.DIRECT.GET.BTN_BLOB", "$JS.API.STREAM.INFO.BTN_BLOB", "$JS.API.CONSUMER.INFO.BTN_TASK.contract-2",
		} {
			if mayPublish(user, subject) {
				_, err := nc.RequestWithContext(patience(t), subject, []byte(`{"seq": 1}`))
				must(t, err)
			}
		}
		reached[user] = len(cells)
	}
	want(t, acme, "acme.after")
	want(t, g.as("globex"), "globex.after")

	must(t, watcher.Flush())
	must(t, all.Unsubscribe())
	must(t, all.Drain())
	bad := 0
	for _, subject := range seen {
		if by := cells[subject]; by != "" {
			if bad++; bad <= 40 {
				t.Errorf("%s: the server wrote on %s", by, subject)
			}
		}
	}
	t.Logf("%d attacks, %d reached, %d messages seen", len(cells), bad, len(seen))
}

// want submits a job and checks its answer.
func want(t *testing.T, c *client.Client, job string) {
	t.Helper()
	ctx := patience(t)
	_, err := c.Submit(ctx, wire.Request{Job: job, Text: coin, Queries: []query.Query{{}}})
	must(t, err)
	a, err := c.Wait(ctx, job)
	must(t, err)
	right(t, a)
}

// right reports an error for an answer other than coin's.
func right(t *testing.T, a *wire.Answer) {
	t.Helper()
	if a.Status != wire.StatusOK || math.Abs(*a.Results[0].LogZ-math.Log(4)) > 1e-12 {
		t.Errorf("job %s: %+v", a.Job, a)
	}
}

// forgery returns an answer to a job's request that no aggregator wrote.
func forgery(t *testing.T, job string) *nats.Msg {
	t.Helper()
	request := wire.Request{Job: job, Text: coin, Queries: []query.Query{{}}}
	digest, err := request.Digest()
	must(t, err)
	z := 42.0
	a := &wire.Answer{Job: job, Tenant: message.Owner(job), Digest: digest, Status: wire.StatusOK}
	a.Results = []query.Result{{Job: job, Status: query.StatusOK, LogZ: &z, Method: "exact"}}
	b, err := wire.Encode(a)
	must(t, err)
	return &nats.Msg{Subject: wire.AnswerSubject(job), Header: nats.Header(message.Headers(a, job, digest, a.Tenant)), Data: b}
}
