package store_test

import (
	"testing"

	"github.com/cutonce/cutonce/internal/wire"
)

// proxy stands between the service and Postgres and cuts connections at the worst moments.
type proxy struct{ *wire.Proxy }

type cut = wire.Cut

const (
	beforeTheServer = wire.BeforeTheServer
	whileItWorks    = wire.WhileItWorks
	afterItIsDone   = wire.AfterItIsDone
	andThenAll      = wire.AndThenAll
)

func newProxy(t testing.TB, database string) (proxy, string) {
	t.Helper()
	p, through, err := wire.Through(database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return proxy{p}, through
}

func (p proxy) arm(marker string, c wire.Cut) (fired chan struct{}) { return p.Arm(marker, c) }

func (p proxy) armUntil(marker string, now chan struct{}) (fired chan struct{}) {
	return p.ArmUntil(marker, now)
}

func (p proxy) fall() { p.Fall() }

func (p proxy) rise() { p.Rise() }
