package message

import (
	"sort"
)

// Carrier is an OpenTelemetry TextMapCarrier over headers. Names keep their case: the W3C names are lower case, which
// propagation.HeaderCarrier would turn into Traceparent and then not find.
type Carrier map[string][]string

// Get returns the first value under key, or the empty string.
func (c Carrier) Get(key string) string {
	if v := c[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Set replaces the values under key.
func (c Carrier) Set(key, value string) { c[key] = []string{value} }

// Keys returns the names of all headers, sorted.
func (c Carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for k := range c {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
