package page

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/gateway"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/query"
)

// spelled is a network whose names have the signs of addresses and lists in them.
const spelled = `{"basetensor_model": 1, "bayes": true, "variables": [
	{"name": "dose, mg=5", "states": ["0,5 = half", "1"]},
	{"name": "50%", "states": ["100%25", "a+b&c"]},
	{"name": "größe?#/日本", "states": ["0.2/0.8", "ø, =, %"]}],
	"factors": [{"scope": [0], "dense": {"values": [0.25, 0.75]}},
	{"scope": [0, 1], "dense": {"values": [0.5, 0.5, 0.1, 0.9]}},
	{"scope": [1, 2], "dense": {"values": [0.3, 0.7, 0.6, 0.4]}}]}`

// TestNamesInAddresses: evidence on names with commas, equals signs, percents and letters of any kind is the same after a way through
// the address, in other programs' spelling too.
func TestNamesInAddresses(t *testing.T) {
	b, s := startBrowser(t), serve(t, false)
	s.work()
	m, err := modeljson.Decode(strings.NewReader(spelled), modeljson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var put gateway.Model
	s.ask(201, "POST", "/v1/models", spelled, &put)
	hash := "#/graph/model/" + put.Digest[:10]
	p := b.tab(t, s.url)
	p.open(hash)
	passed := b.tab(t, s.url)
	for v := range m.Domains {
		for x := range 2 {
			p.click(fmt.Sprintf(`.node[data-variable="%d"] [data-state="%d"]`, v, x))
			seen := query.Query{Evidence: factorgraph.Observe(map[int]int{v: x})}
			p.says(m, seen)
			said := eval[string](p, "location.hash")
			if said == hash {
				t.Fatalf("the address does not say that %s = %s", m.Names[v], m.States[v][x])
			}
			byOthers := url.Values{"evidence": {m.Names[v] + "=" + m.States[v][x]}}.Encode()
			byHand := "evidence=" + url.PathEscape(m.Names[v]) + "=" +
				strings.NewReplacer("%2C", ",", "&", "%26", "+", "%2B").Replace(url.PathEscape(m.States[v][x]))
			for _, address := range []string{said, hash + "?" + byOthers, hash + "?" + byHand} {
				passed.open(address)
				passed.says(m, seen)
				passed.wait(`document.querySelector('.evidence li span').textContent === $1`, m.Names[v]+" = "+m.States[v][x])
			}
		}
		p.click("#clear")
		p.wait(`location.hash === $1`, hash)
	}
	passed.open(hash + "?likelihood=" + url.PathEscape(m.Names[0]) + "=0.25,1")
	soft := factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Var: 0, Weights: []float64{0.25, 1}}}}
	passed.says(m, query.Query{Evidence: soft})
}

// TestNamesInLists: the form takes names with commas and equals signs in its lists.
func TestNamesInLists(t *testing.T) {
	b, s := startBrowser(t), serve(t, false)
	s.work()
	var put gateway.Model
	s.ask(201, "POST", "/v1/models", spelled, &put)
	p := b.tab(t, s.url)
	p.open("#/ask/model/" + put.Digest + "?evidence=" + url.PathEscape("dose, mg=5") + "=" + url.PathEscape("0,5 = half"))
	p.wait(`document.querySelector('.rows select').selectedOptions[0].textContent === '0,5 = half'`)
	for id, text := range map[string]string{
		"ask-joint": "50%, größe?#/日本", "ask-targets": "50%,dose, mg=5", "ask-map": "dose, mg=5,50%",
		"ask-sensitivity": "größe?#/日本 = ø, =, %", "ask-job": "spelled",
	} {
		p.click("#" + id)
		p.write(text)
	}
	p.click("#ask-go")
	p.wait(`location.hash === '#/jobs/spelled' && document.querySelector('.state')?.textContent.includes('ok')`)
	var job gateway.JobModel
	s.ask(200, "GET", "/v1/jobs/spelled/model", nil, &job)
	var asked [2]struct {
		Hard  []factorgraph.Observation
		Asked struct {
			Targets, Joint, Map []int
			Sensitivity         struct{ V, X int }
		}
	}
	got, err := json.Marshal(job.Queries) // what moves a probability is a query of its own beside a joint posterior
	if err == nil {
		err = json.Unmarshal(got, &asked)
	}
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(asked); text != "[{[{0 0}] {[1 0] [1 2] [0 1] {0 0}}} {[{0 0}] {[] [] [] {2 1}}}]" {
		t.Errorf("asked %s: %s", text, got)
	}
}
