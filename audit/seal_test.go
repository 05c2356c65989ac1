package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/audit"
)

// The tree hashes of RFC 6962's shape, computed here by hand from nodes.
func TestRootsSplitAtThePowerOfTwoBelow(t *testing.T) {
	t.Parallel()
	leaf := func(n byte) [32]byte { return sha256.Sum256([]byte{0, n}) }
	node := func(l, r [32]byte) [32]byte { return sha256.Sum256(append(append([]byte{1}, l[:]...), r[:]...)) }
	a, b, c, d, e := leaf(1), leaf(2), leaf(3), leaf(4), leaf(5)
	for n, want := range map[int][32]byte{
		0: sha256.Sum256(nil), 1: a, 2: node(a, b), 3: node(node(a, b), c), 4: node(node(a, b), node(c, d)), 5: node(node(node(a, b), node(c, d)), e),
	} {
		if got := audit.Root([][32]byte{a, b, c, d, e}[:n]); got != want {
			t.Errorf("%d leaves: got %x, want %x", n, got, want)
		}
	}
	if got := audit.Root([][32]byte{node(a, b)}); got == audit.Root([][32]byte{a}) {
		t.Error("a node reads as a leaf")
	}
}

func TestEveryPartOfALeafCounts(t *testing.T) {
	t.Parallel()
	whole := audit.Leaf{Kind: audit.PreviewChain, Chain: [16]byte{1}, Tenant: "acme", Seq: 3, Head: bytes.Repeat([]byte{7}, 32)}
	for name, change := range map[string]func(*audit.Leaf){
		"kind": func(l *audit.Leaf) { l.Kind = audit.ControlChain }, "chain": func(l *audit.Leaf) { l.Chain[0] = 2 },
		"tenant": func(l *audit.Leaf) { l.Tenant = "acm" }, "seq": func(l *audit.Leaf) { l.Seq = 4 },
		"head": func(l *audit.Leaf) { l.Head = bytes.Repeat([]byte{8}, 32) },
	} {
		other := whole
		change(&other)
		if other.Sum() == whole.Sum() {
			t.Errorf("%s does not count", name)
		}
	}
}

func testKey(t *testing.T, secret string) audit.Key {
	t.Helper()
	key, err := audit.DeriveKey([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestEveryPartOfASealIsSigned(t *testing.T) {
	t.Parallel()
	key, other := testKey(t, "one"), testKey(t, "two")
	keys := audit.Keys{key.ID(): key.Public()}
	draft := audit.Seal{Number: 2, Window: 1, System: 5, From: 10, To: 20, CaughtUp: true, At: time.UnixMicro(1), Prev: bytes.Repeat([]byte{1}, 32)}
	sealed := key.Sign(draft, nil)
	if err := keys.Check(sealed); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*audit.Seal){
		"number": func(s *audit.Seal) { s.Number++ }, "window": func(s *audit.Seal) { s.Window++ }, "system": func(s *audit.Seal) { s.System++ },
		"from": func(s *audit.Seal) { s.From++ }, "to": func(s *audit.Seal) { s.To++ }, "caught up": func(s *audit.Seal) { s.CaughtUp = false },
		"time": func(s *audit.Seal) { s.At = s.At.Add(time.Microsecond) }, "leaves": func(s *audit.Seal) { s.Leaves++ },
		"prev": func(s *audit.Seal) { s.Prev = bytes.Repeat([]byte{2}, 32) }, "root": func(s *audit.Seal) { s.Root = bytes.Repeat([]byte{2}, 32) },
	} {
		tampered := sealed
		change(&tampered)
		if keys.Check(tampered) == nil {
			t.Errorf("%s is not covered by the hash", name)
		}
		// Hashed again, as somebody without the key can: by another key's Sign, keeping the signature.
		rehashed := other.Sign(tampered, nil)
		rehashed.KeyID, rehashed.Signature = sealed.KeyID, sealed.Signature
		if name != "leaves" && name != "root" && keys.Check(rehashed) == nil {
			t.Errorf("%s is not covered by the signature", name)
		}
	}
	if err := keys.Check(other.Sign(draft, nil)); err == nil || !strings.Contains(err.Error(), "not among those given") {
		t.Errorf("another key: got %v", err)
	}
}

func TestKeysReadBack(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := audit.ReadKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	if err != nil || !key.Public().Equal(public) {
		t.Fatalf("got %v, want the key that was written", err)
	}
	pkix, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"one word": audit.WritePublic(public) + "\n", "PEM": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix})),
	} {
		if got, err := audit.ReadPublic(text); err != nil || !got.Equal(public) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	for _, wrong := range []string{"", "nonsense", audit.WritePublic(public)[4:], "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"} {
		if _, err := audit.ReadPublic(wrong); err == nil {
			t.Errorf("%q was read as a public key", wrong)
		}
		if _, err := audit.ReadKey([]byte(wrong)); err == nil {
			t.Errorf("%q was read as a private key", wrong)
		}
	}
	if testKey(t, "one").ID() != testKey(t, "one").ID() || testKey(t, "one").ID() == testKey(t, "two").ID() {
		t.Error("a derived key depends on its secret and on nothing else")
	}
}

func TestAWitnessIsReplacedWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "witness")
	if w, err := audit.ReadWitness(path); w != nil || err != nil {
		t.Fatalf("got %v, %v, want none yet", w, err)
	}
	key := testKey(t, "one")
	for n := range int64(3) {
		want := key.Sign(audit.Seal{Number: n + 1, System: 1 << 63, At: time.UnixMicro(5), Prev: audit.Genesis[:]}, nil)
		old, err := audit.ReadWitness(path)
		if err := errors.Join(err, audit.CheckWritable(path), audit.WriteWitness(path, old, want)); err != nil {
			t.Fatal(err)
		}
		got, err := audit.ReadWitness(path)
		if err != nil || got.Number != n+1 || (audit.Keys{key.ID(): key.Public()}).Check(*got) != nil {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 2 {
		t.Errorf("got %v, %v, want the witness and its lock alone", left, err)
	}
	if err := os.WriteFile(path, []byte("half a wit"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.ReadWitness(path); err == nil {
		t.Error("nonsense was read as a witness")
	}
	if audit.CheckWritable(filepath.Join(path, "below")) == nil {
		t.Error("a file below a file is said to be writable")
	}
}

// file is an export of chains under one seal, line by line.
func file(t *testing.T, chains ...[]audit.Event) []string {
	t.Helper()
	var out bytes.Buffer
	w := audit.NewWriter(&out, hexName)
	var leaves []audit.Leaf
	for _, c := range chains {
		last := c[len(c)-1]
		leaves = append(leaves, audit.Leaf{Kind: audit.PreviewChain, Chain: last.Preview, Tenant: last.Tenant, Seq: last.Seq, Head: last.Hash})
	}
	seal := testKey(t, "one").Sign(audit.Seal{Number: 1, Window: 1, To: 1 << 40, CaughtUp: true, At: time.UnixMicro(9), Prev: audit.Genesis[:]}, leaves)
	err := errors.Join(w.Header(time.UnixMicro(10), "", time.Time{}), w.Seal(seal))
	for i, l := range leaves {
		err = errors.Join(err, w.Leaf(1, int64(i), l, true))
	}
	for i, c := range chains {
		for _, e := range c {
			err = errors.Join(err, w.Event(e, 5))
		}
		err = errors.Join(err, w.Head(leaves[i]))
	}
	if err = errors.Join(err, w.End()); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func hexName(chain [16]byte) string { return "pv_" + hex.EncodeToString(chain[:1]) }

func verifyLines(t *testing.T, lines []string) (audit.Report, error) {
	t.Helper()
	key := testKey(t, "one")
	return audit.Verifier{Keys: audit.Keys{key.ID(): key.Public()}, Name: hexName}.Verify(strings.NewReader(strings.Join(lines, "\n")))
}

func TestLinesOfAFileThatWereMoved(t *testing.T) {
	t.Parallel()
	// Lines: 0 header, 1 seal, 2 leaf, 3-7 events, 8 head, 9 end.
	for name, tc := range map[string]struct {
		change func([]string) []string
		want   string
	}{
		"untouched":      {func(l []string) []string { return l }, ""},
		"swapped":        {func(l []string) []string { l[4], l[5] = l[5], l[4]; return l }, "pv_01, event 2: it stands behind event 3"},
		"twice":          {func(l []string) []string { return slices.Insert(l, 5, l[4]) }, "pv_01, event 2: it is there twice"},
		"the first gone": {func(l []string) []string { return slices.Delete(l, 3, 4) }, "pv_01, event 1: event 1 is missing"},
		"the last gone":  {func(l []string) []string { return slices.Delete(l, 7, 8) }, "pv_01, event 5: event 5 is missing: seal 1"},
		"no head":        {func(l []string) []string { return slices.Delete(l, 8, 9) }, "pv_01: its events are there and its record is not"},
		"no chain":       {func(l []string) []string { return slices.Delete(l, 3, 9) }, "pv_01, event 5: all of it is gone"},
		"no leaf":        {func(l []string) []string { return slices.Delete(l, 2, 3) }, "seal 1: its leaves are not those"},
		"no seal":        {func(l []string) []string { return slices.Delete(l, 1, 2) }, "seal 1: its leaf 0 is not in its place"},
		"no end":         {func(l []string) []string { return l[:9] }, "the export ends early"},
		"more":           {func(l []string) []string { return append(l, l[8]) }, "something stands behind the end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := verifyLines(t, tc.change(file(t, chain(5))))
			if err != nil {
				t.Fatal(err)
			}
			said := fmt.Sprint(report.Findings)
			if tc.want == "" && len(report.Findings) > 0 || !strings.Contains(said, tc.want) {
				t.Errorf("got %s, want %q", said, tc.want)
			}
		})
	}
}

func TestWhatIsNoExport(t *testing.T) {
	t.Parallel()
	good := file(t, chain(2))
	for name, lines := range map[string][]string{
		"empty": {""}, "no header": good[1:], "not JSON": {good[0], "nonsense"}, "an unknown record": {good[0], `{"record":"riddle"}`},
	} {
		if _, err := verifyLines(t, lines); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// A body that is no text, or that JSON would write otherwise, comes back byte for byte.
func TestBodiesKeepTheirBytes(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "{}", "\xff\xfe", "<&>\u2028\x00", `{"a":"日本"}`} {
		e := audit.Event{Preview: [16]byte{1}, Seq: 1, Tenant: "acme", Kind: "prepared", Actor: "a", At: time.UnixMicro(1), Body: []byte(body)}
		sum := e.Sum(audit.Genesis[:])
		e.Hash = sum[:]
		report, err := verifyLines(t, file(t, []audit.Event{e}))
		if err != nil || !report.OK() {
			t.Errorf("%q: got %v, %v", body, report.Findings, err)
		}
	}
}
