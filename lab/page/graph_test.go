package page

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/gateway"
)

// box is where a variable is drawn.
type box struct{ X, Y, W, H float64 }

// boxes returns where all variables are.
func (p *tab) boxes() []box {
	p.Helper()
	return eval[[]box](p, `[...document.querySelectorAll('.node')].map(e => {
		const [x, y] = e.getAttribute('transform').match(/-?[\d.]+/g).map(Number)
		const r = e.querySelector('.box')
		return { x, y, w: Number(r.getAttribute('width')), h: Number(r.getAttribute('height')) }
	})`)
}

// TestLayouts: no two variables are on top of each other, causes are above effects, and a drawing is the same every time.
func TestLayouts(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, false)
	p := b.tab(t, s.url)
	for _, of := range []struct {
		model  string
		number int
	}{{string(s.file("asia.json")), 8}, {string(s.file("alarm.uai")), 37}, {string(s.file("heating.bif")), 0}, {grid(12), 144}, {apart, 7}} {
		var put gateway.Model
		s.ask(201, "POST", "/v1/models", of.model, &put)
		var graph gateway.Graph
		s.ask(200, "GET", "/v1/models/"+put.Digest+"?format=graph", nil, &graph)
		hash := "#/graph/model/" + put.Digest
		show := func() []box {
			// nobody works: the drawing is there before any posterior
			p.do("Page.navigate", map[string]any{"url": "about:blank"}, nil)
			p.do("Page.navigate", map[string]any{"url": p.url + "/" + hash}, nil)
			p.wait(`document.querySelectorAll('.node').length === $1`, len(graph.Variables))
			return p.boxes()
		}
		all := show()
		if of.number > 0 && len(all) != of.number {
			t.Errorf("%d variables are drawn, want %d", len(all), of.number)
		}
		for i, a := range all {
			for j, b := range all[:i] {
				if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Errorf("of %d variables %d and %d are on top of each other: %+v, %+v", len(all), j, i, b, a)
				}
			}
		}
		if graph.Bayes {
			for _, f := range graph.Factors {
				child := f.Scope[len(f.Scope)-1]
				for _, parent := range f.Scope[:len(f.Scope)-1] {
					if all[parent].Y+all[parent].H > all[child].Y {
						t.Errorf("of %d variables %d is not above %d", len(all), parent, child)
					}
				}
			}
		}
		first, _ := json.Marshal(all)
		if again, _ := json.Marshal(show()); string(again) != string(first) {
			t.Errorf("the drawing of %d variables is another one each time", len(all))
		}
	}
}

// apart is a model in three parts: a factor of three variables, a cycle with one of two, and a variable alone.
const apart = "MARKOV 7 2 2 2 2 2 2 2 4 3 0 1 2 2 3 4 2 4 5 1 6 8 1 2 3 4 5 6 7 8 4 1 2 3 4 4 1 2 3 4 2 1 3"

// TestManyVariables: beyond some hundred there is a list, which is searched, and asked.
func TestManyVariables(t *testing.T) {
	b := startBrowser(t)
	s := serve(t, false)
	s.work()
	var put gateway.Model
	const n = 500
	text := fmt.Sprintf("MARKOV %d%s %d", n, strings.Repeat(" 2", n), n-1)
	for i := range n - 1 {
		text += fmt.Sprintf(" 2 %d %d", i, i+1)
	}
	s.ask(201, "POST", "/v1/models", text+strings.Repeat(" 4 2 1 1 2", n-1), &put)
	p := b.tab(t, s.url)
	p.look("graph-many", "#/graph/model/"+put.Digest,
		`document.querySelectorAll('.pickable').length === 40 && !document.querySelector('.graph')`)
	p.click("#variable-search")
	p.write("x_444")
	p.wait(`document.querySelectorAll('.pickable').length === 1`)
	p.click("#pick-444")
	p.click("#value-444-1")
	p.wait(`document.querySelector('.pickable.seen .posterior') && document.querySelector('.headline')`)
	rows := eval[[]string](p, `[...document.querySelectorAll('.posterior tr')].map(r => r.textContent)`)
	if len(rows) != 2 || rows[1] != "11.000000" {
		t.Errorf("what was observed is %q", rows)
	}
}
