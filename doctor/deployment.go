package doctor

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/store"
)

// Deployment is what is looked at. Settings have passed config's own checks; what could not be made of them is an error here, and a
// finding.
type Deployment struct {
	Settings config.Settings
	Tokens   auth.Config
	// Connectors are those of the configured platforms; ConnectorsErr says why there are none.
	Connectors    []connector.Connector
	ConnectorsErr error
	// Policy is what serve would put in force, of the files in Rules; Actions are those that this build knows.
	Policy    *policy.Policy
	PolicyErr error
	Rules     fs.FS
	Actions   []string
	Key       audit.Key
	KeyErr    error
	// Receivers are how many are told of what happens; NotifyErr says why none of the file is.
	Receivers int
	NotifyErr error
	// SignIn asks the provider that people sign in at for its description, as a sign-in would; nil where none is configured.
	SignIn func(context.Context) (authorize string, err error)
	// RedirectURL is where the provider sends browsers back to.
	RedirectURL string
	Now         func() time.Time

	facts   *store.Facts // nil until the database was read
	witness *audit.Seal
}

var (
	errNoDatabase = errors.New("the database could not be read")
	errSchema     = errors.New("the schema is not this version's, or there is no policy")
)

// Checks are all of them, in an order in which the first failure is the most likely cause of the next.
func Checks(d *Deployment) []Check {
	checks := []Check{
		{"settings", d.settings}, {"clocks", d.durations}, {"secret", d.secret}, {"public URL", d.publicURL}, {"sign-in", d.signIn},
	}
	for _, i := range d.Tokens.Issuers {
		checks = append(checks, Check{"issuer " + i.URL, func(ctx context.Context, s *Seen) { d.issuer(ctx, s, i) }})
	}
	checks = append(checks, Check{"policy", d.policy}, Check{"database", d.database}, Check{"database durability", d.durability},
		Check{"database role", d.role}, Check{"tenants", d.tenants}, Check{"migrations", d.migrations}, Check{"database clock", d.databaseClock},
		Check{"policy in force", d.inForce}, Check{"seal key", d.sealKey}, Check{"witness", d.witnessed}, Check{"restore", d.restore}, Check{"notifications", d.notifications})
	return append(checks, d.connectorChecks()...)
}

// read asks the database once, for all the checks about it.
func (d *Deployment) read(ctx context.Context) error {
	q := store.Question{URL: string(d.Settings.DatabaseURL), Now: d.Now}
	if d.Policy != nil {
		q.Policy = d.Policy.Version()
	}
	if d.Settings.SealWitness != "" {
		if d.witness, _ = audit.ReadWitness(d.Settings.SealWitness); d.witness != nil {
			q.Seal = d.witness.Number
		}
	}
	f, err := store.Inspect(ctx, q)
	if err == nil {
		d.facts = &f
	}
	return err
}

// migrated reports whether the schema is this build's, so that it can be read. Where it is not, that is a finding already.
func (d *Deployment) migrated() bool { return d.facts != nil && d.facts.Applied == d.facts.Known }
