// Package redact takes passwords out of the output of a process: URLs of servers, and errors and
// log lines that quote them.
package redact

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// mask stands in the place of a user, password or token.
const mask = "xxxxx"

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
		s = userinfo.ReplaceAllString(s, "${1}"+mask+"@")
	}
	if strings.ContainsAny(s, "?&") {
		s = parameter.ReplaceAllString(s, "${1}"+mask)
	}
	return s
}

// URL returns the URL of a server, or a comma-separated list of URLs, with users, passwords and tokens replaced. The
// scheme may be missing.
func URL(s string) string {
	parts := strings.Split(s, ",")
	for _, part := range parts {
		if !isURL(part) { // perhaps the comma belongs to a password: treat s as one URL
			parts = []string{s}
			break
		}
	}
	for i, part := range parts {
		if at := strings.LastIndexByte(part, '@'); at >= 0 {
			// Replace everything between the scheme, if there is one, and the last @.
			scheme, _, hasScheme := strings.Cut(part, "://")
			if scheme += "://"; !hasScheme || len(scheme) > at {
				scheme = ""
			}
			part = scheme + mask + part[at:]
		}
		parts[i] = Text(part)
	}
	return strings.Join(parts, ",")
}

// ErrURL means that a URL with a user or a password cannot be parsed. It has no reason, which would quote the URL.
var ErrURL = errors.New("this is no URL (a password's special characters are written %40, %2F and so on)")

// redacted is an error with another text.
type redacted struct {
	error
	text string
}

// Error returns the text without secrets.
func (e *redacted) Error() string { return e.text }

// Unwrap returns the original error.
func (e *redacted) Unwrap() error { return e.error }

// Error returns err with a text without secrets, that is, without users, passwords and tokens. It replaces the secrets in
// the URLs of the text, and in the whole text those of the given URLs, with which the failed call was made. If there is
// nothing to replace, it returns err as it is. If one of the given URLs has a password and cannot be parsed, it returns
// ErrURL.
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
			if !isURL(part) {
				return ErrURL
			}
			for _, secret := range secretsOf(part) {
				text = strings.ReplaceAll(text, secret, mask)
			}
		}
	}
	if text == err.Error() {
		return err
	}
	return &redacted{err, text}
}

// isURL reports whether text can be parsed as a URL of a server.
func isURL(text string) bool {
	_, err := parseURL(text)
	return err == nil
}

// parseURL parses the URL of a server. If the scheme is missing, it is nats.
func parseURL(text string) (*url.URL, error) {
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "://") {
		text = "nats://" + text
	}
	return url.Parse(text)
}

// secretsOf returns the secret of a URL: the password, or the user if there is no password, because the user is a token
// then. The result has the secret twice, decoded and as written, for instance "a@b" and "a%40b". A secret of fewer than 3
// letters is left out: it would be found in half the words of a sentence.
func secretsOf(text string) (secrets []string) {
	u, err := parseURL(text)
	if err != nil || u.User == nil {
		return nil
	}
	written := u.User.String()
	if password, hasPassword := u.User.Password(); hasPassword {
		_, written, _ = strings.Cut(written, ":")
		secrets = append(secrets, password)
	} else {
		secrets = append(secrets, u.User.Username())
	}
	secrets = append(secrets, written)
	long := secrets[:0]
	for _, s := range secrets {
		if len(s) >= 3 {
			long = append(long, s)
		}
	}
	return long
}
