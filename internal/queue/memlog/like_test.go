package memlog_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/memlog"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/nats-io/nats.go"
)

// side is one of the two servers that get the same requests.
type side struct {
	t    *testing.T
	nc   *nats.Conn
	into chan *nats.Msg    // messages that its consumers deliver
	held map[string]string // subjects to acknowledge them, by the message's sequence and the consumer
	some bool              // the other server has delivered what is asked for
}

func newSide(t *testing.T, nc *nats.Conn) *side {
	t.Helper()
	s := &side{t: t, nc: nc, into: make(chan *nats.Msg, 1000), held: map[string]string{}}
	if _, err := nc.ChanSubscribe("pulled.*", s.into); err != nil {
		t.Fatal(err)
	}
	return s
}

// Parts of a reply that differ from server to server: times, and fields that only one of them has or that say nothing here.
var clock = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)

var unlike = []string{
	"ts", "created", "time", "cluster", "domain", "first_ts", "last_ts", "last_active", "num_deleted", "deleted", "metadata", "type", "code",
	"mirror_direct", "allow_direct", "compression", "consumer_limits", "deny_delete", "deny_purge", "sealed", "storage",
	"push_bound", "timestamp",
	"num_replicas", "allow_atomic", "allow_msg_ttl", "allow_msg_counter", "replay_policy", "deliver_policy", "max_waiting",
	"description", "pause_remaining", "offset",
	"persist_mode", "allow_batched",
	"limit", "ack_floor", "stream_seq", "hdrs",
}

// plain returns a decoded reply without the parts that differ. A did_create counts as none.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range unlike {
			delete(v, name)
		}
		for name, one := range v {
			if one == nil || one == false || one == "" || one == 0.0 {
				delete(v, name)
				continue
			}
			v[name] = plain(one)
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	}
	return v
}

// text writes a message in a form that is equal for both servers.
func text(m *nats.Msg) string {
	var v any
	data := fmt.Sprintf("%.4s… of %d bytes", m.Data, len(m.Data))
	if json.Unmarshal(m.Data, &v) == nil {
		b, _ := json.Marshal(plain(v))
		data = string(b)
	}
	var headers []string
	for name, values := range m.Header {
		headers = append(headers, name+"="+clock.ReplaceAllString(strings.Join(values, ","), "TIME"))
	}
	slices.Sort(headers)
	return fmt.Sprintf("%s %v %s", m.Subject, headers, data)
}

// ask sends a request and returns its reply.
func (s *side) ask(subject, body string, headers ...string) string {
	s.t.Helper()
	m := nats.NewMsg(subject)
	m.Data = []byte(body)
	for i := 0; i+1 < len(headers); i += 2 {
		m.Header[headers[i]] = []string{headers[i+1]}
	}
	reply, err := s.nc.RequestMsg(m, 20*time.Second)
	if err != nil {
		return err.Error()
	}
	reply.Subject = ""
	return text(reply)
}

// many sends a request and returns its replies until one is a status, or for messages that ask for no more.
func (s *side) many(subject, body string) string {
	s.t.Helper()
	inbox := s.nc.NewInbox()
	sub, err := s.nc.SubscribeSync(inbox)
	if err != nil {
		s.t.Fatal(err)
	}
	defer sub.Unsubscribe()
	s.nc.PublishRequest(subject, inbox, []byte(body))
	var all []string
	for {
		m, err := sub.NextMsg(20 * time.Second)
		if err != nil {
			return strings.Join(append(all, err.Error()), "\n")
		}
		status := m.Header.Get("Status")
		m.Subject = ""
		all = append(all, text(m))
		if status != "" {
			return strings.Join(all, "\n")
		}
	}
}

// pull asks a consumer for the messages that there are, and returns them.
// A server may not know yet that there are messages that it has just stored: it is asked again.
func (s *side) pull(stream, consumer string, batch int) string {
	s.t.Helper()
	said := s.pullOnce(stream, consumer, batch)
	for again := 0; s.some && again < 1000 && said == "404"; again++ {
		time.Sleep(2 * time.Millisecond)
		said = s.pullOnce(stream, consumer, batch)
	}
	return said
}

