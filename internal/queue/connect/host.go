package connect

import (
	"net"
	"strings"
)

// OwnHost reports whether only this machine can reach a listener on a host: localhost, or a loopback address.
func OwnHost(host string) bool {
	if ip := net.ParseIP(strings.Trim(host, "[]")); ip != nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}
