package api_test

import (
	"net/http"
	"sync"
	"testing"
)

func (r *rig) prepareWith(keys []string, input object) reply {
	r.t.Helper()
	return r.do(ask{method: "POST", path: previewsPath, as: "agent", body: input, header: http.Header{"Idempotency-Key": keys}})
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const key = "8e03978e-40d5-43dd-bc93-6894a57f9324"
	first := r.prepareWith([]string{`"` + key + `"`}, raise(0, 12000))
	first.want(t, http.StatusCreated, "")
	for _, again := range []string{`"` + key + `"`, key, " \t" + key + " "} {
		got := r.prepareWith([]string{again}, raise(0, 12000))
		got.want(t, http.StatusOK, "")
		if got.text("preview_id") != first.text("preview_id") || got.at("replayed") != true {
			t.Errorf("%q: got %s, want the same preview, replayed", again, got.raw)
		}
	}
	r.prepareWith([]string{key}, raise(0, 13000)).want(t, http.StatusUnprocessableEntity, "idempotency_conflict")
	// Another caller's key is another key.
	other := r.do(ask{method: "POST", path: previewsPath, as: "sato", body: raise(1, 12000), header: http.Header{"Idempotency-Key": {key}}})
	other.want(t, http.StatusCreated, "")

	r.post("agent", of(first.text("preview_id"), "/apply"), nil).want(t, http.StatusOK, "")
	done := r.prepareWith([]string{key}, raise(0, 12000))
	done.want(t, http.StatusOK, "")
	if done.text("status") != "applied" || done.text("next") != "none" {
		t.Errorf("got %s, want the change as it stands", done.raw)
	}
}

func TestIdempotencyKeySyntax(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, keys := range map[string][]string{
		"empty": {""}, "empty string": {`""`}, "open quote": {`"abc`}, "list": {`"a", "b"`}, "twice": {`"a"`, `"a"`},
		"parameter": {`"a"; b=1`}, "bare with space": {"a b"}, "wrong escape": {`"a\b"`}, "not ASCII": {`"キー"`}, "too long": {`"` + long(129) + `"`},
		"too long bare": {long(129)},
	} {
		got := r.prepareWith(keys, raise(0, 12000))
		if got.status != http.StatusBadRequest || got.text("code") != "invalid_input" || got.field("Idempotency-Key") == "" {
			t.Errorf("%s: got %d %s, want 400 that names the header", name, got.status, got.raw)
		}
	}
	for n, key := range []string{`"` + long(128) + `"`, `"with space"`, `"a\"b\\c"`, "a:b/c+d=="} {
		r.prepareWith([]string{key}, raise(n+1, 12000)).want(t, http.StatusCreated, "")
	}
}

func TestManyWithOneKeyGetOnePreview(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	replies := make([]reply, 8)
	var wg sync.WaitGroup
	for n := range replies {
		wg.Go(func() { replies[n] = r.prepareWith([]string{`"k"`}, raise(0, 12000)) })
	}
	wg.Wait()
	made := 0
	for _, got := range replies {
		if got.text("preview_id") == "" || got.text("preview_id") != replies[0].text("preview_id") {
			t.Errorf("got %d %s, want the preview %s", got.status, got.raw, replies[0].text("preview_id"))
		}
		if got.status == http.StatusCreated {
			made++
		}
	}
	if made != 1 {
		t.Errorf("got %d answers 129, want 1", made)
	}
}

func TestSameInputWithoutAKeyIsTheSamePreview(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 12000))
	again := r.post("agent", previewsPath, raise(0, 12000))
	again.want(t, http.StatusOK, "")
	if again.text("preview_id") != id || again.at("replayed") != true {
		t.Errorf("got %s, want %s, replayed", again.raw, id)
	}
}
