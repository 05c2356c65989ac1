package web

import (
	"context"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/preview"
)

// Trails reads what proves that a change's record is whole (store.Store).
type Trails interface {
	Trail(ctx context.Context, tenant string, id preview.ID) (audit.Trail, error)
}

// record is whether a change's record is whole, in words.
type record struct {
	audit.Proof
	// Broken says in words what is wrong, empty if nothing is; Chain and Sealing say what holds.
	Broken, Chain, Sealing string
}

// recordOf checks the chain and the seal of a change that this person may read. A trail that cannot be read is told to the log, and
// leaves the page without the check, which then says so.
func (c *console) recordOf(v *visit, id preview.ID) *record {
	if c.Trails == nil {
		return nil
	}
	trail, err := c.Trails.Trail(v.r.Context(), v.who.Tenant, id)
	if err != nil {
		c.Log.WarnContext(v.r.Context(), "reading a change's trail", "request_id", v.requestID, "change", id.String(), "error", err)
		return nil
	}
	r := &record{Proof: c.Keys.Prove(trail)}
	if r.Flaw != "" {
		c.Log.ErrorContext(v.r.Context(), "a change's record is broken", "request_id", v.requestID, "change", id.String(), "flaw", r.Flaw, "event", r.At)
		r.Broken = v.t("web.record.flaw."+string(r.Flaw), "seq", r.At)
		return r
	}
	r.Chain = v.t("web.record.chain", "n", r.Events)
	r.Sealing = v.sealWords(r.Proof)
	return r
}

func (v *visit) sealWords(p audit.Proof) string {
	switch {
	case p.Seal == nil:
		return v.t("web.record.unsealed")
	case !p.Vouched:
		return v.t("web.record.other_key", "seal", p.Seal.Number)
	case !p.Recomputed:
		return v.t("web.record.large", "seal", p.Seal.Number, "leaves", p.Seal.Leaves)
	case p.Unsealed > 0:
		return v.t("web.record.behind", "seal", p.Seal.Number, "seq", p.Sealed, "n", p.Unsealed)
	}
	return v.t("web.record.sealed", "seal", p.Seal.Number, "n", p.Seal.Leaves)
}
