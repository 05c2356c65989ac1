package doctor

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"

	"github.com/cutonce/cutonce/audit"
)

var errKey = errors.New("there is no key to verify it with")

// sealKey holds the key up against the last seal. A key that is made from the deployment's secret tells whether the secret is still
// the one that this database has known.
func (d *Deployment) sealKey(_ context.Context, see *Seen) {
	if d.KeyErr != nil {
		see.fail("make one with openssl genpkey -algorithm ed25519", "%v", d.KeyErr)
		return
	}
	derived := d.Settings.SealKeyFile == ""
	if derived {
		see.warn("set CUTONCE_SEAL_KEY_FILE where the secret's holders must not sign", "seals are signed with a key made from the deployment's secret (%s)", d.Key.ID())
	}
	if !d.migrated() || d.facts.Last == nil {
		see.ok("key %s; nothing is sealed yet to hold it up against", d.Key.ID())
		return
	}
	last := *d.facts.Last
	err := audit.Keys{d.Key.ID(): d.Key.Public()}.Check(last)
	switch {
	case err == nil:
		see.ok("key %s verifies the last seal (%d of %s)", d.Key.ID(), last.Number, last.At.UTC().Format("2006-01-02 15:04:05Z"))
	case last.KeyID == d.Key.ID():
		see.fail("cutonce audit verify --database", "the last seal (%d) does not verify: %v", last.Number, err)
	case derived:
		see.fail("start with the secret that the other replicas have", "the last seal was signed with the key %s: is CUTONCE_SECRET another one than before? Idempotency keys are made from it too", last.KeyID)
	default:
		see.warn("if it was changed on purpose, give verifiers both keys", "the last seal was signed with another key (%s)", last.KeyID)
	}
}

// witnessed looks at the file outside the database, without writing to it.
func (d *Deployment) witnessed(_ context.Context, see *Seen) {
	path := d.Settings.SealWitness
	if path == "" {
		see.warn("set CUTONCE_SEAL_WITNESS to a file outside the database's machine and backups", "there is none: a restore from a backup goes unnoticed")
		return
	}
	if d.KeyErr != nil {
		see.unseen(errKey)
		return
	}
	if !writable(filepath.Dir(path)) {
		see.fail("let the service write there", "files cannot be made in the folder of CUTONCE_SEAL_WITNESS")
		return
	}
	seal, err := audit.ReadWitness(path)
	switch {
	case err != nil:
		see.fail("move it away if it is not one", "CUTONCE_SEAL_WITNESS: %v", err)
	case seal == nil:
		see.ok("the folder can be written to; nothing is witnessed yet")
	case seal.KeyID == d.Key.ID() && audit.Keys{d.Key.ID(): d.Key.Public()}.Check(*seal) != nil:
		see.fail("find out who wrote to it", "the witness holds a forged seal")
	case !d.migrated():
		see.ok("it holds seal %d; the database could not be asked about it", seal.Number)
	case d.facts.Witnessed == nil || !bytes.Equal(d.facts.Witnessed.Hash, seal.Hash):
		see.fail("cutonce restore status after the start, which will freeze; or name the right database",
			"the database does not know seal %d: it was restored from a backup, or it is another one", seal.Number)
	default:
		see.ok("the database knows seal %d", seal.Number)
	}
}
