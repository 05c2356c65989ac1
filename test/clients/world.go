package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/cutonce/cutonce/internal/child"
	"github.com/cutonce/cutonce/internal/devissuer"
)

// world is a running instance and what the cases must know of it.
type world struct {
	dir  string
	file string // the JSON that the cases read
	log  *record
}

// facts are what the cases are told. The names are read in story.mjs and clients.mjs.
type facts struct {
	URL       string            `json:"url"`
	Binary    string            `json:"binary"`
	Dir       string            `json:"dir"`
	Target    string            `json:"target"`
	TargetKey string            `json:"targetKey"`
	Tokens    map[string]string `json:"tokens"`
}

const startFor = time.Minute

// startWorld runs `cutonce dev` in a folder of its own on free ports. stop ends it, also when an error is returned.
func startWorld(ctx context.Context, binary string) (w *world, stop func(), err error) {
	// Postgres may run under another account than ours, which must be able to enter.
	dir, err := os.MkdirTemp("/var/tmp", "cutonce-clients-")
	if err != nil {
		return nil, func() {}, err
	}
	w = &world{dir: dir, file: filepath.Join(dir, "world.json"), log: newRecord()}
	stops := []func(){func() { _ = os.RemoveAll(dir) }}
	stop = func() {
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
	}
	state := filepath.Join(dir, "state")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(state, 0o700)); err != nil {
		return nil, stop, err
	}
	instance, err := child.Start(child.Config{
		Path: binary, Log: w.log,
		Args: []string{
			"dev", "--listen", "127.0.0.1:0", "--metrics-listen", "off", "--ads-listen", "127.0.0.1:0", "--deploys-listen", "127.0.0.1:0",
			"--postgres-port", "0", "--postgres-dir", filepath.Join(dir, "postgres"), "--state-dir", state,
		},
		Env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "PGBIN=" + os.Getenv("PGBIN"),
			// A look-up after a lost reply comes soon, and nothing expires while the clients start.
			"CUTONCE_CLOCK_PROBE_BASE=200ms", "CUTONCE_CLOCK_SWEEP=300ms",
		},
	})
	if err != nil {
		return nil, stop, err
	}
	stops = append(stops, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		_ = instance.Stop(ctx)
	})
	return w, stop, w.learn(ctx, binary, state, instance)
}

// learn waits until the instance says how to use it, and writes what the cases need.
func (w *world) learn(ctx context.Context, binary, state string, instance *child.Process) error {
	ctx, cancel := context.WithTimeout(ctx, startFor)
	defer cancel()
	if err := w.log.saw(ctx, "ready in ", instance); err != nil {
		return err
	}
	url, err1 := w.log.find(`Console +(http://[0-9.:]+)/`)
	target, err2 := w.log.find(`Ads +(http://[0-9.:]+) `)
	key, err3 := os.ReadFile(filepath.Join(state, "ads-token"))
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	f := facts{URL: url, Binary: binary, Dir: w.dir, Target: target, TargetKey: strings.TrimSpace(string(key))}
	if f.Tokens, err1 = tokens(state, url); err1 != nil {
		return err1
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return os.WriteFile(w.file, text, 0o600)
}

// tokens are made with the key of the instance's development issuer: the agent's, one that lacks the scope for changes, and
// an approver's.
func tokens(state, url string) (map[string]string, error) {
	issuer, err := devissuer.New(devissuer.Config{
		Dir: state, URL: url + "/dev/issuer", Audience: url, Now: time.Now, Rand: bytes.NewReader(nil), // the key exists
	})
	if err != nil {
		return nil, err
	}
	agent, err1 := issuer.Token("agent")
	reader, err2 := issuer.Token("agent", devissuer.WithScopes("ads:read"))
	kim, err3 := issuer.Token("kim")
	return map[string]string{"agent": agent, "reader": reader, "approver": kim}, errors.Join(err1, err2, err3)
}

// record is what the instance says. It can be waited for.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newRecord() *record { return &record{more: make(chan struct{})} }

// Write keeps the text and wakes who waits.
func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.more)
	r.more = make(chan struct{})
	return r.text.Write(p)
}

func (r *record) read() (string, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String(), r.more
}

func (r *record) saw(ctx context.Context, text string, instance *child.Process) error {
	for {
		said, more := r.read()
		if strings.Contains(said, text) {
			return nil
		}
		select {
		case <-more:
		case <-instance.Done():
			return fmt.Errorf("the instance ended: %w", instance.Err())
		case <-ctx.Done():
			return fmt.Errorf("the instance does not get ready: %s", said)
		}
	}
}

func (r *record) find(pattern string) (string, error) {
	said, _ := r.read()
	found := regexp.MustCompile(pattern).FindStringSubmatch(said)
	if found == nil {
		return "", fmt.Errorf("the instance does not say %s", pattern)
	}
	return found[1], nil
}
