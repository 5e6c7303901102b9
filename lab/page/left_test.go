package page

import (
	"fmt"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/gateway"
)

// held makes requests whose address has a text wait until release is called in the page.
const held = `(() => {
	const before = window.fetch
	window.fetch = async (path, options) => {
		if (path.includes($1)) await new Promise(go => { window.release = go })
		return before(path, options)
	}
	return true
})()`

// TestMessagesEndWithTheirModel: what was said of one model is not there any more once another one is opened, also while that is coming.
func TestMessagesEndWithTheirModel(t *testing.T) {
	_, s, _, hash, p := openGraph(t)
	var other gateway.Model
	s.ask(201, "POST", "/v1/models", grid(2), &other)
	to := func(hash string) {
		t.Helper()
		eval[bool](p, `(location.hash = $1) !== ''`, hash)
		p.wait(`document.querySelector('main').dataset.ready === $1`, hash)
	}

	// the refusal of a file
	p.allow("status of 400")
	p.drop("letter.txt", []byte("Dear reader"))
	p.wait(`document.getElementById('toast').checkVisibility({ visibilityProperty: true })
		&& document.getElementById('toast').textContent.startsWith('letter.txt: ')`)
	to("#/graph/model/" + other.Digest)
	if said := eval[string](p, `document.getElementById('toast').textContent`); said != "" {
		t.Errorf("another model is there, and the page says %q", said)
	}

	// an error of the view, and what screen readers are told, while another model is long in coming
	to(hash + "?evidence=lungs=yes")
	p.wait(`document.querySelector('.state-of-it .error')`)
	eval[bool](p, held, other.Digest)
	eval[bool](p, `(location.hash = $1) !== ''`, "#/graph/model/"+other.Digest)
	p.wait(`window.release`)
	if said := eval[string](p, `document.querySelector('main').innerText`); said != "loading…" {
		t.Errorf("another model is coming, and the page says %q", said)
	}
	p.wait(`window.release() === undefined && document.querySelector('main').dataset.ready === location.hash
		&& !document.querySelector('.error') && !document.getElementById('status').textContent.includes('lungs')`)

	// the refusal of a file that comes after another one was opened
	eval[bool](p, held, "v1/infer")
	p.drop("letter.txt", []byte("Dear reader"))
	p.wait(`window.release`)
	eval[bool](p, `(window.late = window.release, window.release = null, true)`)
	p.drop("asia.json", s.file("asia.json"))
	p.wait(`window.release`)
	eval[bool](p, `(window.late(), window.release(), true)`)
	p.wait(`/^#\/graph\/job\/asia-/.test(location.hash) && document.querySelector('main').dataset.ready === location.hash`)
	p.wait(`document.getElementById('toast').textContent === ''`)
}

// TestEvidenceEndsWithItsModel: soft evidence on the variables of a model is not asked of another one that is chosen in the form.
func TestEvidenceEndsWithItsModel(t *testing.T) {
	_, s, _, hash, p := openGraph(t)
	var other gateway.Model
	s.ask(201, "POST", "/v1/models", grid(2), &other)
	p.open("#/ask" + hash[len("#/graph"):] + "?likelihood=smoke=0.25,1")
	soft := `[...document.querySelectorAll('.ask .hint')]
		.some(e => e.checkVisibility() && e.textContent === 'and soft evidence on smoke')`
	p.wait(soft)
	eval[bool](p, `(() => { const e = document.getElementById('ask-model')
		e.value = $1
		return e.dispatchEvent(new Event('change')) })()`, other.Digest)
	p.wait(`document.querySelector('#variables option')?.value === 'x_0' && !` + soft)
	p.click("#ask-job")
	p.write("of-the-other")
	p.click("#ask-go")
	p.wait(`location.hash === '#/jobs/of-the-other' && document.querySelectorAll('.posterior').length === 4`)
	var job gateway.JobModel
	s.ask(200, "GET", "/v1/jobs/of-the-other/model", nil, &job)
	if q := job.Queries[0]; len(q.Soft)+len(q.Hard) != 0 {
		t.Errorf("asked under %s", fmt.Sprint(q.Hard, q.Soft))
	}
}
