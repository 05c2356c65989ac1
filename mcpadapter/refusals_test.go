package mcpadapter_test

import (
	"crypto/ed25519"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/cutonce/cutonce/internal/target"
)

// leaked are keys of the catalogue without a text, and words that only our insides use.
var leaked = regexp.MustCompile(`\b(fault|field|status|tool|adbudget)\.[a-z_]+|goroutine|SQLSTATE|\bpanic\b|\bpgx\b|\.go:|<no value>`)

// Every input that must not come through, as an agent sees its refusal: the code, the place, words in both languages, a next
// step, and nothing stored or sent.
func TestBadInput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	campaign := target.PlainJPY(1)
	amount := func(raw string) string {
		return fmt.Sprintf(`{"campaign_id":%q,"new_daily_budget_jpy":%s,"reason":"a test"}`, campaign, raw)
	}
	reason := func(raw string) string {
		return fmt.Sprintf(`{"campaign_id":%q,"new_daily_budget_jpy":12000,"reason":%s}`, campaign, raw)
	}
	open := r.previewed(target.PlainJPY(2), "12000")
	const preview, apply = "budget_change_preview", "budget_change_apply"
	for name, c := range map[string]struct{ tool, args, code, path string }{
		"a percentage":          {preview, amount(`"+20%"`), "invalid_number", "/new_daily_budget_jpy"},
		"a relative word":       {preview, amount(`"double"`), "invalid_number", "/new_daily_budget_jpy"},
		"a Japanese multiple":   {preview, amount(`"2倍"`), "invalid_number", "/new_daily_budget_jpy"},
		"a number in quotes":    {preview, amount(`"12000"`), "invalid_number", "/new_daily_budget_jpy"},
		"zero":                  {preview, amount(`0`), "invalid_number", "/new_daily_budget_jpy"},
		"negative":              {preview, amount(`-12000`), "invalid_number", "/new_daily_budget_jpy"},
		"out of range":          {preview, amount(`100000001`), "invalid_number", "/new_daily_budget_jpy"},
		"2^53+1":                {preview, amount(`9007199254740993`), "invalid_number", "/new_daily_budget_jpy"},
		"1e400":                 {preview, amount(`1e400`), "invalid_number", "/new_daily_budget_jpy"},
		"a fraction of a yen":   {preview, amount(`12000.5`), "invalid_number", "/new_daily_budget_jpy"},
		"null":                  {preview, amount(`null`), "invalid_number", "/new_daily_budget_jpy"},
		"a duplicate key":       {preview, `{"campaign_id":"2002002","campaign_id":"2002003","new_daily_budget_jpy":12000,"reason":"x"}`, "invalid_input", "/campaign_id"},
		"an unknown key":        {preview, `{"campaign_id":"2002002","new_daily_budget_jpy":12000,"reason":"x","percent":20}`, "invalid_input", "/percent"},
		"another case":          {preview, `{"Campaign_id":"2002002","new_daily_budget_jpy":12000,"reason":"x"}`, "invalid_input", "/Campaign_id"},
		"two amounts":           {preview, `{"campaign_id":"2002002","new_daily_budget_jpy":12000,"new_daily_budget_krw":12000,"reason":"x"}`, "invalid_input", "/new_daily_budget_krw"},
		"no amount":             {preview, `{"campaign_id":"2002002","reason":"x"}`, "invalid_input", ""},
		"another currency":      {preview, `{"campaign_id":"2002002","new_daily_budget_krw":12000,"reason":"x"}`, "currency_mismatch", "/new_daily_budget_krw"},
		"a numeric ID":          {preview, `{"campaign_id":2002002,"new_daily_budget_jpy":12000,"reason":"x"}`, "invalid_input", "/campaign_id"},
		"deep JSON":             {preview, reason(strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100)), "invalid_input", ""},
		"a control character":   {preview, reason(`"a\u0000b"`), "invalid_input", "/reason"},
		"a bidi override":       {preview, reason(`"a\u202eb"`), "invalid_input", "/reason"},
		"half a surrogate pair": {preview, reason(`"\ud800"`), "invalid_input", "/reason"},
		"no object":             {preview, `[]`, "invalid_input", ""},
		"a long key":            {preview, strings.Replace(amount(`12000`), `{`, `{"idempotency_key":"`+strings.Repeat("k", 129)+`",`, 1), "invalid_input", "/idempotency_key"},
		"an empty key":          {preview, strings.Replace(amount(`12000`), `{`, `{"idempotency_key":"",`, 1), "invalid_input", "/idempotency_key"},
		"an unknown format":     {preview, strings.Replace(amount(`12000`), `{`, `{"response_format":"full",`, 1), "invalid_input", "/response_format"},
		"an unknown campaign":   {preview, `{"campaign_id":"9999999","new_daily_budget_jpy":12000,"reason":"x"}`, "not_found", "/campaign_id"},
		"apply with an amount":  {apply, fmt.Sprintf(`{"preview_id":%q,"new_daily_budget_jpy":1}`, open), "invalid_input", "/new_daily_budget_jpy"},
		"apply with a format":   {apply, fmt.Sprintf(`{"preview_id":%q,"response_format":"detailed"}`, open), "invalid_input", "/response_format"},
		"apply without an ID":   {apply, `{}`, "invalid_input", "/preview_id"},
		"apply to a number":     {apply, `{"preview_id":1}`, "invalid_input", "/preview_id"},
		"apply to no ID":        {apply, id("latest"), "not_found", ""},
		"apply to an unknown":   {apply, id("pv_0000000000000000000000000g"), "not_found", ""},
		"a long wait":           {"change_status", fmt.Sprintf(`{"preview_id":%q,"wait_s":51}`, open), "invalid_number", "/wait_s"},
		"a wait in words":       {"change_status", fmt.Sprintf(`{"preview_id":%q,"wait_s":"10s"}`, open), "invalid_number", "/wait_s"},
		"no justification":      {"approval_request", id(open), "invalid_input", "/justification"},
		"an unknown status":     {"changes_find", `{"status":"done"}`, "invalid_input", "/status"},
		"a made-up cursor":      {"changes_find", `{"cursor":"2"}`, "invalid_input", ""},
		"a find's unknown key":  {"campaigns_find", `{"q":"メロン"}`, "invalid_input", "/q"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			english := r.refused(t, c.tool, c.args, "en", c.code, c.path)
			japanese := r.refused(t, c.tool, c.args, "ja", c.code, c.path)
			if english == japanese {
				t.Errorf("the message is the same in both languages: %s", english)
			}
		})
	}
	t.Cleanup(func() {
		if n := len(r.ads.Entries()); n != 0 {
			t.Errorf("got %d effects, want none", n)
		}
	})
}

