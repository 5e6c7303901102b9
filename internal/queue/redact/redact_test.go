package redact

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"connect to nats://ann:s3cret@host:4222 failed":  "connect to nats://xxxxx@host:4222 failed",
		"redis://:s3cret@host/0":                         "redis://xxxxx@host/0",
		`parse "nats://ann:s3c/ret@host": bad`:           `parse "nats://xxxxx@host": bad`,
		"nats://s3crettoken@host":                        "nats://xxxxx@host",
		"nats://ann:s3c@ret@host":                        "nats://xxxxx@host",
		"redis://host?client_password=s3cret&db=1":       "redis://host?client_password=xxxxx&db=1",
		"tls://a:s3cret@h1, tls://b:s3cret@h2 unreached": "tls://xxxxx@h1, tls://xxxxx@h2 unreached",
		"mail to ann@example.org about http://host":      "mail to ann@example.org about http://host",
	} {
		if got := Text(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestURL(t *testing.T) {
	for in, want := range map[string]string{
		"nats://host:4222":                        "nats://host:4222",
		"nats://ann:s3cret@host:4222":             "nats://xxxxx@host:4222",
		"ann:s3cret@host:4222":                    "xxxxx@host:4222",
		"nats://a:s3cret@h1,nats://b:s3cret@h2":   "nats://xxxxx@h1,nats://xxxxx@h2",
		"nats://ann:s3,cret@host":                 "nats://xxxxx@host",
		"nats://ann:s3://cret@host":               "nats://xxxxx@host",
		"nats://ann:%zz@host":                     "nats://xxxxx@host",
		"unix://ann:s3cret@/tmp/redis.sock?db=1":  "unix://xxxxx@/tmp/redis.sock?db=1",
		"redis://host?password=s3cret&protocol=2": "redis://host?password=xxxxx&protocol=2",
	} {
		if got := URL(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestErrorKeepsWhatItWraps(t *testing.T) {
	in := "nats://ann:s3%40cret@host"
	err := Error(fmt.Errorf("dial %s with s3@cret: %w", in, io.EOF), in)
	if !errors.Is(err, io.EOF) || strings.Contains(err.Error(), "cret") || !strings.Contains(err.Error(), "host") {
		t.Errorf("got %v", err)
	}
	for _, in := range []string{"nats://ann:s3/cret@host", "nats://ann:%zz@host", "nats://ann:s3,cret@host"} {
		_, err := url.Parse(in)
		if err == nil {
			_, err = url.Parse(strings.TrimSuffix(in, "/cret@host"))
		}
		if got := Error(err, in); got != nil && strings.ContainsAny(got.Error(), "z") {
			t.Errorf("%s: %v", in, got)
		} else if got != nil && (strings.Contains(got.Error(), "s3") || strings.Contains(got.Error(), "cret")) {
			t.Errorf("%s: %v", in, got)
		}
	}
	if err := Error(io.EOF, in); err != io.EOF {
		t.Errorf("an error without a secret is %v", err)
	}
	if Error(nil, in) != nil {
		t.Error("nil is an error")
	}
}
