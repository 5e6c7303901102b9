package connect

import (
	"net"
	"strings"
)

// OwnHost reports whether only this machine reaches what listens on a host: localhost, or an address of the loopback.
func OwnHost(host string) bool {
	if ip := net.ParseIP(strings.Trim(host, "[]")); ip != nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}
