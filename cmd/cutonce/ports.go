package main

import "net"

// The default addresses of a development instance, and of production where they fit. All are loopback.
const (
	defaultListen        = "127.0.0.1:8780" // console, /mcp, /v1
	defaultMetricsListen = "127.0.0.1:8781"
	defaultPostgresPort  = 8784
	defaultAdsListen     = "127.0.0.1:8790"
	defaultDeploysListen = "127.0.0.1:8791"
)

// loopbackOf is the address by which this machine reaches a listener of its own.
func loopbackOf(at net.Addr) string {
	host, port, err := net.SplitHostPort(at.String())
	if ip := net.ParseIP(host); err != nil || ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
