package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/preview"
)

// capExceeded is how the database refuses to approve a change for which a cap has no room. See migrations/00011_caps.sql: the
// trigger there reserves, so that no statement that approves can forget to.
const capExceeded = "CU020"

// exceededBy reads which cap has refused, nil if none has. Nothing was changed then.
func exceededBy(err error) *preview.Exceeded {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != capExceeded {
		return nil
	}
	var said struct {
		preview.Exceeded
		Zone     string         `json:"zone"`
		Currency money.Currency `json:"currency"`
		Limit    int64          `json:"limit"`
		Used     int64          `json:"used"`
		Held     int64          `json:"held"`
		Unknown  int64          `json:"unknown"`
		Asked    int64          `json:"asked"`
	}
	if err := json.Unmarshal([]byte(pg.Detail), &said); err != nil {
		return nil // it stays the database's error
	}
	of := func(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: said.Currency} }
	e := said.Exceeded
	e.Limit, e.Used, e.Held, e.Unknown, e.Asked = of(said.Limit), of(said.Used), of(said.Held), of(said.Unknown), of(said.Asked)
	if zone, err := time.LoadLocation(said.Zone); err == nil {
		e.ResetsAt = e.ResetsAt.In(zone)
	}
	return &e
}

// refusedByCap wraps what exceededBy found for those who ask with errors.As.
func refusedByCap(e *preview.Exceeded) error { return fmt.Errorf("approving a change: %w", e) }
