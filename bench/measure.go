package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// contender is one row of the table.
type contender interface {
	name() string
	// client makes the cycle of client n, with connections of its own where the contender has any.
	client(ctx context.Context, n int) (func(context.Context) error, error)
	// effects is how many changes are known to have happened, by the target or by the database.
	effects(ctx context.Context) (int, error)
	close(ctx context.Context)
}

// samples collects durations from several clients.
type samples struct {
	mu  sync.Mutex
	all []time.Duration
}

func (s *samples) add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
}

func (s *samples) take() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.all
	s.all = nil
	return all
}

// percentile is the value below which p of a hundred lie; 0 where there are none. It sorts all.
func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, len(all)*p/100)]
}

// result is one measured cell. Everything but rate and the latencies is per cycle.
type result struct {
	rate               float64
	commits, wal       float64
	cpu                map[string]float64 // milliseconds by process
	allocs, allocBytes float64            // of the service
	p50, p99, own      time.Duration      // of apply, and the target's own part of it
}

// gauges are what is read before and after a cell.
type gauges struct {
	xids, wal           int64
	cpu                 map[string]float64
	mallocs, allocBytes float64
}

// meter reads the gauges.
type meter struct {
	admin *pgx.Conn
	// postmaster is the server's first process; the CPU of all its children is counted, of those that have ended as well.
	postmaster int
	pids       map[string]int
	metrics    string
}

func newMeter(ctx context.Context, url string, s *stage) (*meter, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	var backend int
	if err := conn.QueryRow(ctx, `select pg_backend_pid()`).Scan(&backend); err != nil {
		return nil, err
	}
	stat, err := processStat(backend)
	if err != nil {
		return nil, err
	}
	return &meter{admin: conn, postmaster: stat.parent, pids: s.pids, metrics: s.metrics}, nil
}

// A transaction that writes takes a transaction ID, and one that only reads takes none: the IDs count the commits that wait for
// the disk.
const sqlGauges = `select pg_snapshot_xmax(pg_current_snapshot())::text::bigint, (pg_current_wal_insert_lsn() - '0/0')::bigint`

func (m *meter) read(ctx context.Context) (g gauges, err error) {
	if err := m.admin.QueryRow(ctx, sqlGauges).Scan(&g.xids, &g.wal); err != nil {
		return g, err
	}
	g.cpu = map[string]float64{}
	for name, pid := range m.pids {
		stat, err := processStat(pid)
		if err != nil {
			return g, err
		}
		g.cpu[name] = stat.own
	}
	if stat, err := processStat(os.Getpid()); err == nil {
		g.cpu["clients"] = stat.own
	}
	if g.cpu["postgres"], err = treeCPU(m.postmaster); err != nil {
		return g, err
	}
	g.mallocs, g.allocBytes, err = heap(ctx, m.metrics)
	return g, err
}

// stat is what /proc says of a process, times in milliseconds.
type stat struct {
	parent        int
	own, children float64
}

func processStat(pid int) (s stat, err error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s, err
	}
	_, rest, _ := strings.Cut(string(raw), ") ") // the name before may hold blanks
	f := strings.Fields(rest)
	if len(f) < 16 {
		return s, errors.New("/proc is not as on Linux")
	}
	s.parent, _ = strconv.Atoi(f[1])
	const tick = 10 // milliseconds: USER_HZ is 100 wherever Go runs
	at := func(i int) float64 { n, _ := strconv.ParseFloat(f[i], 64); return n * tick }
	s.own, s.children = at(11)+at(12), at(13)+at(14)
	return s, nil
}

// treeCPU is the time of a process, its living children and its ended ones.
func treeCPU(pid int) (float64, error) {
	root, err := processStat(pid)
	if err != nil {
		return 0, err
	}
	total := root.own + root.children
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			if s, err := processStat(n); err == nil && s.parent == pid {
				total += s.own
			}
		}
	}
	return total, nil
}

// heap reads from the service's metrics how much it has allocated.
func heap(ctx context.Context, url string) (mallocs, bytes float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return 0, 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, 0, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		switch name {
		case "go_memstats_mallocs_total":
			mallocs, err = strconv.ParseFloat(value, 64)
		case "go_memstats_alloc_bytes_total":
			bytes, err = strconv.ParseFloat(value, 64)
		}
	}
	return mallocs, bytes, errors.Join(err, lines.Err())
}

