// Package page tests the page of the gateway in a browser without a window.
package page

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is a running one, spoken to over a pipe by the DevTools protocol.
type browser struct {
	to *os.File

	mu      sync.Mutex
	next    int
	waiting map[int]chan reply
	tabs    map[string]*tab // by session
	broken  chan struct{}   // closed when the browser is gone
}

// reply is a message of the browser: the result of a command, or an event of a session.
type reply struct {
	ID      int             `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *struct{ Message string }
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Session string          `json:"sessionId"`
}

// findBrowser returns the program, or skips the test.
func findBrowser(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("BTN_BROWSER"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no browser: chromium is not on PATH, and BTN_BROWSER names none")
	return ""
}

// startBrowser runs one until the test ends.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	args := []string{
		"--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
		"--disable-background-networking", "--disable-dev-shm-usage", "--force-color-profile=srgb",
		"--user-data-dir=" + t.TempDir(), "about:blank",
	}
	if os.Geteuid() == 0 {
		args = append([]string{"--no-sandbox"}, args...)
	}
	c := exec.Command(findBrowser(t), args...)
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.ExtraFiles = []*os.File{theirIn, theirOut} // descriptors 3 and 4
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	b := &browser{to: in, waiting: map[int]chan reply{}, tabs: map[string]*tab{}, broken: make(chan struct{})}
	go b.read(bufio.NewReaderSize(out, 1<<20))
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		if b.call(ctx, "", "Browser.close", nil, nil) != nil {
			c.Process.Kill()
		}
		<-b.broken
		c.Wait()
		in.Close()
		out.Close()
	})
	return b
}

// read hands on the browser's messages.
func (b *browser) read(out *bufio.Reader) {
	defer close(b.broken)
	for {
		line, err := out.ReadBytes(0)
		if err != nil {
			return
		}
		var r reply
		if json.Unmarshal(line[:len(line)-1], &r) != nil {
			continue
		}
		b.mu.Lock()
		waits, of := b.waiting[r.ID], b.tabs[r.Session]
		delete(b.waiting, r.ID)
		b.mu.Unlock()
		if waits != nil {
			waits <- r
		} else if of != nil {
			of.hear(r)
		}
	}
}

// call sends a command and reads its result.
func (b *browser) call(ctx context.Context, session, method string, params, result any) error {
	b.mu.Lock()
	b.next++
	id, answer := b.next, make(chan reply, 1)
	b.waiting[id] = answer
	message, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params, "sessionId": session})
	if session == "" {
		message, err = json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	}
	if err == nil {
		_, err = b.to.Write(append(message, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case r := <-answer:
		if r.Error != nil {
			return fmt.Errorf("%s: %s", method, r.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(r.Result, result)
	case <-b.broken:
		return fmt.Errorf("%s: the browser is gone", method)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

// tab is a page in the browser. Its errors and warnings fail the test at its end.
type tab struct {
	*testing.T
	b       *browser
	session string
	url     string

	mu       sync.Mutex
	troubles []string
	allowed  []string
}

// tab opens the page of a gateway in a context of its own: without a key, and nothing stored.
func (b *browser) tab(t *testing.T, url string) *tab {
	t.Helper()
	p := &tab{T: t, b: b, url: url}
	var of struct{ BrowserContextID string }
	p.must(b.call(t.Context(), "", "Target.createBrowserContext", map[string]any{}, &of))
	var target struct{ TargetID string }
	p.must(b.call(t.Context(), "", "Target.createTarget", map[string]any{
		"url": "about:blank", "browserContextId": of.BrowserContextID,
	}, &target))
	var attached struct{ SessionID string }
	p.must(b.call(t.Context(), "", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached))
	p.session = attached.SessionID
	b.mu.Lock()
	b.tabs[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		p.do(domain+".enable", nil, nil)
	}
	p.size(1440, 900)
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		if err := b.call(ctx, "", "Target.disposeBrowserContext", map[string]any{"browserContextId": of.BrowserContextID}, nil); err != nil {
			t.Error(err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, trouble := range p.troubles {
			t.Errorf("the console says: %s", trouble)
		}
	})
	return p
}

// hear notes the console's messages.
func (p *tab) hear(r reply) {
	var trouble string
	switch r.Method {
	case "Runtime.exceptionThrown":
		trouble = string(r.Params)
	case "Runtime.consoleAPICalled":
		trouble = string(r.Params)
	case "Log.entryAdded":
		var of struct {
			Entry struct{ Level, Text, URL string }
		}
		if json.Unmarshal(r.Params, &of) == nil && of.Entry.Level != "verbose" && of.Entry.Level != "info" {
			trouble = of.Entry.Text + " " + of.Entry.URL
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, words := range p.allowed {
		if strings.Contains(trouble, words) {
			return
		}
	}
	if trouble != "" {
		p.troubles = append(p.troubles, trouble)
	}
}

// allow expects trouble with these words: the browser itself reports responses that are errors.
func (p *tab) allow(words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = append(p.allowed, words)
}

func (p *tab) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// do sends a command to the tab.
func (p *tab) do(method string, params, result any) {
	p.Helper()
	p.must(p.b.call(p.Context(), p.session, method, params, result))
}

// size sets the size of the window.
func (p *tab) size(width, height int) {
	p.Helper()
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
	}, nil)
}

// colours sets the system's preference: light or dark.
func (p *tab) colours(scheme string) {
	p.Helper()
	p.do("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme},
		map[string]any{"name": "prefers-reduced-motion", "value": "reduce"}}}, nil)
}

// eval runs JavaScript and returns its value.
func eval[T any](p *tab, script string, args ...any) (value T) {
	p.Helper()
	for i, arg := range args {
		b, err := json.Marshal(arg)
		p.must(err)
		script = strings.ReplaceAll(script, fmt.Sprintf("$%d", i+1), string(b))
	}
	var r struct {
		Result           struct{ Value T }
		ExceptionDetails json.RawMessage
	}
	p.do("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		p.Fatalf("%s: %s", script, r.ExceptionDetails)
	}
	return r.Result.Value
}

// within is how long a condition is waited for: long, for the machine may be busy.
const within = time.Minute

// wait waits until an expression is true.
func (p *tab) wait(script string, args ...any) {
	p.Helper()
	holds := "(() => { try { return !!(" + script + ") } catch { return false } })()"
	for end := time.Now().Add(within); !eval[bool](p, holds, args...); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.shot("failed")
			p.Fatalf("never true: %s %v\nthe page says: %s", script, args, eval[string](p, "document.body.innerText"))
		}
	}
}

// open shows a view and waits until it is there.
func (p *tab) open(hash string) {
	p.Helper()
	p.do("Page.navigate", map[string]any{"url": "about:blank"}, nil)
	p.do("Page.navigate", map[string]any{"url": p.url + "/" + hash}, nil)
	p.wait(`location.hash === $1 && document.querySelector('main')?.dataset.ready === $1`, hash)
}

// key presses and releases a key.
func (p *tab) key(name string) {
	p.Helper()
	codes := map[string]int{
		"Tab": 9, "Enter": 13, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Delete": 46, "Escape": 27,
	}
	code, text := codes[name], ""
	if name == "Enter" {
		text = "\r"
	}
	if len(name) == 1 {
		text = name
		if code == 0 {
			code = int(name[0])
		}
	}
	for _, kind := range []string{"keyDown", "keyUp"} {
		event := map[string]any{"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code, "nativeVirtualKeyCode": code}
		if kind == "keyDown" && text != "" {
			event["text"] = text
		}
		p.do("Input.dispatchKeyEvent", event, nil)
	}
}

// write types text where the focus is.
func (p *tab) write(text string) {
	p.Helper()
	p.do("Input.insertText", map[string]any{"text": text}, nil)
}

// click presses the mouse in the middle of an element.
func (p *tab) click(selector string) {
	p.Helper()
	p.wait(`document.querySelector($1)`, selector)
	at := eval[[]float64](p, `(() => { const e = document.querySelector($1); e.scrollIntoView({ block: 'center' });
		const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`, selector)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		p.do("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1}, nil)
	}
}

// shots is the folder of screenshots, if any are wanted.
var shots = os.Getenv("BTN_SCREENSHOTS")

// shot writes a screenshot of the whole page where they are wanted.
func (p *tab) shot(name string) {
	p.Helper()
	if shots == "" {
		return
	}
	eval[bool](p, `(window.scrollTo(0, 0), true)`) // clicks scroll
	var picture struct{ Data string }
	p.do("Page.captureScreenshot", map[string]any{"format": "png"}, &picture)
	b, err := base64.StdEncoding.DecodeString(picture.Data)
	p.must(err)
	p.must(os.MkdirAll(shots, 0o755))
	p.must(os.WriteFile(filepath.Join(shots, name+".png"), b, 0o644))
}
