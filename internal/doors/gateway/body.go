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

// body reads the body, decompressed. Its bytes count among Limits.Bodies until release.
func (c *call) body() ([]byte, error) {
	l := c.g.limits
	if c.r.ContentLength > l.Body {
		return nil, tooLarge(l.Body)
	}
	if err := c.framed(); err != nil {
		return nil, err
	}
	raw := &paced{c: c, in: http.MaxBytesReader(c.w, c.r.Body, l.Body), began: time.Now(), sum: sha256.New()}
	in, err := c.decompressed(raw)
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
			return all, c.undamaged(raw.sum.Sum(nil))
		case err != nil:
			return nil, c.unread(err)
		}
	}
}

// decompressed returns a reader of the body without its content encoding.
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

// paced reads a body that has to come at Limits.Slowest, after slowStart, and within Limits.Transfer.
type paced struct {
	c     *call
	in    io.Reader
	began time.Time
	bytes int64
	sum   hash.Hash // of the bytes as they came
}

func (p *paced) Read(b []byte) (int, error) {
	l := p.c.g.limits
	enough := slowStart + time.Duration(float64(p.bytes)/float64(l.Slowest)*float64(time.Second))
	p.c.hurry(min(enough, l.Transfer) - time.Since(p.began))
	n, err := p.in.Read(b)
	p.bytes += int64(n)
	p.sum.Write(b[:n])
	return n, err
}

// contentDigest is the header with the SHA-256 of a body as it travels (RFC 9530): sha-256=:BASE64:
const contentDigest = "Content-Digest"

// contentDigestOf is the header's value for a SHA-256.
func contentDigestOf(sum []byte) string {
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum) + ":"
}

// undamaged compares the SHA-256 of a body with the request's Content-Digest, if it has one of this algorithm.
func (c *call) undamaged(sum []byte) error {
	for said := range strings.SplitSeq(c.r.Header.Get(contentDigest), ",") {
		if said = strings.TrimSpace(said); strings.HasPrefix(said, "sha-256=") && said != contentDigestOf(sum) {
			return &refusal{http.StatusServiceUnavailable, fault.New(
				fault.Damaged, "the body has not the %s that the request says: it was damaged on its way, send it again", contentDigest), retryAfter}
		}
	}
	return nil
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
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return bad("body: it ends in the middle")
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

// release returns the bytes taken by hold.
func (c *call) release() {
	c.g.bodies.Give(c.asker(), c.held)
	c.held = 0
}
