package target

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// The services that are there under every seed, each in both environments.
const (
	ServiceCheckoutAPI   = "checkout-api"
	ServiceCheckoutWeb   = "checkout-web"   // easily taken for checkout-api by a reader in a hurry
	ServiceLedger        = "ledger"         // a long history
	ServiceLedgerArchive = "ledger-archive" // a look-alike of ledger
	ServiceSearch        = "search"         // its history is the seed's
	ServiceSearchIndexer = "search-indexer" // a look-alike of search; its history is the seed's
)

// The environments.
const (
	EnvStaging    = "staging"
	EnvProduction = "production"
)

// The history of [ServiceCheckoutAPI] in production. Staging has the same under [CheckoutAPIStagingOldest] and its
// neighbours, and checkout-web has it under other IDs.
const (
	CheckoutAPIOldest    = "dep-000101" // v2026.10.1
	CheckoutAPIMigration = "dep-000102" // v2026.10.2, contains a migration
	CheckoutAPIStable    = "dep-000103" // v2026.10.3
	CheckoutAPIFailed    = "dep-000104" // v2026.11.1, failed
	CheckoutAPIPrevious  = "dep-000105" // v2026.11.2
	CheckoutAPICurrent   = "dep-000106" // v2026.11.3, active

	CheckoutAPIStagingOldest   = "dep-000201" // v2026.10.1
	CheckoutAPIStagingStable   = "dep-000203" // v2026.10.3
	CheckoutAPIStagingFailed   = "dep-000204" // v2026.11.1, failed
	CheckoutAPIStagingPrevious = "dep-000205" // v2026.11.2
	CheckoutAPIStagingCurrent  = "dep-000206" // v2026.11.3, active

	CheckoutWebPrevious = "dep-000305" // v2026.11.2 of checkout-web in production
	CheckoutWebCurrent  = "dep-000306" // v2026.11.3 of checkout-web in production, active
)

// LedgerCount is how many deployments [ServiceLedger] has in each environment. The 10th, 20th … 50th contain a migration,
// and the 35th failed.
const LedgerCount = 60

// LedgerProduction is the ID of the n-th (from 1) deployment of [ServiceLedger] in production; the last is active.
func LedgerProduction(n int) string { return seededID(5, n) }

// The people that the seed knows. Everybody may read everything.
const (
	UserMori          = "mori@platform.example"    // may roll back everywhere
	UserHayashi       = "hayashi@platform.example" // may roll back everywhere
	UserOno           = "ono@platform.example"     // may roll back in staging only
	UserPlatformGuest = "guest@platform.example"   // may not roll back
)

// authors deploy; they have no permission of their own here.
var authors = []string{"abe@platform.example", "choi@platform.example", "ito@platform.example", "nguyen@platform.example"}

// plainServices have a short history without migrations or failures, and names like no other.
var plainServices = []string{"billing", "catalog", "inventory", "notifications", "recommendations", "shipping"}

// PlainServiceCount is how many plain services there are.
const PlainServiceCount = 6

// plainLength is how many deployments a plain service has in each environment.
const plainLength = 4

// PlainService is the name of the i-th (from 0) plain service. Tests that need a target of their own take one each.
func PlainService(i int) string { return plainServices[i] }

// PlainDeployment is the ID of a plain service's n-th (from 1) deployment in production; the fourth is active, and none
// failed or contains a migration.
func PlainDeployment(i, n int) string { return seededID(13+2*i, n) }

// PlainStagingDeployment is the same in staging.
func PlainStagingDeployment(i, n int) string { return seededID(14+2*i, n) }

// firstSerial numbers the deployments made since the seed: the first is dep-010001.
const firstSerial = 10_000

func seededID(block, n int) string { return fmt.Sprintf("dep-%06d", block*100+n) }

// shape is what a seeded history looks like; days is the time between two deployments.
type shape struct {
	length, days      int
	migration, failed func(n int) bool
}

func never(int) bool { return false }

func only(at int) func(int) bool { return func(n int) bool { return n == at } }

