package gateway

// What comes in: bounded in bytes and in time.

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
)

// step is how many bytes of Limits.Bodies a body takes at a time.
const step = 64 << 10

// body reads the body, decompressed. Its bytes count among Limits.Bodies until release.
func (c *call) body() ([]byte, error) {
	l := c.g.limits
	if c.r.ContentLength > l.Body {
		return nil, tooLarge(l.Body)
	}
	in, err := c.decompressed(&paced{c: c, in: http.MaxBytesReader(c.w, c.r.Body, l.Body), began: time.Now()})
	if err != nil {
		return nil, err
	}
	all := []byte{}
	for {
		if len(all) == cap(all) {
			grown := min(2*int64(len(all))+step, l.Body+1)
			if err := c.hold(grown - int64(cap(all))); err != nil {
				return nil, err
			}
			all = append(make([]byte, 0, grown), all...)
		}
		n, err := in.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		switch {
		case int64(len(all)) > l.Body:
			return nil, tooLarge(l.Body)
		case err == io.EOF:
			_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{}) // what follows is no longer the body
			return all, nil
		case err != nil:
			return nil, c.unread(err)
		}
	}
}

// decompressed is what a body holds.
func (c *call) decompressed(in io.Reader) (io.Reader, error) {
	switch encoding := c.r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
		return in, nil
	case "gzip":
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return nil, c.unread(err)
		}
		return unzipped, nil
	default:
		return nil, refuse(http.StatusUnsupportedMediaType, fault.BadInput, "content encoding %.40q: gzip or none is taken", encoding)
	}
}

// paced is a body as it comes, no slower than Limits.Slowest and within Limits.Transfer.
type paced struct {
	c     *call
	in    io.Reader
	began time.Time
	bytes int64
}

func (p *paced) Read(b []byte) (int, error) {
	l := p.c.g.limits
	enough := slowStart + time.Duration(float64(p.bytes)/float64(l.Slowest)*float64(time.Second))
	p.c.hurry(min(enough, l.Transfer) - time.Since(p.began))
	n, err := p.in.Read(b)
	p.bytes += int64(n)
	return n, err
}

// unread is why a body could not be read.
func (c *call) unread(err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge(large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, fault.Deadline,
			"the body did not come: it may take %s, and after %s it has to bring %d bytes a second",
			c.g.limits.Transfer, slowStart, c.g.limits.Slowest)
	}
	return bad("body: %w", err)
}

func tooLarge(most int64) error {
	return refuse(http.StatusRequestEntityTooLarge, fault.OverBudget, "the body has more than %d bytes", most)
}

// hold takes bytes of Limits.Bodies.
func (c *call) hold(n int64) error {
	err := c.share(&c.g.bodies, n, "bytes of bodies")
	if err == nil {
		c.held += n
	}
	return err
}

// release gives back what hold took.
func (c *call) release() {
	c.g.bodies.give(c.asker(), c.held)
	c.held = 0
}

// decode reads a body that is one JSON value into v. Fields that v has not got are errors.
func (c *call) decode(v any) error {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, fault.BadInput, "the content type has to be application/json, not %.80q",
			c.r.Header.Get("Content-Type"))
	}
	return strict(c.text, v)
}

// strict reads one JSON value. Errors say where.
func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, err := d.Token(); err != io.EOF {
			return bad("body: something follows the end of the JSON value, at byte %d", d.InputOffset())
		}
		return nil
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return bad("body: line %d: %w", line(b, syntax.Offset), err)
	case errors.As(err, &kind):
		return bad("body: line %d: field %s: %s, where %s is needed", line(b, kind.Offset), kind.Field, kind.Value, wanted(kind.Type))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return bad("body: line %d: it ends in the middle", line(b, int64(len(b))))
	}
	return bad("body: %w", err)
}

// line is the line of a byte in a text, from 1.
func line(b []byte, at int64) int {
	return 1 + bytes.Count(b[:min(max(at, 0), int64(len(b)))], []byte("\n"))
}

// wanted is a type in a sentence.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.String:
		return "a string"
	case reflect.Float64:
		return "a number"
	}
	return "an integer in range"
}
