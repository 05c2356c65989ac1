package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/cutonce/cutonce/internal/config"
)

const (
	// oldest is the first version of Postgres that is supported.
	oldest = 150000
	// spare is how many connections one process keeps beside its pool, for recording outcomes.
	spare = 2
)

func (d *Deployment) database(ctx context.Context, see *Seen) {
	if err := d.read(ctx); err != nil {
		see.fail("check CUTONCE_DATABASE_URL and that the server answers", "%v", err)
		return
	}
	f := d.facts
	if f.Version < oldest {
		see.fail("use 15 or newer", "Postgres %s is too old", f.VersionText)
	} else {
		see.ok("Postgres %s, database %s", f.VersionText, f.Database)
	}
	if f.Standby || f.ReadOnly {
		see.fail("name the primary, and leave default_transaction_read_only off", "the server only reads here")
	}
	if level := f.Settings["default_transaction_isolation"]; level != "read committed" {
		see.fail("alter database … set default_transaction_isolation to 'read committed'", "default_transaction_isolation is %q: a claim would not see what it waited for", level)
	}
	if !f.TLS && !f.Near {
		see.warn("add sslmode=verify-full to the URL", "the connection is not encrypted")
	}
	see.ok("its time zone is %s (nothing depends on it)", f.Settings["TimeZone"])
	d.connections(see)
}

func (d *Deployment) connections(see *Seen) {
	f, wants := d.facts, d.Settings.DatabasePool+spare
	const fix = "raise max_connections or the role's limit, or lower CUTONCE_DATABASE_POOL"
	switch {
	case wants > f.Limit:
		see.fail(fix, "one process wants %d connections, and the role may have %d", wants, f.Limit)
	case 2*wants > f.Limit:
		see.warn(fix, "one process wants %d of %d connections: two replicas do not fit", wants, f.Limit)
	default:
		see.ok("one process wants %d of %d connections", wants, f.Limit)
	}
}

func (d *Deployment) durability(_ context.Context, see *Seen) {
	if d.facts == nil {
		see.unseen(errNoDatabase)
		return
	}
	set := d.facts.Settings
	var wrong []string
	for _, name := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		if set[name] == "off" {
			wrong = append(wrong, name+"=off")
		}
	}
	switch {
	case len(wrong) > 0 && d.Settings.AllowUnsafe == config.Unsafe:
		see.warn("turn them on", "%s: an effect could happen twice after a power cut", strings.Join(wrong, " "))
	case len(wrong) > 0:
		see.fail("turn them on", "%s: an effect could happen twice after a power cut", strings.Join(wrong, " "))
	default:
		see.ok("fsync, full_page_writes and synchronous_commit=%s", set["synchronous_commit"])
	}
	d.standbys(see)
}

func (d *Deployment) standbys(see *Seen) {
	names, commits := d.facts.Settings["synchronous_standby_names"], d.facts.Settings["synchronous_commit"]
	switch {
	case names == "" && d.facts.Followers > 0:
		see.warn("set synchronous_standby_names", "%d standbys follow, none synchronously: a failover to one forgets what it had not received", d.facts.Followers)
	case names == "":
		see.ok("no synchronous standby: a failover to another server would be a restore (docs/guarantees.md)")
	case commits == "local":
		see.fail("set synchronous_commit to on", "synchronous_commit=local does not wait for %s: a failover forgets", names)
	case d.facts.Followers == 0:
		see.warn("attach one: until then every commit waits", "synchronous_standby_names is %s, and no standby is attached", names)
	default:
		see.ok("commits wait for %s", names)
	}
}

// role says what the service's role can do that it need not. Row-level security and the audit trail's locks do not bind an owner.
func (d *Deployment) role(_ context.Context, see *Seen) {
	if d.facts == nil {
		see.unseen(errNoDatabase)
		return
	}
	f, before := d.facts, false
	for _, one := range []struct {
		is        bool
		says, fix string
	}{
		{f.Superuser, "is a superuser: no lock of the database binds it", "create role … login nosuperuser"},
		{f.CreatesDatabases && !f.Superuser, "may create databases", "alter role … nocreatedb"},
		{f.CreatesRoles && !f.Superuser, "may create roles", "alter role … nocreaterole"},
		{f.BypassesRowSecurity && !f.Superuser, "passes by row-level security", "alter role … nobypassrls"},
		{f.OwnsDatabase || f.OwnsTables, "owns what it works on: it could take the schema's locks away", "run cutonce migrate with another role, grant this one select, insert, update and delete, and set CUTONCE_MIGRATE=false"},
	} {
		if one.is {
			before = true
			see.warn(one.fix, "%s %s", f.Role, one.says)
		}
	}
	if len(f.Missing) > 0 {
		see.fail("grant select, insert, update, delete on them", "%s may not read and write %s", f.Role, strings.Join(f.Missing, ", "))
	} else if !before {
		see.ok("%s can do its work and nothing that it need not", f.Role)
	}
}

func (d *Deployment) migrations(_ context.Context, see *Seen) {
	if d.facts == nil {
		see.unseen(errNoDatabase)
		return
	}
	d.foreign(see)
	f := d.facts
	switch {
	case f.Applied > f.Known:
		see.warn("update this process", "the schema (%d) is of a newer version than this one (%d)", f.Applied, f.Known)
	case f.Applied == f.Known:
		see.ok("the schema is up to date (%d)", f.Known)
	case !d.Settings.Migrate:
		see.fail("run cutonce migrate with the owner's role", "the schema (%d) is behind this version (%d), and CUTONCE_MIGRATE is false", f.Applied, f.Known)
	case !f.CreatesTables:
		see.fail("run cutonce migrate with the owner's role, and set CUTONCE_MIGRATE=false", "the schema (%d) is behind this version (%d), and %s may not change it", f.Applied, f.Known, f.Role)
	default:
		see.warn("nothing, or run cutonce migrate first", "the schema (%d) is behind this version (%d): serve will bring it up to date", f.Applied, f.Known)
	}
}

func (d *Deployment) foreign(see *Seen) {
	f := d.facts
	if len(f.Foreign) == 0 {
		return
	}
	shown := f.Foreign[:min(3, len(f.Foreign))]
	if f.Applied == 0 {
		see.fail("create an empty database for cutonce", "the database holds somebody else's tables (%d, such as %s)", len(f.Foreign), strings.Join(shown, ", "))
		return
	}
	see.warn("give cutonce a database of its own", "beside cutonce's tables there are others (%d, such as %s)", len(f.Foreign), strings.Join(slices.Clone(shown), ", "))
}

func (d *Deployment) databaseClock(_ context.Context, see *Seen) {
	if d.facts == nil {
		see.unseen(errNoDatabase)
		return
	}
	compare(see, "the database's clock", apart(d.facts.Now, d.facts.Asked, d.facts.Answered, 0))
}

func (d *Deployment) restore(_ context.Context, see *Seen) {
	switch {
	case !d.migrated():
		see.unseen(errSchema)
	case d.facts.Restoring:
		see.warn("cutonce restore status", "a restore from a backup is under way: nothing is applied")
	default:
		see.ok("no restore is under way")
	}
}
