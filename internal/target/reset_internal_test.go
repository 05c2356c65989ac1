package target

import (
	"net/http"
	"testing"
)

// TestNoEffectAcrossAReset takes the one interleaving that no request can be made to hit for certain: everything
// before the effect is done, then the reset comes, then the effect's turn.
func TestNoEffectAcrossAReset(t *testing.T) {
	t.Parallel()
	ads := NewAds(AdsConfig{})
	c := call{op: OpChange, resource: CampaignAutumnSearch, key: "k"}
	d := ads.arrive(c)
	ads.Reset()
	acted := false
	defer func() {
		if r := recover(); r != http.ErrAbortHandler || acted {
			t.Errorf("got %v, acted %v, want the connection cut and no effect", r, acted)
		}
		if !ads.mu.TryLock() {
			t.Error("the lock is still held")
		}
	}()
	ads.perform(d, keyClaim{}, func(bool) answer {
		acted = true
		return answer{}
	})
}
