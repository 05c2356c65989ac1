package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/google/uuid"
)

// durable is the same change as a workflow of DBOS Transact: a step reads the target (the preview), the workflow waits for a
// message (the decision), a step changes the target (the apply). It runs in this process, is called as a function, keeps its
// connection to the target, and has neither tokens nor policy, approval or audit tables.
type durable struct {
	ctx     dbos.Context
	target  targetAt
	started signals
}

// signals tells clients that their workflow has shown its preview.
type signals struct{ waiting sync.Map }

func (s *signals) expect(id string) <-chan struct{} {
	c := make(chan struct{})
	s.waiting.Store(id, c)
	return c
}

func (s *signals) signal(id string) {
	if c, ok := s.waiting.LoadAndDelete(id); ok {
		close(c.(chan struct{}))
	}
}

// asked is a workflow's input.
type asked struct {
	ID       string
	Campaign string
	Budget   string
}

func newDurable(ctx context.Context, url string, target targetAt) (*durable, error) {
	c, err := dbos.NewContext(ctx, dbos.Config{AppName: "bench", DatabaseURL: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("making DBOS: %w", err)
	}
	d := &durable{ctx: c, target: target}
	dbos.RegisterWorkflow(c, d.change)
	if err := dbos.Launch(c); err != nil {
		return nil, fmt.Errorf("launching DBOS: %w", err)
	}
	return d, nil
}

// change is the workflow.
func (d *durable) change(ctx dbos.Context, a asked) (string, error) {
	etag, err := dbos.RunAsStep(ctx, func(ctx context.Context) (string, error) { return d.target.etag(ctx, a.Campaign) }, dbos.WithStepName("preview"))
	if err != nil {
		return "", err
	}
	d.started.signal(a.ID)
	decision, err := dbos.Recv[string](ctx, "decision", time.Minute)
	if err != nil || decision != "approve" {
		return "rejected", err
	}
	return dbos.RunAsStep(ctx, func(ctx context.Context) (string, error) {
		return "applied", d.target.change(ctx, a.Campaign, a.Budget, etag, a.ID)
	}, dbos.WithStepName("apply"))
}

func (d *durable) name() string { return "dbos" }

func (d *durable) client(_ context.Context, n int) (func(context.Context) error, error) {
	budget := firstBudget
	return func(context.Context) error {
		budget++
		a := asked{ID: uuid.NewString(), Campaign: campaignID(n), Budget: strconv.Itoa(budget)}
		ready := d.started.expect(a.ID)
		handle, err := dbos.RunWorkflow(d.ctx, d.change, a, dbos.WithWorkflowID(a.ID))
		if err != nil {
			return err
		}
		<-ready // nobody approves what they have not seen
		if err := dbos.Send(d.ctx, a.ID, "approve", "decision"); err != nil {
			return err
		}
		result, err := handle.GetResult()
		if err != nil || result != "applied" {
			return errors.Join(fmt.Errorf("the workflow ended %q", result), err)
		}
		return nil
	}, nil
}

func (d *durable) effects(ctx context.Context) (int, error) {
	t, err := d.target.tally(ctx)
	return t.Effects, err
}

func (d *durable) close(context.Context) { _ = dbos.Shutdown(d.ctx, 10*time.Second) }

// do makes one call and reads the whole answer.
func (t targetAt) do(ctx context.Context, method, path string, body []byte, header map[string]string) (http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, t.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+t.token)
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := t.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("the target answered %d", response.StatusCode), err)
	}
	return response.Header, nil
}

func (t targetAt) etag(ctx context.Context, campaign string) (string, error) {
	header, err := t.do(ctx, http.MethodGet, "/v1/campaigns/"+campaign, nil, nil)
	return header.Get("ETag"), err
}

func (t targetAt) change(ctx context.Context, campaign, budget, etag, key string) error {
	body := []byte(`{"daily_budget":"` + budget + `","currency":"JPY"}`)
	_, err := t.do(ctx, http.MethodPatch, "/v1/campaigns/"+campaign, body, map[string]string{"If-Match": etag, "Idempotency-Key": key})
	return err
}