func (s *side) pullOnce(stream, consumer string, batch int) string {
	s.t.Helper()
	request := fmt.Appendf(nil, `{"batch":%d,"no_wait":true}`, batch)
	s.nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+stream+"."+consumer, "pulled."+consumer, request)
	var all []string
	for range batch {
		select {
		case m := <-s.into:
			if m.Reply == "" {
				return strings.Join(append(all, m.Header.Get("Status")), "\n")
			}
			meta, err := m.Metadata()
			if err != nil {
				s.t.Fatal(err)
			}
			s.held[fmt.Sprintf("%s %d", consumer, meta.Sequence.Stream)] = m.Reply
			at := fmt.Sprintf("deliveries %d, number %d", meta.NumDelivered, meta.Sequence.Consumer) // the server counts the rest late
			all = append(all, text(m)+" "+at)
		case <-time.After(20 * time.Second):
			return strings.Join(append(all, "nothing comes"), "\n")
		}
	}
	return strings.Join(all, "\n")
}

const queueConfig = `{"name":"QUEUE","subjects":["queue.>"],"retention":"workqueue","discard":"new",` +
	`"max_msgs_per_subject":1,"discard_new_per_subject":true,"max_bytes":4096,` +
	`"storage":"memory","num_replicas":1,"duplicate_window":100000000,"allow_direct":true,"max_age":86400000000000}`

const keptConfig = `{"name":"KEPT","subjects":["kept.>"],"retention":"limits","discard":"new","max_msgs_per_subject":1,"max_bytes":1500,` +
	`"storage":"memory","num_replicas":1,"duplicate_window":100000000,"allow_direct":true,"republish":{"src":"kept.>","dest":"done.>"}}`

const oldConfig = `{"name":"OLD","subjects":["old.>"],"retention":"limits","discard":"old","max_bytes":3000,"max_msgs_per_subject":3,` +
	`"storage":"memory","num_replicas":1,"allow_direct":true,"allow_rollup_hdrs":true,"max_age":86400000000000}`

// step is a request, which returns its reply as text.
type step struct {
	ask   func(*side) string
	reads bool // it changes nothing
}