// crew is a contender's clients, kept between cells with their connections.
type crew struct {
	contender
	cycles []func(context.Context) error
	// warmed is how many clients have been measured before.
	warmed int
}

func (c *crew) enlist(ctx context.Context, clients int) error {
	for n := len(c.cycles); n < clients; n++ {
		cycle, err := c.client(ctx, n)
		if err != nil {
			return fmt.Errorf("%s, client %d: %w", c.name(), n, err)
		}
		c.cycles = append(c.cycles, cycle)
	}
	return nil
}

// A cell runs for warmUp before it is measured. A contender's first cell runs for longer: connections, plans and caches are made then.
const (
	warmUp      = 400 * time.Millisecond
	firstCycles = 30 // of each client
	firstFor    = 6 * time.Second
)

// warm returns when the cell may be measured.
func (c *crew) warm(cycles *atomic.Int64, clients int, failed *atomic.Bool) {
	time.Sleep(warmUp)
	for began := time.Now(); clients > c.warmed && time.Since(began) < firstFor && !failed.Load(); time.Sleep(warmUp / 10) {
		if cycles.Load() >= int64(firstCycles*clients) {
			break
		}
	}
	c.warmed = max(c.warmed, clients)
}

// measure runs one cell and checks that every cycle had its effect, and no effect came from elsewhere.
func (c *crew) measure(ctx context.Context, m *meter, clients int, length time.Duration) (r result, err error) {
	if err := c.enlist(ctx, clients); err != nil {
		return r, err
	}
	before, err := c.effects(ctx)
	if err != nil {
		return r, err
	}
	var stop atomic.Bool
	var cycles atomic.Int64
	failed := make(chan error, clients)
	var group sync.WaitGroup
	for _, cycle := range c.cycles[:clients] {
		group.Go(func() {
			for !stop.Load() {
				if err := cycle(ctx); err != nil {
					failed <- err
					stop.Store(true)
					return
				}
				cycles.Add(1)
			}
		})
	}
	c.warm(&cycles, clients, &stop)
	window, err := c.window(ctx, m, &cycles, length)
	stop.Store(true)
	group.Wait()
	select {
	case err = <-failed:
	default:
	}
	if err != nil {
		return r, fmt.Errorf("%s, %d clients: %w", c.name(), clients, err)
	}
	after, err := c.effects(ctx)
	if err == nil && after-before != int(cycles.Load()) {
		err = fmt.Errorf("%s, %d clients: %d cycles ended applied, and %d effects were counted", c.name(), clients, cycles.Load(), after-before)
	}
	return window, err
}

// window reads everything at its two ends.
func (c *crew) window(ctx context.Context, m *meter, cycles *atomic.Int64, length time.Duration) (r result, err error) {
	s, applies := c.contender.(*service)
	if applies {
		s.applies.take()
	}
	from, err := m.read(ctx)
	if err != nil {
		return r, err
	}
	n, began := cycles.Load(), time.Now()
	time.Sleep(length)
	n, took := cycles.Load()-n, time.Since(began)
	to, err := m.read(ctx)
	if err != nil || n == 0 {
		return r, errors.Join(errors.New("no cycle ended"), err)
	}
	per := func(a, b float64) float64 { return (b - a) / float64(n) }
	r = result{
		rate: float64(n) / took.Seconds(), commits: per(float64(from.xids), float64(to.xids)), wal: per(float64(from.wal), float64(to.wal)),
		allocs: per(from.mallocs, to.mallocs), allocBytes: per(from.allocBytes, to.allocBytes), cpu: map[string]float64{},
	}
	for name := range to.cpu {
		r.cpu[name] = per(from.cpu[name], to.cpu[name])
	}
	if applies {
		all := s.applies.take()
		t, err := s.target.tally(ctx)
		if err != nil {
			return r, err
		}
		r.p50, r.p99, r.own = percentile(all, 50), percentile(all, 99), t.OwnP50
	}
	return r, nil
}
