package operate_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/internal/operate"
)

const token = "a-secret-token"

func client(t *testing.T, answer http.HandlerFunc) *operate.Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	c, err := operate.New(operate.Config{Origin: server.URL + "/", Token: func() (string, error) { return token, nil }, Language: "ja"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOneRequestAsItIs(t *testing.T) {
	t.Parallel()
	const said = `{"message": "ok",  "amount": 9007199254740993}` + "\n"
	var got []string
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, strings.Join([]string{r.Method, r.URL.String(), r.Header.Get("Authorization"), r.Header.Get("Accept-Language"),
			r.Header.Get("Content-Type"), string(body)}, "|"))
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Language", "ja")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, said)
	})
	read, err := c.Get(t.Context(), "/v1/previews", url.Values{"status": {"unknown,applying"}})
	if err != nil || string(read.Body) != said || read.Status != http.StatusConflict || read.Language != "ja" {
		t.Errorf("got %+v, %v, want the answer byte for byte", read, err)
	}
	if _, err := c.Post(t.Context(), "/v1/previews/x/probe", struct{}{}); err != nil {
		t.Error(err)
	}
	want := []string{
		"GET|/v1/previews?status=unknown%2Capplying|Bearer " + token + "|ja||",
		"POST|/v1/previews/x/probe|Bearer " + token + "|ja|application/json|{}",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatIsNoAnswerOfTheService(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"a page of something in front": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusBadGateway)
		},
		"JSON of somebody else": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"error":"no"}`)
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				t.Error("the redirect was followed, with the token")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"a cut answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"message":`)
		},
	} {
		_, err := client(t, answer).Post(t.Context(), "/v1/x", struct{}{})
		var unheard *operate.UnheardError
		if !errors.As(err, &unheard) || strings.Contains(err.Error(), token) {
			t.Errorf("%s: got %v, want that nobody was heard, without the token", name, err)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	c, err := operate.New(operate.Config{Origin: server.URL, Token: func() (string, error) { return token, nil }})
	if err != nil {
		t.Fatal(err)
	}
	var unheard *operate.UnheardError
	if _, err = c.Get(t.Context(), "/v1/previews", nil); !errors.As(err, &unheard) {
		t.Errorf("got %v, want that nobody was heard", err)
	}
	missing := errors.New("no token")
	c, _ = operate.New(operate.Config{Origin: server.URL, Token: func() (string, error) { return "", missing }})
	if _, err = c.Get(t.Context(), "/v1/previews", nil); !errors.Is(err, missing) || errors.As(err, &unheard) {
		t.Errorf("got %v, want the token's own error", err)
	}
	if _, err := operate.New(operate.Config{Origin: "ftp"}); err == nil {
		t.Error("got a client of nothing")
	}
}