// lastDeployed is when the newest seeded deployment of the first service was made; the others were made a little earlier.
var lastDeployed = time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)

// seededEnvironments are all histories of a seed.
func seededEnvironments(seed int64) []*environment {
	random := rand.New(rand.NewPCG(uint64(seed), 0x6465706c6f7973))
	services := []struct {
		name  string
		shape func() shape
	}{
		{ServiceCheckoutAPI, checkoutShape}, {ServiceCheckoutWeb, checkoutShape},
		{ServiceLedger, ledgerShape}, {ServiceLedgerArchive, plainShape},
		{ServiceSearch, func() shape { return randomShape(random) }}, {ServiceSearchIndexer, func() shape { return randomShape(random) }},
	}
	for _, name := range plainServices {
		services = append(services, struct {
			name  string
			shape func() shape
		}{name, plainShape})
	}
	var all []*environment
	for i, s := range services {
		for j, name := range []string{EnvProduction, EnvStaging} {
			e := &environment{service: s.name, name: name}
			e.fill(s.shape(), 2*i+j+1, seed, random)
			all = append(all, e)
		}
	}
	return all
}

func checkoutShape() shape { return shape{length: 6, days: 9, migration: only(2), failed: only(4)} }

func plainShape() shape { return shape{length: plainLength, days: 5, migration: never, failed: never} }

func ledgerShape() shape {
	return shape{length: LedgerCount, days: 3, migration: func(n int) bool { return n%10 == 0 && n < LedgerCount }, failed: only(35)}
}

func randomShape(random *rand.Rand) shape {
	rarely := func(int) bool { return random.IntN(6) == 0 }
	return shape{length: 8 + random.IntN(20), days: 2 + random.IntN(4), migration: rarely, failed: rarely}
}

// fill makes a history. The newest deployment is active, whatever the shape says of it.
func (e *environment) fill(s shape, block int, seed int64, random *rand.Rand) {
	perMonth := map[time.Month]int{}
	for n := 1; n <= s.length; n++ {
		at := lastDeployed.AddDate(0, 0, -s.days*(s.length-n)).Add(-time.Duration(block) * time.Minute)
		perMonth[at.Month()]++
		one := Deployment{
			ID: seededID(block, n), Service: e.service, Environment: e.name, Time: at, Source: FromPipeline, Status: StatusSuperseded,
			Version: fmt.Sprintf("v%d.%d.%d", at.Year(), at.Month(), perMonth[at.Month()]),
			Author:  authors[random.IntN(len(authors))], ContainsMigration: s.migration(n),
		}
		one.Commit = commitOf(seed, one.ID)
		switch {
		case n == s.length:
			one.Status = StatusActive
		case s.failed(n):
			one.Status = StatusFailed
		}
		e.now = append(e.now, one)
	}
	e.before = e.now
}

// commitOf is a commit's name: forty hexadecimal digits, the same in every run of the seed.
func commitOf(seed int64, of string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s", seed, of))
	return hex.EncodeToString(sum[:20])
}

// serviceNames are all services, by name. The caller holds mu.
func (d *Deploys) serviceNames() []string {
	var names []string
	for _, e := range d.environments {
		names = append(names, e.service)
	}
	slices.SortFunc(names, cmp.Compare[string])
	return slices.Compact(names)
}

func seededDeployPermissions() []Permission {
	var all []Permission
	for _, user := range []string{UserMori, UserHayashi, UserOno, UserPlatformGuest} {
		all = append(all, Permission{User: user, Verb: verbRead, Allowed: true})
	}
	for _, user := range []string{UserMori, UserHayashi} {
		all = append(all, Permission{User: user, Verb: verbRollback, Allowed: true})
	}
	services := append([]string{
		ServiceCheckoutAPI, ServiceCheckoutWeb, ServiceLedger, ServiceLedgerArchive, ServiceSearch, ServiceSearchIndexer,
	}, plainServices...)
	for _, service := range services {
		all = append(all, Permission{User: UserOno, Verb: verbRollback, Resource: place(service, EnvStaging), Allowed: true})
	}
	return all
}
