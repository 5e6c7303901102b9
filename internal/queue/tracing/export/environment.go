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

// settings say where spans go.
type settings struct {
	url     string
	headers map[string]string
	gzip    bool
	timeout time.Duration
	tls     *tls.Config // nil: the system's certificates
}

// setting returns the value of OTEL_EXPORTER_OTLP_TRACES_ and a name, or of OTEL_EXPORTER_OTLP_ and
// the name, with the name of the variable that has it; empty for neither.
func setting(name string) (value, variable string) {
	for _, prefix := range []string{"OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"} {
		if value := strings.TrimSpace(os.Getenv(prefix + name)); value != "" {
			return value, prefix + name
		}
	}
	return "", ""
}

// environment reads the settings. An error names the variable and not its value, which may be secret.
func environment() (settings, error) {
	s := settings{timeout: 10 * time.Second}
	var err error
	if s.url, err = endpoint(); err != nil {
		return s, err
	}
	compression, _ := setting("COMPRESSION")
	s.gzip = compression == "gzip"
	if value, variable := setting("TIMEOUT"); value != "" {
		ms, err := strconv.Atoi(value)
		if err != nil {
			return s, fmt.Errorf("%s is no number of milliseconds", variable)
		}
		s.timeout = time.Duration(ms) * time.Millisecond
	}
	if value, variable := setting("HEADERS"); value != "" {
		if s.headers, err = headers(value); err != nil {
			return s, fmt.Errorf("%s: %w", variable, err)
		}
	}
	if s.tls, err = certificates(); err != nil {
		return s, err
	}
	if s.tls != nil && !strings.HasPrefix(s.url, "https:") {
		return s, errors.New("certificates are for an endpoint with https only")
	}
	return s, nil
}

// endpoint returns the URL of the receiver: that of OTEL_EXPORTER_OTLP_TRACES_ENDPOINT as it is, that
// of OTEL_EXPORTER_OTLP_ENDPOINT with /v1/traces.
func endpoint() (string, error) {
	u := &url.URL{Scheme: "https", Host: "localhost:4318", Path: "/v1/traces"}
	if value, variable := setting("ENDPOINT"); value != "" {
		given, err := url.Parse(value)
		if err != nil || given.Host == "" {
			return "", fmt.Errorf("%s is no URL", variable)
		}
		u.Host, u.Path = given.Host, "/"+strings.TrimPrefix(given.Path, "/")
		if !strings.Contains(variable, "TRACES") {
			u.Path = path.Join("/", given.Path, "v1/traces")
		}
		if strings.EqualFold(given.Scheme, "http") {
			u.Scheme = "http"
		}
	}
	if value, _ := setting("INSECURE"); value != "" {
		u.Scheme = "https"
		if strings.EqualFold(value, "true") {
			u.Scheme = "http"
		}
	}
	return u.String(), nil
}

// headers reads NAME=VALUE,…, where values may have percent escapes.
func headers(list string) (map[string]string, error) {
	read := map[string]string{}
	for i, one := range strings.Split(list, ",") {
		name, value, found := strings.Cut(one, "=")
		value, err := url.PathUnescape(value)
		if name = strings.TrimSpace(name); !found || name == "" || err != nil {
			return nil, fmt.Errorf("header %d is not NAME=VALUE", i+1)
		}
		read[name] = strings.TrimSpace(value)
	}
	return read, nil
}

// certificates returns the authorities that a receiver is held against, and the certificate of this
// process; nil where the environment names neither.
func certificates() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file, variable := setting("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no certificate in %s", variable, file)
		}
	}
	file, variable := setting("CLIENT_CERTIFICATE")
	key, _ := setting("CLIENT_KEY")
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
