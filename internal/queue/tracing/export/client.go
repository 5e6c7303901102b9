package export

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Times of sending. If the receiver is busy, spans are sent again, after pauses that grow from initialPause to
// longestPause, for at most retryFor in all.
const (
	initialPause = 5 * time.Second
	longestPause = 30 * time.Second
	retryFor     = time.Minute

	maxResponse = 4 << 20 // bytes of an answer
)

// client sends spans by HTTP, in the format OTLP. The library's client does the same and links gRPC, 66 packages.
type client struct {
	settings
	firstPause time.Duration // between the first two requests with the same spans
	http       *http.Client
	stop       chan struct{}
	stopped    sync.Once
}

// newClient returns a client with the settings of the environment.
func newClient() (*client, error) {
	s, err := readEnvironment()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = s.tls
	return &client{
		settings:   s,
		firstPause: initialPause,
		http:       &http.Client{Transport: transport, Timeout: s.timeout},
		stop:       make(chan struct{}),
	}, nil
}

// Start does nothing: connections are made when they are needed.
func (*client) Start(context.Context) error { return nil }

// Stop cancels requests under way.
func (c *client) Stop(context.Context) error {
	c.stopped.Do(func() { close(c.stop) })
	return nil
}

// UploadTraces sends spans. If the receiver is busy, it sends them again until retryFor has passed, after pauses that
// grow by half each and are random within a factor of 0.5 to 1.5. It waits longer if the receiver asks for that.
func (c *client) UploadTraces(ctx context.Context, spans []*otlp.ResourceSpans) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends the requests when Stop is called
		select {
		case <-c.stop:
			cancel()
		case <-ctx.Done():
		}
	}()

	body, err := c.encode(spans)
	if err != nil {
		return err
	}
	began := time.Now()
	for pause := c.firstPause; ; pause = min(pause*3/2, longestPause) {
		isBusy, minPause, err := c.post(ctx, body) // minPause: what the receiver asks for, or 0
		if err == nil || !isBusy {
			return err
		}
		wait := max(minPause, time.Duration((0.5+rand.Float64())*float64(pause)))
		if time.Since(began)+wait > retryFor {
			return fmt.Errorf("given up after %v: %w", time.Since(began), err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}

// encode returns the body of a request with spans, compressed if the settings say so. The request is an
// ExportTraceServiceRequest. Its package would link gRPC into the program, so TracesData is encoded, which has the same
// bytes.
func (c *client) encode(spans []*otlp.ResourceSpans) ([]byte, error) {
	body, err := proto.Marshal(&otlp.TracesData{ResourceSpans: spans})
	if err != nil || !c.gzip {
		return body, err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// post sends one request. isBusy says that the receiver may take the spans later. minPause is the pause that the
// receiver asks for before that, 0 if it names none.
func (c *client) post(ctx context.Context, body []byte) (isBusy bool, minPause time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	for name, value := range c.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	if c.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}

	resp, err := c.http.Do(r)
	if err != nil {
		var failed *url.Error
		return errors.As(err, &failed) && failed.Temporary(), 0, err
	}
	defer resp.Body.Close()
	responseBody, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return false, 0, err
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		isBusy = true
	}
	if resp.StatusCode/100 != 2 {
		return isBusy, retryAfter(resp.Header.Get("Retry-After")),
			fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(responseBody)))
	}
	if resp.Header.Get("Content-Type") == "application/x-protobuf" {
		return false, 0, rejectionError(responseBody)
	}
	return false, 0, nil
}

// retryAfter returns the pause that a Retry-After header asks for: its value is seconds, or a date. A value that is
// neither means 0.
func retryAfter(value string) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil {
		return min(max(time.Duration(seconds), 0), 24*3600) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return time.Until(date)
	}
	return 0
}

// rejectionError returns an error if a response, an encoded ExportTraceServiceResponse, says that spans were rejected.
// In its field 1, field 1 is their number and field 2 a reason.
func rejectionError(response []byte) error {
	partialSuccess, _, err := lastField(response, 1)
	_, spans, err1 := lastField(partialSuccess, 1)
	reason, _, err2 := lastField(partialSuccess, 2)
	if err := errors.Join(err, err1, err2); err != nil {
		return err
	}
	if spans != 0 || len(reason) > 0 {
		return fmt.Errorf("%d spans were rejected: %s", spans, reason)
	}
	return nil
}

// lastField returns the last field with a number in an encoded protobuf message: its bytes, or its integer. Both are
// zero if there is no such field.
func lastField(message []byte, number protowire.Number) (value []byte, integer uint64, err error) {
	for len(message) > 0 {
		fieldNumber, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, 0, protowire.ParseError(n)
		}
		message = message[n:]
		n = protowire.ConsumeFieldValue(fieldNumber, kind, message)
		switch {
		case n < 0:
			return nil, 0, protowire.ParseError(n)
		case fieldNumber == number && kind == protowire.BytesType:
			value, _ = protowire.ConsumeBytes(message)
		case fieldNumber == number && kind == protowire.VarintType:
			integer, _ = protowire.ConsumeVarint(message)
		}
		message = message[n:]
	}
	return value, integer, nil
}
