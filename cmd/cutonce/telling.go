package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/internal/metrics"
	"github.com/cutonce/cutonce/notify"
	"github.com/cutonce/cutonce/notify/outbox"
	"github.com/cutonce/cutonce/notify/post"
	"github.com/cutonce/cutonce/store"
)

// readNotify reads who is told of what, with the secrets that the file names. ok is false where nobody is.
func readNotify(s config.Settings) (c notify.Config, ok bool, err error) {
	if s.NotifyFile == "" {
		return c, false, nil
	}
	raw, err := os.ReadFile(s.NotifyFile)
	if err != nil {
		return c, false, config.Problems{"CUTONCE_NOTIFY_FILE: " + err.Error()}
	}
	c, err = notify.Read(raw, fromEnvironment)
	var problems notify.Problems
	if errors.As(err, &problems) {
		said := make(config.Problems, 0, len(problems))
		for _, one := range problems {
			said = append(said, "CUTONCE_NOTIFY_FILE: "+s.NotifyFile+": "+one)
		}
		return c, false, said
	}
	return c, err == nil, err
}

// fromEnvironment is the value of a variable that the file of receivers names, or of the file that NAME_FILE names.
func fromEnvironment(name string) (string, error) {
	if value := os.Getenv(name); value != "" {
		return value, nil
	}
	path := os.Getenv(name + "_FILE")
	if path == "" {
		return "", fmt.Errorf("neither %s nor %s_FILE is set", name, name)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s_FILE cannot be read", name)
	}
	return strings.TrimSpace(string(raw)), nil
}

// prepareNotify makes what tells people, if a file says whom.
func (s *service) prepareNotify(ctx context.Context) error {
	c, ok, err := readNotify(s.settings)
	if err != nil || !ok {
		return err
	}
	feed, err := store.OpenOutbox(ctx, reachedDirectly(s.settings))
	if err != nil {
		return err
	}
	s.closers = append(s.closers, feed.Close)
	if err := feed.Begin(ctx); err != nil { // before anything is served, so that what happens from the first request on is told
		return err
	}
	told := s.teller(c, feed)
	s.outbox, err = outbox.New(outbox.Config{
		Feed: feed, Pool: feed.Pool(), Notify: told, Log: s.log, Observe: s.metrics, Within: s.settings.Clock.Expiring,
	})
	if err != nil {
		return err
	}
	s.metrics.WatchDeliveries(toldOf(feed))
	s.log.Info("people are told", "receivers", len(c.Receivers), "file", s.settings.NotifyFile)
	return nil
}

func (s *service) teller(c notify.Config, changes notify.Changes) *notify.Service {
	return notify.NewService(notify.Deps{
		Changes: changes, Texts: s.texts, Receivers: c.Receivers, PublicURL: origin(s.settings), Log: s.log,
		Senders: post.Senders(c, post.Deps{PublicURL: origin(s.settings), Version: version, Now: time.Now}),
	})
}

func toldOf(feed *store.Outbox) metrics.DeliveryReader {
	return func(ctx context.Context) (metrics.Deliveries, error) {
		t, err := feed.Told(ctx, outbox.JobKind)
		return metrics.Deliveries{Lag: t.Lag, Oldest: t.Oldest, Waiting: t.Waiting, Dead: t.Dead}, err
	}
}
