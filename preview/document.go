package preview

import (
	"encoding/json"
	"fmt"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/canon"
)

// documentFormat is the version of the document's layout, so that old documents can always be read.
const documentFormat = 1

// stored is the document: all that is shown, approved and sent, and for whom. Credentials and the key header are not in it.
type stored struct {
	Format        int    `json:"format"`
	Tenant        string `json:"tenant"`
	Action        string `json:"action"`
	ActionVersion int    `json:"action_version"`
	Requester     string `json:"requester"`
	Content
}

func document(who actor.Actor, a connector.Action, c Content) ([]byte, error) {
	value, err := canon.FromStruct(stored{
		Format: documentFormat, Tenant: who.Tenant, Action: a.Name, ActionVersion: a.Version, Requester: who.ID(), Content: c,
	})
	if err != nil {
		return nil, err
	}
	return canon.Marshal(value)
}

// ReadDocument reads the content back from stored bytes. Input numbers stay exact.
func ReadDocument(raw []byte) (Content, error) {
	var doc stored
	if err := json.Unmarshal(raw, &doc); err != nil {
		return Content{}, fmt.Errorf("reading a stored document: %w", err)
	}
	if doc.Format != documentFormat {
		return Content{}, fmt.Errorf("a stored document has format %d, this build reads %d", doc.Format, documentFormat)
	}
	return doc.Content, nil
}

// inputHash is what tells a repeated call from another one. It covers nothing volatile.
func inputHash(action string, version int, input connector.Input) (canon.Digest, error) {
	return canon.SumOf(map[string]any{"action": action, "version": version, "input": map[string]any(input)})
}

// CheckDigest compares the document with its digest, after every read: a row that was changed behind the service's back is
// refused rather than shown.
func (p Preview) CheckDigest() error {
	if canon.Sum(p.Document) != p.Digest {
		return fmt.Errorf("the stored document of %s does not match its digest", p.ID)
	}
	return nil
}
