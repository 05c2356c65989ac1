package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/doctor"
)

const publishedKey = `{"keys":[{"kty":"EC","use":"sig","alg":"ES256","kid":"a","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`

// reachable is what serve needs, with an issuer and a platform that answer.
func reachable(t *testing.T) []string {
	t.Helper()
	var issuer *httptest.Server
	issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/openid-configuration") {
			at := issuer.URL
			_, _ = io.WriteString(w, `{"issuer":"`+at+`","jwks_uri":"`+at+`/keys","authorization_endpoint":"`+at+`/in","token_endpoint":"`+at+`/token"}`)
			return
		}
		_, _ = io.WriteString(w, publishedKey)
	}))
	t.Cleanup(issuer.Close)
	platform := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the platform was asked: %s %s", r.Method, r.URL)
	}))
	t.Cleanup(platform.Close)
	return with(production(t), "CUTONCE_ISSUER_URL="+issuer.URL, "CUTONCE_ISSUER_JWKS_URL=", "CUTONCE_ADS_URL="+platform.URL)
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	env := reachable(t)
	for name, c := range map[string]struct {
		set  []string
		args []string
		code int
		want []string
	}{
		"well, but for warnings": {code: 0, want: []string{"doctor: ", " 0 failed", "1 usable keys", "serve will bring it up to date", "answers by TCP"}},
		"an issuer that is away": {set: []string{"CUTONCE_ISSUER_URL=http://127.0.0.1:1"}, code: 1, want: []string{"failed   issuer http://127.0.0.1:1: its metadata", "; to do: ", " 2 failed"}},
		"all that is wrong with the settings": {
			set: []string{"CUTONCE_SECRET=short", "CUTONCE_POLICY_DIR="}, code: 2, want: []string{"CUTONCE_SECRET", "CUTONCE_POLICY_DIR"},
		},
		"an argument": {args: []string{"now"}, code: 2, want: []string{"doctor takes no arguments"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, t.TempDir(), with(env, c.set...), append([]string{"doctor"}, c.args...)...)
			if got := p.wait(); got != c.code {
				t.Errorf("got exit code %d, want %d", got, c.code)
			}
			text := p.stdout.String() + p.stderr.String()
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("got\n%s\nwant %q in it", text, want)
				}
			}
			if strings.Contains(text, testSecret) || strings.Contains(text, testAdsToken) {
				t.Error("a secret was printed")
			}
		})
	}
}

// TestDoctorChangesNothing: the report as JSON, and the database as it was.
func TestDoctorChangesNothing(t *testing.T) {
	t.Parallel()
	env := reachable(t)
	p := begin(t, t.TempDir(), env, "doctor", "--json")
	if code := p.wait(); code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
	var r doctor.Report
	if err := json.Unmarshal([]byte(p.stdout.String()), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) < 15 || r.OK+r.Warnings+r.Failed != len(r.Findings) || r.Code != 0 {
		t.Errorf("got %d findings, %d ok, %d warnings, %d failed", len(r.Findings), r.OK, r.Warnings, r.Failed)
	}
	var tables int
	conn := connect(t, strings.TrimPrefix(env[0], "CUTONCE_DATABASE_URL="))
	if err := conn.QueryRow(t.Context(), `select count(*) from pg_tables where schemaname = 'public'`).Scan(&tables); err != nil || tables != 0 {
		t.Errorf("got %d tables, %v, want the empty database that it was", tables, err)
	}
}
