// Command bench measures how many whole changes the service makes in a second, beside the limit that the same commits set.
//
// It promises that what is timed is real: a durable Postgres of its own, the released program as a process, a target in another
// process that counts its effects, and after every cell the check that each cycle ended applied and had exactly one effect. The
// contenders take turns, so that a noisy machine is noisy for all of them, and medians are printed. What it does not promise is
// that the absolute numbers hold elsewhere: the ratios are the result. docs/performance.md tells how to read them.
//
// Start at run; cycle.go is the service's cycle, bare.go the limit.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/pglocal"
)

// poolSize is the service's default, and what the bare loop gets too.
const poolSize = 16

func main() {
	if len(os.Args) == 3 && os.Args[1] == "target" {
		exit(serveTarget(os.Args[2], os.Getenv("TARGET_TOKEN")))
	}
	var o options
	flag.StringVar(&o.binary, "binary", "../bin/cutonce", "the program that is measured")
	flag.StringVar(&o.only, "only", "", "contenders to measure, separated by commas; all by default. hotcap measures declared caps instead")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds, whose medians are printed; every other one measures 8 clients alone")
	flag.BoolVar(&o.statements, "statements", false, "print which statements Postgres spends its time on (needs pg_stat_statements, and slows it down)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(errors.Join(o.environment(), run(ctx, o)))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// options are what may be chosen.
type options struct {
	binary, only string
	rounds       int
	statements   bool
	length       time.Duration
	clients      []int
}

// environment reads BENCH_SECONDS and CLIENTS.
func (o *options) environment() error {
	seconds, err := strconv.ParseFloat(cmp.Or(os.Getenv("BENCH_SECONDS"), "3"), 64)
	if err != nil || seconds <= 0 {
		return errors.New("BENCH_SECONDS: how long a cell is measured")
	}
	o.length = time.Duration(seconds * float64(time.Second))
	for text := range strings.SplitSeq(cmp.Or(os.Getenv("CLIENTS"), "1,8,32"), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > len(campaignNames) {
			return fmt.Errorf("CLIENTS: numbers from 1 to %d, separated by commas", len(campaignNames))
		}
		o.clients = append(o.clients, n)
	}
	return nil
}

func run(ctx context.Context, o options) error {
	if len(o.clients) == 0 {
		return nil
	}
	dir, err := os.MkdirTemp("", "cutonce-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := filepath.Abs(o.binary)
	if err != nil {
		return err
	}
	// Checkpoints would hit whoever is being measured: none falls into a run of this length. Everything else is the default.
	settings := map[string]string{"checkpoint_timeout": "30min", "max_wal_size": "8GB"}
	if o.statements {
		maps.Copy(settings, preload)
	}
	cluster, err := pglocal.Open(ctx, pglocal.Config{Name: "bench-" + strconv.Itoa(os.Getpid()), Settings: settings})
	if err != nil {
		return err
	}
	defer func() {
		_ = cluster.Close(context.WithoutCancel(ctx))
		_ = os.RemoveAll(filepath.Join(pglocal.DefaultDir(), "bench-"+strconv.Itoa(os.Getpid())))
	}()
	if o.only == onlyHotCap {
		return hotCap(ctx, o, dir, binary, cluster.URL())
	}
	return measureAll(ctx, o, dir, binary, cluster.URL())
}

func measureAll(ctx context.Context, o options, dir, binary, address string) error {
	databases, err := makeDatabases(ctx, address, "cutonce", "bare", "stripped", "ctrlrun", "dbos")
	if err != nil {
		return err
	}
	s, err := startStage(ctx, dir, binary, databases["cutonce"], "")
	if err != nil {
		return err
	}
	defer s.stop()
	m, err := newMeter(ctx, databases["cutonce"], s)
	if err != nil {
		return err
	}
	defer m.admin.Close(context.WithoutCancel(ctx))
	b, err1 := newBare(ctx, databases["bare"], false)
	n, err2 := newBare(ctx, databases["stripped"], true)
	c, err3 := newCtrlrun(ctx, databases["ctrlrun"])
	d, err4 := newDurable(ctx, databases["dbos"], s.target)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	crews := []*crew{
		{contender: b}, {contender: n}, {contender: &service{stage: s, applies: &samples{}}}, {contender: &service{stage: s, overMCP: true, applies: &samples{}}},
		{contender: d}, {contender: c},
	}
	defer func() {
		for _, c := range crews {
			c.close(context.WithoutCancel(ctx))
		}
	}()
	t := newTable(o)
	if err := t.describe(ctx, m.admin); err != nil {
		return err
	}
	if err := t.rounds(ctx, crews, m); err != nil {
		return err
	}
	t.print()
	if o.statements {
		return printStatements(ctx, databases["cutonce"])
	}
	return nil
}

// makeDatabases gives each contender a database of its own in the one cluster.
func makeDatabases(ctx context.Context, address string, names ...string) (map[string]string, error) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	base, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the cluster's address is not readable")
	}
	all := map[string]string{}
	for _, name := range names {
		if _, err := conn.Exec(ctx, "create database bench_"+name); err != nil {
			return nil, err
		}
		at := *base
		at.Path = "/bench_" + name
		all[name] = at.String()
	}
	return all, nil
}
