package page

import (
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/gateway"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// clinic is a network as Hugin writes it: effects are above and beside their causes, and y grows upwards.
const clinic = `net { node_size = (76 36); }
node smoke { label = "Smoking?"; position = (300 40); states = ("no" "yes"); }
node lung { label = "Lung cancer?"; position = (100 160); states = ("no" "yes"); }
node bronc { label = "Bronchitis?"; position = (310 150); states = ("no" "yes"); }
node dysp { position = (600 45); states = ("no" "yes"); }
potential (smoke) { data = (0.5 0.5); }
potential (lung | smoke) { data = ((0.99 0.01) (0.9 0.1)); }
potential (bronc | smoke) { data = ((0.7 0.3) (0.4 0.6)); }
potential (dysp | lung bronc) { data = (((0.9 0.1) (0.2 0.8)) ((0.3 0.7) (0.1 0.9))); }`

// TestPlacesOfTheFile: variables are where their file draws them, without lying on each other, and are called as it shows them.
func TestPlacesOfTheFile(t *testing.T) {
	b, s := startBrowser(t), serve(t, false)
	s.work()
	m, err := formats.Read(strings.NewReader(clinic), formats.NET, "", uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var put gateway.Model
	s.ask(201, "POST", "/v1/models", clinic, &put)
	p := b.tab(t, s.url)
	check := func() {
		t.Helper()
		p.says(m, query.Query{})
		at := [][2]float64{{300, -40}, {100, -160}, {310, -150}, {600, -45}}
		all := p.boxes()
		middle := func(v int) [2]float64 { return [2]float64{all[v].X + all[v].W/2, all[v].Y + all[v].H/2} }
		scale := (middle(3)[0] - middle(0)[0]) / 300
		for v := range all {
			for k := range 2 {
				if got, want := middle(v)[k]-middle(0)[k], scale*(at[v][k]-at[0][k]); math.Abs(got-want) > 0.5 {
					t.Errorf("%s is %v beside the first, want %v", m.Names[v], got, want)
				}
			}
			for u := range v {
				if a, b := all[v], all[u]; a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Errorf("%d and %d are on top of each other", v, u)
				}
			}
		}
		names := eval[[]string](p, `[...document.querySelectorAll('.node .name')].map(e => e.textContent)`)
		if strings.Join(names, ", ") != "Smoking?, Lung cancer?, Bronchitis?, dysp" {
			t.Errorf("%q", names)
		}
		p.wait(`document.querySelector('.node[data-variable="1"]').getAttribute('aria-label').startsWith('Lung cancer? (lung): ')`)
	}
	p.open("#/graph/model/" + put.Digest)
	check()
	p.drop("clinic.net", []byte(clinic))
	p.wait(`/^#\/graph\/job\/clinic-/.test(location.hash)`)
	check()

	p.click(`.node[data-variable="1"] [data-state="1"]`)
	p.wait(`document.querySelector('.choice legend').textContent === 'Lung cancer? (lung)' && /\?evidence=lung=yes$/.test(location.hash)
		&& document.querySelector('.evidence li span').textContent === 'Lung cancer? (lung) = yes'`)
	p.click(".table summary")
	p.wait(`document.querySelector('.numbers caption').textContent === 'P(Lung cancer? | Smoking?)'`)
	p.shot("graph-places-light-1440")
	p.click("#variable-search")
	p.write("bronchitis")
	p.wait(`document.querySelectorAll('.found button').length === 1`)
	p.click(".state-of-it a")
	p.wait(`[...document.querySelectorAll('.posterior caption')].map(e => e.textContent).join('; ')
		=== 'Smoking? (smoke); Lung cancer? (lung); Bronchitis? (bronc); dysp'`)

	// places on top of each other are none
	s.ask(201, "POST", "/v1/models", strings.Replace(clinic, "(310 150)", "(300 40)", 1), &put)
	p.open("#/graph/model/" + put.Digest)
	p.says(m, query.Query{})
	all := p.boxes()
	if all[0].Y+all[0].H > all[1].Y || all[1].Y+all[1].H > all[3].Y {
		t.Errorf("causes are not above effects: %v", all)
	}
}
