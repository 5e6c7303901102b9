package gateway

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/wire"
)

// TestKeysOfRequests: a key that comes twice, or in another case than it has, is refused with its name and place.
func TestKeysOfRequests(t *testing.T) {
	s := start(t, false, nil)
	for words, body := range map[string]string{
		`the key \"mpe\" comes twice`:              `{"model": ` + rain + `, "mpe": false, "mpe": true}`,
		`the key \"MPE\" is written \"mpe\"`:       `{"model": ` + rain + `, "mpe": false, "MPE": true}`,
		`queries[1]: the key \"evid\" comes twice`: `{"model": ` + rain + `, "queries": [{}, {"evid": "1 0 1", "evid": "1 0 0"}]}`,
		`settings: the key \"method\" comes twice`: `{"model": ` + rain + `, "settings": {"method": "exact", "method": "sampled"}}`,
		`wet`:                     `{"model": ` + rain + `, "evidence": {"wet": 0, "wet": 1}}`,
		`basetensor_model`:        `{"model": {"basetensor_model": 1, "basetensor_model": 1}}`,
		`unknown field \"Bayes\"`: `{"model": {"basetensor_model": 1, "Bayes": true, "variables": [], "factors": []}}`,
	} {
		s.refused(400, strings.ReplaceAll(words, `\"`, `"`), "POST", "/v1/infer", body)
	}
}

// TestDamagedBodies: a body with another digest than its header says is refused so that its client sends it again; responses have theirs.
func TestDamagedBodies(t *testing.T) {
	s := start(t, false, nil)
	body := `{"look": true}`
	sum := sha256.Sum256([]byte(body))
	s.refused(400, "exactly one", "POST", "/v1/infer", body, "Content-Digest", contentDigestOf(sum[:]))
	s.refused(400, "exactly one", "POST", "/v1/infer", body, "Content-Digest", "sha-512=:x:")
	s.refused(503, "damaged on its way", "POST", "/v1/infer", body+" ", "Content-Digest", contentDigestOf(sum[:]))
	text := zipped(t, body)
	sum = sha256.Sum256([]byte(text))
	s.refused(400, "exactly one", "POST", "/v1/infer", text, "Content-Encoding", "gzip", "Content-Digest", contentDigestOf(sum[:]))
	r, err := http.Get(s.url + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	sum = sha256.Sum256([]byte("{\"models\":[]}\n"))
	if got := r.Header.Get("Content-Digest"); got != contentDigestOf(sum[:]) {
		t.Errorf("digest of a response: %s", got)
	}
}

// TestTwoLengths: a request that says its length twice, in two ways, is refused, on a connection that served others too.
func TestTwoLengths(t *testing.T) {
	s := start(t, false, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	ask := func(headers, body string) (status int, said string) {
		t.Helper()
		fmt.Fprintf(conn, "POST /v1/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n%s", headers, body)
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text := new(strings.Builder)
		_, _ = bufio.NewReader(r.Body).WriteTo(text)
		return r.StatusCode, text.String()
	}
	const chunked = "2\r\n{}\r\n0\r\n\r\n"
	for range 50 { // the next request comes before net/http says that the connection is idle, or after
		if status, said := ask("Transfer-Encoding: chunked\r\n", chunked); status != 400 || !strings.Contains(said, "exactly one") {
			t.Errorf("chunked alone: %d %s", status, said)
		}
		if status, said := ask("Content-Length: 2\r\n", "{}"); status != 400 || !strings.Contains(said, "exactly one") {
			t.Errorf("a length alone: %d %s", status, said)
		}
	}
	status, said := ask("Content-LENGTH: 17\r\nTransfer-Encoding: chunked\r\n", chunked)
	if status != 400 || !strings.Contains(said, "Content-Length") {
		t.Errorf("both: %d %s", status, said)
	}
}

// TestStatusOfATenant: a tenant's key shows its own lane, and no backlog of others.
func TestStatusOfATenant(t *testing.T) {
	all := Status{Version: "v", Stages: []StageStatus{{Stage: "learn-worker", Messages: 7, Seconds: 3, Working: 2, Asking: 1, Workers: 4}}}
	for lane := range wire.Lanes {
		all.Lanes = append(all.Lanes, LaneStatus{Lane: lane, Waiting: 1 + lane})
	}
	all.Streams = []StreamFill{{"BTN_MODEL", 1, 2}}
	own := all.forTenant("acme")
	if lane := wire.Lane("acme"); len(own.Lanes) != 1 || own.Lanes[0] != all.Lanes[lane] {
		t.Errorf("lanes %+v", own.Lanes)
	}
	if s := own.Stages; len(own.Streams) != 0 || len(s) != 1 || s[0].Messages != 0 || s[0].Working != 0 || s[0].Workers != 4 {
		t.Errorf("%+v", own)
	}
}