// steps returns a random sequence of requests, the same for a seed.
func steps(r *rand.Rand, n int) (all []step) {
	add := func(ask func(*side) string) { all = append(all, step{ask: ask}) }
	api := func(subject, body string, headers ...string) {
		reads := strings.Contains(subject, ".INFO.") || strings.Contains(subject, "NAMES") || strings.Contains(subject, "GET.")
		all = append(all, step{func(s *side) string { return subject + body + " → " + s.ask(subject, body, headers...) }, reads})
	}
	api("$JS.API.STREAM.CREATE.QUEUE", queueConfig)
	api("$JS.API.STREAM.CREATE.KEPT", keptConfig)
	api("$JS.API.STREAM.CREATE.OLD", oldConfig)
	consumer := func(stream, name, filter string) {
		api("$JS.API.CONSUMER.CREATE."+stream+"."+name+"."+filter, fmt.Sprintf(
			`{"stream_name":%q,"config":{"name":%q,"durable_name":%q,"ack_policy":"explicit","ack_wait":60000000000,`+
				`"max_deliver":-1,"max_ack_pending":1000,"max_waiting":4096,"deliver_policy":"all",`+
				`"replay_policy":"instant","filter_subject":%q},"action":""}`, stream, name, name, filter))
	}
	consumer("QUEUE", "a", "queue.a.>")
	consumer("QUEUE", "b", "queue.b.>")
	consumer("QUEUE", "c", "queue.>") // not unique
	consumer("KEPT", "k", "kept.>")
	consumer("OLD", "o", "old.*")

	stream := func() string { return []string{"QUEUE", "KEPT", "OLD", "NONE"}[r.IntN(4)] }
	subject := func() string {
		return []string{"queue.a", "queue.b", "kept", "old"}[r.IntN(4)] + "." + string(rune('p'+r.IntN(4)))
	}
	of := map[string]string{"a": "QUEUE", "b": "QUEUE", "k": "KEPT", "o": "OLD"}
	name := func() string { return string("abko"[r.IntN(4)]) }
	for range n {
		switch r.IntN(16) {
		case 0, 1, 2, 3:
			var headers []string
			if r.IntN(2) == 0 {
				headers = append(headers, "Nats-Expected-Last-Subject-Sequence", fmt.Sprint(r.IntN(2)*r.IntN(30)))
			}
			if r.IntN(8) == 0 {
				headers = append(headers, "Nats-Expected-Last-Subject-Sequence", "0", "Nats-Expected-Last-Subject-Sequence-Subject", "queue.a.*")
			}
			if r.IntN(8) == 0 {
				headers = append(headers, "Nats-Rollup", "sub")
			}
			if r.IntN(6) == 0 {
				headers = append(headers, "Nats-Expected-Last-Sequence", fmt.Sprint(r.IntN(40)))
			}
			if r.IntN(8) == 0 {
				headers = append(headers, "Other", "value")
			}
			api(subject(), strings.Repeat("x", r.IntN(600)), headers...)
		case 4:
			api("$JS.API.STREAM.INFO."+stream(), []string{"", `{"subjects_filter":">"}`, `{"subjects_filter":"*.a.*"}`}[r.IntN(3)])
		case 5:
			api("$JS.API.DIRECT.GET."+stream()+"."+subject(), "")
		case 6:
			filter := []string{">", "queue.a.*", "kept.p"}[r.IntN(3)]
			api("$JS.API.DIRECT.GET."+stream(), fmt.Sprintf(`{"seq":%d,"next_by_subj":%q}`, r.IntN(40), filter))
		case 7:
			const ask = `{"seq":%d,"next_by_subj":">","batch":%d,"max_bytes":%d}`
			from, body := "$JS.API.DIRECT.GET."+stream(), fmt.Sprintf(ask, 1+r.IntN(40), 1+r.IntN(9), r.IntN(2)*900)
			add(func(s *side) string { return body + " → " + s.many(from, body) })
		case 8:
			asks := []string{fmt.Sprintf(`{"seq":%d}`, 1+r.IntN(40)), `{"last_by_subj":"kept.*"}`, `{"last_by_subj":"old.q"}`}
			api("$JS.API.STREAM.MSG.GET."+stream(), asks[r.IntN(3)])
		case 9:
			if r.IntN(3) == 0 {
				api("$JS.API.STREAM.PURGE."+stream(), []string{`{"filter":"kept.p"}`, `{"filter":"old.*","seq":12}`, `{"seq":20}`}[r.IntN(3)])
			} else {
				api("$JS.API.STREAM.MSG.DELETE."+stream(), fmt.Sprintf(`{"seq":%d}`, 1+r.IntN(40)))
			}
		case 10, 11, 12:
			from, batch := name(), 1+r.IntN(4)
			add(func(s *side) string { return "pull " + from + " → " + s.pull(of[from], from, batch) })
		case 13, 14:
			from, sequence, word := name(), 1+r.IntN(40), []string{"+ACK", "-NAK", "+TERM", "+WPI"}[r.IntN(4)]
			add(func(s *side) string {
				to := s.held[fmt.Sprintf("%s %d", from, sequence)]
				if to == "" {
					return ""
				}
				return word + " " + s.ask(to, word)
			})
		case 15:
			from := name()
			api("$JS.API.CONSUMER.INFO."+of[from]+"."+from, "")
			api("$JS.API.CONSUMER.NAMES."+of[from], "{}")
			api("$JS.API.STREAM.NAMES", `{"subject":"`+subject()+`"}`)
		}
	}
	return all
}

// TestLikeTheServer gives the same requests to a nats-server and to a server in memory: every reply is the same, times aside.
func TestLikeTheServer(t *testing.T) {
	real := testserver.NATS(t, testserver.NATSOptions{})
	outside, err := nats.Connect(real.URL)
	if err != nil {
		t.Fatal(err)
	}
	a := newSide(t, outside)
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			for _, stream := range []string{"QUEUE", "KEPT", "OLD"} {
				a.ask("$JS.API.STREAM.DELETE."+stream, "")
			}
			clear(a.held)
			b := newSide(t, inside(t, memlog.New(memlog.Options{})))
			for i, step := range steps(rand.New(rand.NewPCG(seed, 1)), 400) {
				got := step.ask(b)
				a.some = !strings.HasSuffix(got, " 404")
				want := step.ask(a)
				for again := 0; step.reads && want != got && again < 20; again++ { // it counts messages a moment after it stores them
					time.Sleep(10 * time.Millisecond)
					want = step.ask(a)
				}
				if want != got {
					t.Fatalf("step %d: nats-server says\n%s\nand memory\n%s", i, want, got)
				}
			}
		})
	}
}

// inside returns a connection to a server in memory, which ends with the test.
func inside(t *testing.T, s *memlog.Server) *nats.Conn {
	t.Helper()
	t.Cleanup(s.Close)
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}