// refused makes the call and checks everything that a refusal owes. It returns its message.
func (r *rig) refused(t *testing.T, tool, args, lang, code, path string) string {
	t.Helper()
	got, err := r.tryCall(r.issuer.token(), tool, args, lang)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case !got.IsError || got.Code != code:
		t.Errorf("got isError %v, code %q, want a refusal %s: %s", got.IsError, got.Code, code, got.Raw)
	case got.Retryable == nil || *got.Retryable:
		t.Errorf("the refusal of an input is called retryable: %s", got.Raw)
	case got.Next == "" || got.Next == "none" || got.Message == "":
		t.Errorf("the refusal names no next step: %s", got.Raw)
	case leaked.Match(got.Raw):
		t.Errorf("the refusal shows %q: %s", leaked.Find(got.Raw), got.Raw)
	}
	for _, f := range got.Fields {
		if f.Path == path && f.Reason != "" {
			return got.Message
		}
	}
	if path != "" {
		t.Errorf("no field %s with a reason: %s", path, got.Raw)
	}
	return got.Message
}

// What is refused before a tool is reached: HTTP statuses, the challenge, and the same body inside a JSON-RPC error.
func TestRefusedAtTheDoor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	list := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":%s}}`, meta)
	public, _ := r.issuer.key.Public().(ed25519.PublicKey)
	for name, c := range map[string]struct {
		token, body string
		header      map[string]string
		status      int
		code        string
		challenge   string
	}{
		"no token":          {"", list, nil, 401, "unauthenticated", `Bearer scope="ads:read", resource_metadata="` + metadataURL + `"`},
		"an expired token":  {r.issuer.token(with("exp", 1_700_000_000)), list, nil, 401, "unauthenticated", `Bearer error="invalid_token", scope="ads:read", resource_metadata="` + metadataURL + `"`},
		"a wrong audience":  {r.issuer.token(with("aud", "https://other.example")), list, nil, 401, "unauthenticated", `error="invalid_token"`},
		"no audience":       {r.issuer.token(with("aud", nil)), list, nil, 401, "unauthenticated", `error="invalid_token"`},
		"another issuer":    {r.issuer.token(with("iss", "https://evil.example")), list, nil, 401, "unauthenticated", `error="invalid_token"`},
		"alg none":          {r.issuer.sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, r.issuer.claims()), list, nil, 401, "unauthenticated", `error="invalid_token"`},
		"a shared secret":   {r.issuer.sign(jwt.SigningMethodHS256, []byte(public), r.issuer.claims()), list, nil, 401, "unauthenticated", `error="invalid_token"`},
		"no JWT":            {"secret", list, nil, 401, "unauthenticated", `error="invalid_token"`},
		"another scheme":    {"", list, map[string]string{"Authorization": "Basic YTpi"}, 401, "unauthenticated", `error="invalid_request"`},
		"a foreign origin":  {r.issuer.token(), list, map[string]string{"Origin": "https://evil.example"}, 403, "forbidden", ""},
		"the null origin":   {r.issuer.token(), list, map[string]string{"Origin": "null"}, 403, "forbidden", ""},
		"a cross-site page": {r.issuer.token(), list, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, "forbidden", ""},
		"10 MB":             {r.issuer.token(), strings.Repeat(" ", 10<<20), map[string]string{"Expect": "100-continue"}, 413, "too_large", ""},
		"a byte too many":   {r.issuer.token(), list + strings.Repeat(" ", 128<<10-len(list)+1), nil, 413, "too_large", ""},
		"NaN":               {r.issuer.token(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"budget_change_preview","arguments":{"new_daily_budget_jpy":NaN}}}`, nil, 400, "invalid_input", ""},
		"half a message":    {r.issuer.token(), list[:len(list)/2], nil, 400, "invalid_input", ""},
		"two messages":      {r.issuer.token(), list + list, nil, 400, "invalid_input", ""},
		"nothing":           {r.issuer.token(), "", nil, 400, "invalid_input", ""},
		"two tool names":    {r.issuer.token(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"campaigns_find","name":"change_cancel"}}`, nil, 400, "invalid_input", ""},
		"two methods":       {r.issuer.token(), `{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}`, nil, 400, "invalid_input", ""},
		"very deep JSON":    {r.issuer.token(), strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000), nil, 400, "invalid_input", ""},
		"a missing scope":   {r.issuer.token(with("scope", "ads:read")), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"budget_change_apply","arguments":{}}}`, nil, 403, "insufficient_scope", `Bearer error="insufficient_scope", scope="ads:budget", resource_metadata="` + metadataURL + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := r.post(c.token, c.body, c.header)
			for _, want := range []string{`"code":"` + c.code + `"`, `"next":"`, `"jsonrpc":"2.0"`} {
				if !strings.Contains(x.text, want) {
					t.Errorf("got %s, want it to hold %s", x.text, want)
				}
			}
			if x.status != c.status {
				t.Errorf("got %d, want %d", x.status, c.status)
			}
			if got := x.header.Get("Www-Authenticate"); c.challenge == "" && got != "" || !strings.Contains(got, c.challenge) {
				t.Errorf("got the challenge %q, want %q", got, c.challenge)
			}
			if leaked.MatchString(x.text) {
				t.Errorf("the refusal shows %q: %s", leaked.FindString(x.text), x.text)
			}
		})
	}
}

// A byte below the limit is still read.
func TestLargestBody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	list := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":%s}}`, meta)
	x := r.post(r.issuer.token(), list+strings.Repeat(" ", 128<<10-len(list)), modernHeaders("tools/list", "", "en"))
	if x.status != http.StatusOK {
		t.Errorf("got %d: %s", x.status, x.text)
	}
}
