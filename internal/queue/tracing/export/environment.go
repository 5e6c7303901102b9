package export

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// settings say where and how spans are sent.
type settings struct {
	url     string
	headers map[string]string
	gzip    bool
	timeout time.Duration
	tls     *tls.Config // nil: the system's certificates
}

// lookupSetting returns the value of the environment variable OTEL_EXPORTER_OTLP_TRACES_name, or else of
// OTEL_EXPORTER_OTLP_name, and the full name of the variable that is set. Both are "" if neither is set.
func lookupSetting(name string) (value, variable string) {
	for _, prefix := range []string{"OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"} {
		if value := strings.TrimSpace(os.Getenv(prefix + name)); value != "" {
			return value, prefix + name
		}
	}
	return "", ""
}

// readEnvironment returns the settings in the environment. An error names the variable but not its value, which may be
// secret.
func readEnvironment() (settings, error) {
	s := settings{timeout: 10 * time.Second}
	var err error
	if s.url, err = receiverURL(); err != nil {
		return s, err
	}
	compression, _ := lookupSetting("COMPRESSION")
	s.gzip = compression == "gzip"
	if value, variable := lookupSetting("TIMEOUT"); value != "" {
		ms, err := strconv.Atoi(value)
		if err != nil {
			return s, fmt.Errorf("%s is no number of milliseconds", variable)
		}
		s.timeout = time.Duration(ms) * time.Millisecond
	}
	if value, variable := lookupSetting("HEADERS"); value != "" {
		if s.headers, err = parseHeaders(value); err != nil {
			return s, fmt.Errorf("%s: %w", variable, err)
		}
	}
	if s.tls, err = tlsConfig(); err != nil {
		return s, err
	}
	if s.tls != nil && !strings.HasPrefix(s.url, "https:") {
		return s, errors.New("certificates are for an endpoint with https only")
	}
	return s, nil
}

// receiverURL returns the URL to which spans are sent. The variable for traces has the whole URL. The variable for all
// kinds of data has a URL to which /v1/traces is added.
func receiverURL() (string, error) {
	u := &url.URL{Scheme: "https", Host: "localhost:4318", Path: "/v1/traces"}
	if value, variable := lookupSetting("ENDPOINT"); value != "" {
		givenURL, err := url.Parse(value)
		if err != nil || givenURL.Host == "" {
			return "", fmt.Errorf("%s is no URL", variable)
		}
		u.Host, u.Path = givenURL.Host, "/"+strings.TrimPrefix(givenURL.Path, "/")
		if !strings.Contains(variable, "TRACES") {
			u.Path = path.Join("/", givenURL.Path, "v1/traces")
		}
		if strings.EqualFold(givenURL.Scheme, "http") {
			u.Scheme = "http"
		}
	}
	if value, _ := lookupSetting("INSECURE"); value != "" {
		u.Scheme = "https"
		if strings.EqualFold(value, "true") {
			u.Scheme = "http"
		}
	}
	return u.String(), nil
}

// parseHeaders parses NAME=VALUE,NAME=VALUE,…, where values may have percent escapes.
func parseHeaders(list string) (map[string]string, error) {
	parsed := map[string]string{}
	for i, pair := range strings.Split(list, ",") {
		name, value, hasEquals := strings.Cut(pair, "=")
		value, err := url.PathUnescape(value)
		if name = strings.TrimSpace(name); !hasEquals || name == "" || err != nil {
			return nil, fmt.Errorf("header %d is not NAME=VALUE", i+1)
		}
		parsed[name] = strings.TrimSpace(value)
	}
	return parsed, nil
}

// tlsConfig returns the TLS configuration with the authorities that certify the receiver, and the certificate of this
// process, from the files that the environment names. It is nil if the environment names neither.
func tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file, variable := lookupSetting("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no certificate in %s", variable, file)
		}
	}
	file, variable := lookupSetting("CLIENT_CERTIFICATE")
	key, _ := lookupSetting("CLIENT_KEY")
	if file != "" && key != "" {
		pair, err := tls.LoadX509KeyPair(file, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if config.RootCAs == nil && config.Certificates == nil {
		return nil, nil
	}
	return config, nil
}
