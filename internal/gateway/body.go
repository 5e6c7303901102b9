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

// body returns the bytes of the body, decompressed. They count among Limits.Bodies until release.
func (c *call) body() ([]byte, error) {
	l := c.g.limits
	if c.r.ContentLength > l.Body {
		return nil, tooLarge(l.Body)
	}
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(l.Transfer)) // a recorder has none
	in := io.Reader(http.MaxBytesReader(c.w, c.r.Body, l.Body))
	switch encoding := c.r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return nil, c.unread(err)
		}
		in = unzipped
	default:
		return nil, refuse(http.StatusUnsupportedMediaType, fault.BadInput, "content encoding %.40q: gzip or none is taken", encoding)
	}

	var all []byte
	for {
		if len(all) == cap(all) {
			// what append grows to is at most twice that, and a step
			if err := c.hold(int64(len(all)) + step); err != nil {
				return nil, err
			}
			grown := make([]byte, len(all), 2*len(all)+step)
			copy(grown, all)
			all = grown
		}
		n, err := in.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		switch {
		case int64(len(all)) > l.Body:
			return nil, tooLarge(l.Body)
		case err == io.EOF:
			return all, nil
		case err != nil:
			return nil, c.unread(err)
		}
	}
}

// unread is why a body could not be read.
func (c *call) unread(err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge(large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, fault.Deadline, "the body did not come within %s", c.g.limits.Transfer)
	}
	return bad("body: %w", err)
}

func tooLarge(most int64) error {
	return refuse(http.StatusRequestEntityTooLarge, fault.OverBudget, "the body has more than %d bytes", most)
}

// hold takes bytes of Limits.Bodies.
func (c *call) hold(n int64) error {
	if !c.g.bodies.TryAcquire(n) {
		return busy("requests under way have %d bytes already", c.g.limits.Bodies)
	}
	c.held += n
	return nil
}

// release gives back what the body took.
func (c *call) release() {
	c.g.bodies.Release(c.held)
	c.held = 0
}

// decode reads a body that is one JSON value into v. Fields that v has not got are errors.
func (c *call) decode(v any) error {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, fault.BadInput, "the content type has to be application/json, not %.80q",
			c.r.Header.Get("Content-Type"))
	}
	b, err := c.body()
	if err != nil {
		return err
	}
	return strict(b, v)
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
