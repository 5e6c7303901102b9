// Package redact takes passwords out of the output of a process: URLs of servers, and errors and
// log lines that quote them.
package redact

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// hidden stands in the place of user, password or token.
const hidden = "xxxxx"

var (
	// userinfo reaches to the last @ before a space or a quote: a password may have an @ that should have been escaped. A token is a
	// user without a password, so the user is hidden too.
	userinfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s"'<>]*@`)
	// parameter is a secret in a URL's query.
	parameter = regexp.MustCompile(`(?i)([?&][^=&\s"']*(?:pass|token|secret)[^=&\s"']*=)[^&\s"']*`)
)

// Text returns a text without the users, passwords and tokens of its URLs.
func Text(s string) string {
	if strings.Contains(s, "://") {
		s = userinfo.ReplaceAllString(s, "${1}"+hidden+"@")
	}
	if strings.ContainsAny(s, "?&") {
		s = parameter.ReplaceAllString(s, "${1}"+hidden)
	}
	return s
}

// URL returns the URL of a server, or a list of them, without users, passwords and tokens. The scheme may be missing.
func URL(s string) string {
	parts := strings.Split(s, ",")
	for _, part := range parts {
		if !readable(part) { // a comma in a password, perhaps
			parts = []string{s}
			break
		}
	}
	for i, part := range parts {
		if at := strings.LastIndexByte(part, '@'); at >= 0 {
			scheme, _, found := strings.Cut(part, "://")
			if scheme += "://"; !found || len(scheme) > at {
				scheme = ""
			}
			part = scheme + hidden + part[at:]
		}
		parts[i] = Text(part)
	}
	return strings.Join(parts, ",")
}

// ErrURL: a URL with a user or a password cannot be read. The reason is not given: it would quote the URL.
var ErrURL = errors.New("this is no URL (a password's special characters are written %40, %2F and so on)")

// redacted is an error with another text.
type redacted struct {
	error
	text string
}

func (e *redacted) Error() string { return e.text }
func (e *redacted) Unwrap() error { return e.error }

// Error returns err with a text that tells no user, password or token, neither in a URL nor of those URLs with which the call that
// failed was made. Errors that tell none are returned as they are.
func Error(err error, urls ...string) error {
	if err == nil {
		return nil
	}
	text := Text(err.Error())
	for _, list := range urls {
		if !strings.Contains(list, "@") {
			continue
		}
		for _, part := range strings.Split(list, ",") {
			if !readable(part) {
				return ErrURL
			}
			for _, secret := range secrets(part) {
				text = strings.ReplaceAll(text, secret, hidden)
			}
		}
	}
	if text == err.Error() {
		return err
	}
	return &redacted{err, text}
}

func readable(one string) bool {
	_, err := parse(one)
	return err == nil
}

func parse(one string) (*url.URL, error) {
	one = strings.TrimSpace(one)
	if !strings.Contains(one, "://") {
		one = "nats://" + one
	}
	return url.Parse(one)
}

// secrets are the password of a URL, or its user where there is none, as written and as meant.
func secrets(one string) (found []string) {
	u, err := parse(one)
	if err != nil || u.User == nil {
		return nil
	}
	written := u.User.String()
	if password, has := u.User.Password(); has {
		_, written, _ = strings.Cut(written, ":")
		found = append(found, password)
	} else {
		found = append(found, u.User.Username())
	}
	found = append(found, written)
	kept := found[:0]
	for _, s := range found {
		if len(s) >= 3 { // shorter ones are in half the words of a sentence
			kept = append(kept, s)
		}
	}
	return kept
}
