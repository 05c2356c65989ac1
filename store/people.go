package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
)

// clockMargin is by how much a process's clock may be off for a range of times to find its changes.
const clockMargin = time.Hour

// firstID is the least ID that is made at a time.
func firstID(at time.Time) uuid.UUID {
	var id uuid.UUID
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(0, at.UnixMilli())))
	copy(id[:6], ms[2:])
	return id
}

// mostPeople bounds whom a text may mean.
const mostPeople = 100

// sqlPeople finds whose names hold a text, among those who asked, decided or settled. Each distinct name costs one look into an index,
// however many changes bear it. A name is what follows the issuer.
const sqlPeople = `
with recursive callers (id) as (
  (select requester_id from previews where tenant_id = @tenant order by requester_id limit 1)
  union all
  select (select p.requester_id from previews p where p.tenant_id = @tenant and p.requester_id > c.id order by p.requester_id limit 1)
  from callers c where c.id is not null
), deciders (id) as (
  (select person from decisions where tenant_id = @tenant order by person limit 1)
  union all
  select (select d.person from decisions d where d.tenant_id = @tenant and d.person > c.id order by d.person limit 1)
  from deciders c where c.id is not null
), settlers (id) as (
  (select person from resolutions where tenant_id = @tenant order by person limit 1)
  union all
  select (select r.person from resolutions r where r.tenant_id = @tenant and r.person > c.id order by r.person limit 1)
  from settlers c where c.id is not null
), found as (
  select 'caller' as part, id from callers union all select 'decider', id from deciders union all select 'settler', id from settlers
)
select coalesce(array_agg(id) filter (where part = 'caller'), '{}'), coalesce(array_agg(id) filter (where part = 'decider'), '{}'),
  coalesce(array_agg(id) filter (where part = 'settler'), '{}')
from (select part, id from found where position(lower(@text) in lower(substring(id from position('#' in id) + 1))) > 0 limit @limit) f`

// people are the names that a text has found.
type people struct{ callers, deciders, settlers []string }

func (p people) nobody() bool { return len(p.callers)+len(p.deciders)+len(p.settlers) == 0 }

// people finds whom a text means. Fault: invalid_input, if that is too many.
func (s *Store) people(ctx context.Context, tenant, text string) (p people, err error) {
	args := pgx.NamedArgs{"tenant": tenant, "text": text, "limit": mostPeople + 1}
	if err := s.pool.read(ctx, sqlPeople, args, &p.callers, &p.deciders, &p.settlers); err != nil {
		return p, fmt.Errorf("finding people: %w", err)
	}
	if len(p.callers)+len(p.deciders)+len(p.settlers) > mostPeople {
		return p, fault.New(fault.InvalidInput, nil).WithField("?person", "field.person.many", fault.Args{"most": mostPeople})
	}
	return p, nil
}

// A list of what people asked for, decided on or settled is the whole sqlByPeople, with the conditions of its filter put in. Each of the
// people is walked from the newest change back, as far as the page needs: the conditions are asked on the way.
const sqlByPeople = `
select ` + previewColumns + `, ` + executionColumns + `, clock_timestamp()
from previews p
where p.id = any(array(
  select id from (
    select c.id from unnest(@callers::text[]) q (name) cross join lateral (
      select p.id from previews p where p.tenant_id = @tenant and p.requester_id = q.name /*of*/ order by p.id desc limit @limit) c
    union
    select d.id from unnest(@deciders::text[]) q (name) cross join lateral (
      select p.id from decisions x join previews p on p.id = x.preview_id
      where x.tenant_id = @tenant and p.tenant_id = @tenant and x.person = q.name /*at*/ order by x.preview_id desc limit @limit) d
    union
    select r.id from unnest(@settlers::text[]) q (name) cross join lateral (
      select p.id from resolutions x join previews p on p.id = x.preview_id
      where x.tenant_id = @tenant and p.tenant_id = @tenant and x.person = q.name /*at*/ order by x.preview_id desc limit @limit) r
  ) found order by id desc limit @limit))` + fromNewest

func byPeople(f commit.Filter) string {
	of := conditions(f)
	return strings.NewReplacer(`/*of*/`, of, `/*at*/`, bounds(f, `x.preview_id`)+of).Replace(sqlByPeople)
}
