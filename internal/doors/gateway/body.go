package gateway

// Request bodies, bounded in bytes and in time.

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"hash"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
)

// step is the number of bytes of Limits.Bodies that a body reserves at a time.
const step = 64 << 10

// readBody reads the body, decompressed, and checks its digest if the client sent one. Its bytes, and free room in the buffer, count among
// Limits.Bodies until releaseBytes.
func (c *call) readBody() ([]byte, error) {
	l := c.gateway.limits
	if c.request.ContentLength > l.Body {
		return nil, tooLarge(l.Body)
	}
	if err := c.checkFraming(); err != nil {
		return nil, err
	}
	raw := &pacedReader{call: c, source: http.MaxBytesReader(c.response, c.request.Body, l.Body), began: time.Now(), sum: sha256.New()}
	decompressed, err := c.decompress(raw)
	if err != nil {
		return nil, err
	}
	body := []byte{}
	for {
		// grow the buffer, and reserve what it takes more
		if len(body) == cap(body) {
			size := min(2*int64(len(body))+step, l.Body+1) // one byte more than allowed shows that a body is too large
			if err := c.reserveBytes(size - int64(cap(body))); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, size), body...)
		}

		n, err := decompressed.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > l.Body:
			return nil, tooLarge(l.Body)
		case err == io.EOF:
			_ = http.NewResponseController(c.response).SetReadDeadline(time.Time{}) // what follows is no longer the body
			return body, c.checkDigest(raw.sum.Sum(nil))
		case err != nil:
			return nil, c.bodyError(err)
		}
	}
}

// decompress returns a reader of the body without its content encoding.
func (c *call) decompress(in io.Reader) (io.Reader, error) {
	switch encoding := c.request.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
		return in, nil
	case "gzip":
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return nil, c.bodyError(err)
		}
		return unzipped, nil
	default:
		return nil, refuse(http.StatusUnsupportedMediaType, fault.BadInput, "content encoding %.40q: gzip or none is taken", encoding)
	}
}

// pacedReader reads a body that has to come at Limits.Slowest, after slowStart, and within Limits.Transfer.
type pacedReader struct {
	call   *call
	source io.Reader // the body
	began  time.Time
	bytes  int64     // that were read
	sum    hash.Hash // of the bytes as they came
}

// Read reads from the body. It fails if the next bytes do not come in time: the body has slowStart, and a second for
// every Limits.Slowest bytes that came, but no more than Limits.Transfer.
func (p *pacedReader) Read(b []byte) (int, error) {
	l := p.call.gateway.limits
	allowed := slowStart + time.Duration(float64(p.bytes)/float64(l.Slowest)*float64(time.Second))
	p.call.setReadDeadline(min(allowed, l.Transfer) - time.Since(p.began))
	n, err := p.source.Read(b)
	p.bytes += int64(n)
	p.sum.Write(b[:n])
	return n, err
}

// contentDigest is the header with the SHA-256 of a body as it travels (RFC 9530): sha-256=:BASE64:
const contentDigest = "Content-Digest"

// contentDigestOf returns the value of the header for a SHA-256.
func contentDigestOf(sum []byte) string {
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum) + ":"
}

// checkDigest returns an error if the SHA-256 of a body is not that of the request's Content-Digest. A request without
// one passes.
func (c *call) checkDigest(sum []byte) error {
	for digest := range strings.SplitSeq(c.request.Header.Get(contentDigest), ",") {
		if digest = strings.TrimSpace(digest); strings.HasPrefix(digest, "sha-256=") && digest != contentDigestOf(sum) {
			return &refusal{http.StatusServiceUnavailable, fault.New(
				fault.Damaged, "the body has not the %s that the request says: it was damaged on its way, send it again", contentDigest), retryAfter}
		}
	}
	return nil
}

// bodyError returns the answer to a request whose body could not be read.
func (c *call) bodyError(err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge(large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, fault.Deadline,
			"the body did not come: it may take %s, and after %s it has to bring %d bytes a second",
			c.gateway.limits.Transfer, slowStart, c.gateway.limits.Slowest)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return badRequest("body: it ends in the middle")
	}
	return badRequest("body: %w", err)
}

// tooLarge returns the error for a body of more than limit bytes.
func tooLarge(limit int64) error {
	return refuse(http.StatusRequestEntityTooLarge, fault.OverBudget, "the body has more than %d bytes", limit)
}

// reserveBytes reserves bytes of Limits.Bodies for this request.
func (c *call) reserveBytes(n int64) error {
	err := c.takeShare(&c.gateway.bodies, n, "bytes of bodies")
	if err == nil {
		c.heldBytes += n
	}
	return err
}

// releaseBytes gives back what reserveBytes reserved.
func (c *call) releaseBytes() {
	c.gateway.bodies.Release(c.callerName(), c.heldBytes)
	c.heldBytes = 0
}
