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

// role says what the service's login can do that it need not. Its work is done as two other roles, whatever it is itself; but the audit
// trail's locks do not bind an owner, and who has a login that no wall binds need not take those roles.
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
		{f.OwnsDatabase || f.OwnsTables, "owns what it works on: it could take the schema's locks away", "run cutonce migrate with another role, grant cutonce_app, cutonce_worker to this one, and set CUTONCE_MIGRATE=false"},
	} {
		if one.is {
			before = true
			see.warn(one.fix, "%s %s", f.Role, one.says)
		}
	}
	if f.Wall != nil && f.Wall.Inherits && !f.Superuser && !f.OwnsDatabase && !f.OwnsTables {
		before = true
		see.warn("alter role … noinherit, or from Postgres 16 on: grant cutonce_worker to … with inherit false", "%s sees every tenant without taking a role", f.Role)
	}
	if !before {
		see.ok("%s can do its work and nothing that it need not", f.Role)
	}
}

// tenants says whether the second wall between tenants stands: what the service's statements are bound by, whatever they ask for.
func (d *Deployment) tenants(_ context.Context, see *Seen) {
	if d.facts == nil {
		see.unseen(errNoDatabase)
		return
	}
	w, login := d.facts.Wall, d.facts.Role
	if w == nil {
		see.unseen(errSchema)
		return
	}
	const fix = "grant cutonce_app, cutonce_worker to the login, with an administrator's role"
	for _, one := range []struct {
		is        bool
		says, fix string
	}{
		{!w.There, "cutonce_app or cutonce_worker is missing: roles belong to the server, and do not come with a dump", "create role cutonce_app nologin; create role cutonce_worker nologin; then restore the database again"},
		{w.There && !w.Takes, login + " may not take the roles cutonce_app and cutonce_worker", fix},
		{len(w.Loose) > 0, strings.Join(w.Loose, " and ") + " can do more than keep to a tenant", "alter role … nosuperuser nobypassrls nocreaterole nocreatedb; revoke cutonce_worker from cutonce_app"},
		{len(w.Open) > 0, "row-level security does not guard " + strings.Join(w.Open, ", ") + " as it should: somebody has changed the schema", "alter table … enable row level security, force row level security, with the policies of migration 00014"},
		{len(w.Missing) > 0, "rights are missing: " + strings.Join(w.Missing, "; "), "grant them again, as migration 00014 does"},
	} {
		if one.is {
			see.fail(one.fix, "%s", one.says)
		}
	}
	if w.There && w.Takes && len(w.Loose)+len(w.Open)+len(w.Missing) == 0 {
		see.ok("every table is behind row-level security, forced on its owner too; %s works as cutonce_app, which sees one tenant, and as cutonce_worker", login)
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
