package outbox_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/notify"
)

// The variables that make this binary a replica, for the test that kills one.
const (
	childDatabase = "OUTBOX_TEST_DATABASE"
	childReceiver = "OUTBOX_TEST_RECEIVER"
)

func TestMain(m *testing.M) {
	if os.Getenv(childDatabase) != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// childReceivers are the same in both processes.
func childReceivers(url string) []notify.Receiver { return []notify.Receiver{webhookTo("leads", url)} }

// childTexts are the texts of the one action.
func childTexts() (*catalog.Catalog, error) {
	ads, err := adbudget.New(adbudget.Config{BaseURL: "http://127.0.0.1:1", Token: "x", System: "ads.example/agency"})
	if err != nil {
		return nil, err
	}
	registry, err := connector.NewRegistry(ads)
	if err != nil {
		return nil, err
	}
	return catalog.New(registry.Texts()...)
}

// child runs one outbox until its standard input closes.
func child() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	texts, err := childTexts()
	if err != nil {
		return err
	}
	t := &bench{ctx: ctx}
	replica := newReplica(t, os.Getenv(childDatabase), texts, time.Second, childReceivers(os.Getenv(childReceiver))...)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return replica.Run(ctx)
}

// bench stands in for a test in the child.
type bench struct {
	testing.TB
	ctx context.Context
}

func (b *bench) Helper()                  {}
func (b *bench) Cleanup(func())           {}
func (b *bench) Context() context.Context { return b.ctx }
func (b *bench) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
	os.Exit(1)
}

// TestAReplicaThatIsKilledLosesNoMessage: it is killed while its try is under way, which the receiver holds. Another replica notices,
// and delivers under the same ID.
func TestAReplicaThatIsKilledLosesNoMessage(t *testing.T) {
	t.Parallel()
	r, group := newRig(t), newHook(t)
	group.hang = make(chan struct{})
	other := r.replica(childReceivers(group.url)...)
	r.begun(other)
	p := r.pending(target.PlainJPY(0))
	self, err := os.Executable()
	r.must(err)
	process := exec.Command(self)
	process.Env = append(os.Environ(), childDatabase+"="+r.url, childReceiver+"="+group.url)
	process.Stderr = os.Stderr
	stdin, err := process.StdinPipe()
	r.must(err)
	defer stdin.Close()
	r.must(process.Start())
	select {
	case <-group.came:
	case <-time.After(soon):
		t.Error("the replica has not tried")
	}
	r.must(process.Process.Kill())
	_ = process.Wait() // it was killed
	if n := r.number(`select count(*) from river_job where state = 'running'`); n != 1 {
		t.Fatalf("got %d tries under way after the kill, want 1", n)
	}
	first := group.firstID()
	group.release()
	other.run(t)
	eventually(t, "another replica delivers it", func() bool { return len(group.messages()) == 1 })
	if m := group.messages()[0]; m.id != first || m.preview != p.ID.String() {
		t.Errorf("got %+v, want the message %s that the killed one was sending", m, first)
	}
}
