package verify

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cutonce/cutonce/store"
)

// CannotError says why the run could not be made, and what would let it.
type CannotError struct{ Why string }

// Error gives the reason.
func (e *CannotError) Error() string { return e.Why }

// prefix begins the name of every scratch schema.
const prefix = "cutonce_verify_"

// scratch is a schema that exists for one run. Two addresses lead to it: url with the database's own clock, and ahead, where
// a function of the schema's stands before the server's clock_timestamp() and says a later time. Every guard, lease and
// deadline runs on that name, so the second address is the same database some days later.
type scratch struct {
	admin      *pgx.Conn
	address    string
	name       string
	url, ahead string
	notes      []string
	// strayed is set once a session was found to work elsewhere: see here.
	strayed atomic.Pointer[CannotError]
}

// marker is the comment on every scratch schema. What only has the name is somebody else's.
const marker = "scratch schema of cutonce verify: whoever finds it after its run may drop it"

// sqlLeftOver lists the schemas that runs under this role have made.
const sqlLeftOver = `
select nspname from pg_namespace
where nspname ~ '^cutonce_verify_[0-9a-f]{12}$' and obj_description(oid, 'pg_namespace') = $1
  and nspowner = (select oid from pg_roles where rolname = current_user)
order by 1`

// sqlTake holds a schema's name for as long as the session lives; a schema whose name can be taken belongs to nobody any more.
const sqlTake = `select pg_try_advisory_lock(hashtextextended($1, 0))`

// sqlOwnEyes lets the run's own login see the rows of its schema. The roles that the service works as are not concerned.
const sqlOwnEyes = `
do $$
declare what regclass;
begin
  for what in select oid from pg_class where relnamespace = '%s'::regnamespace and relrowsecurity loop
    execute format('create policy verifying on %%s to current_user using (true)', what);
  end loop;
end $$`

// newScratch makes the schema with all tables in it. A caller that got one must drop it.
func newScratch(ctx context.Context, address string, ahead time.Duration) (_ *scratch, err error) {
	admin, err := pgx.Connect(ctx, address)
	if err != nil {
		return nil, cannot("the database cannot be reached: %s", told(err))
	}
	s := &scratch{admin: admin, address: address, name: prefix + randomName()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.drop(context.WithoutCancel(ctx)))
		}
	}()
	if err := s.sweep(ctx); err != nil {
		return s, err
	}
	if err := s.create(ctx); err != nil {
		return s, err
	}
	if s.url, err = within(address, s.name); err != nil {
		return s, err
	}
	if s.ahead, err = within(address, s.name+",pg_catalog"); err != nil {
		return s, err
	}
	err = store.MigrateVetted(ctx, s.url, s.here)
	switch strayed := s.strayed.Load(); {
	case strayed != nil:
		return s, strayed
	case err != nil:
		return s, cannot("the scratch schema could not be filled: %s", told(err))
	}
	// Whoever owns the tables has no eyes for their rows, unless a superuser; the run looks at its own.
	if _, err := admin.Exec(ctx, fmt.Sprintf(sqlOwnEyes, s.name)); err != nil {
		return s, cannot("the scratch schema could not be opened to its owner: %s", told(err))
	}
	// On s.url the server's own clock is found first, whatever else has its name.
	_, err = admin.Exec(ctx, fmt.Sprintf(`create function %s.clock_timestamp() returns timestamptz language sql volatile as
		$$ select pg_catalog.clock_timestamp() + interval '%d seconds' $$`, s.name, int(ahead.Seconds())))
	return s, err
}

func cannot(format string, args ...any) error { return &CannotError{Why: fmt.Sprintf(format, args...)} }

func (s *scratch) create(ctx context.Context) error {
	var free bool
	if err := s.admin.QueryRow(ctx, sqlTake, s.name).Scan(&free); err != nil {
		return cannot("the database refused an advisory lock: %s", told(err))
	}
	// Both in one transaction: there is no moment at which it exists without its mark.
	_, err := s.admin.Exec(ctx, fmt.Sprintf("create schema %s; comment on schema %s is '%s'", s.name, s.name, marker))
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42501" {
		var role, database string
		if err := s.admin.QueryRow(ctx, `select quote_ident(current_user), quote_ident(current_database())`).Scan(&role, &database); err != nil {
			return err
		}
		return cannot("the database's role may not make a schema, and verify touches no other: grant create on database %s to %s;", database, role)
	}
	return err
}

// sweep drops what a run left behind that was killed, and nothing that is not marked as such.
func (s *scratch) sweep(ctx context.Context) error {
	rows, err := s.admin.Query(ctx, sqlLeftOver, marker)
	if err != nil {
		return cannot("the schemas cannot be listed: %s", told(err))
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return cannot("the schemas cannot be listed: %s", told(err))
	}
	for _, name := range names {
		var free bool
		if err := s.admin.QueryRow(ctx, sqlTake, name).Scan(&free); err != nil || !free {
			continue // another run is at work in it
		}
		said := "dropped " + name + ", which a run that was killed had left behind"
		if _, err := s.admin.Exec(ctx, "drop schema if exists "+pgx.Identifier{name}.Sanitize()+" cascade"); err != nil {
			said = name + " was left behind by a run that was killed, and could not be dropped: " + told(err)
		}
		s.notes = append(s.notes, said)
	}
	return nil
}

// dropFor bounds the clearing up, which happens even when the run was interrupted.
const dropFor = 15 * time.Second

func (s *scratch) drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropFor)
	defer cancel()
	var err error
	if s.admin.IsClosed() { // an interrupt closes the connection that it finds at work
		if s.admin, err = pgx.Connect(ctx, s.address); err != nil {
			return fmt.Errorf("the schema %s is left behind; the next run drops it: %s", s.name, told(err))
		}
	}
	_, err = s.admin.Exec(ctx, "drop schema if exists "+s.name+" cascade")
	if err != nil {
		err = fmt.Errorf("the schema %s could not be dropped; the next run tries again: %s", s.name, told(err))
	}
	return errors.Join(err, s.admin.Close(ctx))
}

// within is an address whose sessions see only the given schemas.
func within(address, path string) (string, error) {
	if u, err := url.Parse(address); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		q := u.Query()
		q.Set("search_path", path)
		u.RawQuery = q.Encode()
		return u.String(), nil
	}
	if _, err := pgx.ParseConfig(address); err != nil || !strings.Contains(address, "=") {
		return "", cannot("the database URL is not readable: use postgres://user:password@host:port/database")
	}
	return address + " search_path='" + path + "'", nil
}

// told is the server's sentence of an error where there is one.
func told(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Message + " (" + pg.Code + ")"
	}
	return err.Error()
}

func randomName() string {
	raw := make([]byte, 6)
	if _, err := rand.Read(raw); err != nil {
		panic(err)
	}
	return hex.EncodeToString(raw)
}
