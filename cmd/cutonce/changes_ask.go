package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/internal/bridge"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/operate"
)

type changesFlags struct {
	url, tokenFile, language string
	json                     bool
}

// operating is one call of cutonce changes.
type operating struct {
	ctx     context.Context
	client  *operate.Client
	catalog *catalog.Catalog
	flags   changesFlags
	// lang is what the caller wishes; texts are in the answer's language once there is one.
	lang  string
	texts *catalog.Texts
	out   screen
	err   io.Writer
	// reads says that nothing but reading was asked for, so that nothing can have been heard by halves.
	reads bool
}

// run makes the client, runs one command and turns its failure into an exit code.
func (f changesFlags) run(cmd *cobra.Command, do func(*operating) error) error {
	if f.language != "" && f.language != "en" && f.language != "ja" {
		return misused(cmd, "which language? --lang en or --lang ja")
	}
	all, err := catalog.New()
	if err != nil {
		return err
	}
	o := &operating{ctx: cmd.Context(), catalog: all, flags: f, lang: cmp.Or(f.language, languageOf(os.Getenv)), err: cmd.ErrOrStderr()}
	o.texts = all.In(o.lang)
	o.out = screen{cmd.OutOrStdout()}
	if o.client, err = f.connect(o.lang, os.Getenv); err != nil {
		return misused(cmd, err.Error())
	}
	err = do(o)
	var unheard *operate.UnheardError
	if errors.As(err, &unheard) {
		o.unheard(unheard)
		return exitCode(exitNotHeard)
	}
	return err
}

func (f changesFlags) connect(lang string, env func(string) string) (*operate.Client, error) {
	at := cmp.Or(f.url, env(bridgeURL))
	if at == "" {
		return nil, errors.New("which service? set " + bridgeURL + " or --url, for example https://cutonce.example")
	}
	endpoint, err := bridge.Endpoint(at)
	if err != nil {
		return nil, err
	}
	file, token := cmp.Or(f.tokenFile, env(bridgeTokenFile)), env(bridgeToken)
	if f.tokenFile != "" {
		token = "" // the flag wins
	}
	source, err := tokenSource(file, token)
	if err != nil {
		return nil, err
	}
	return operate.New(operate.Config{Origin: strings.TrimSuffix(endpoint, mcpPath), Token: source, Language: lang})
}

// languageOf reads the language of a terminal's locale, empty if it is none of ours.
func languageOf(env func(string) string) string {
	locale := cmp.Or(env("LC_ALL"), env("LC_MESSAGES"), env("LANG"))
	lang, _, _ := strings.Cut(strings.ReplaceAll(locale, ".", "_"), "_")
	if lang == "en" || lang == "ja" {
		return lang
	}
	return ""
}

func (o *operating) t(key string, args map[string]any) string { return o.texts.T(key, args) }

// get asks and reads the answer into a body. done is set when there is nothing left to print.
func (o *operating) get(path string, query url.Values, into any) (done bool, err error) {
	o.reads = true
	reply, err := o.client.Get(o.ctx, path, query)
	if err != nil {
		return false, err
	}
	return o.read(reply, into)
}

func (o *operating) post(path string, body, into any) (done bool, err error) {
	o.reads = false
	reply, err := o.client.Post(o.ctx, path, body)
	if err != nil {
		return false, err
	}
	return o.read(reply, into)
}

func (o *operating) read(reply operate.Reply, into any) (done bool, err error) {
	if reply.Language != "" {
		o.texts = o.catalog.In(reply.Language)
	}
	refused := reply.Status >= http.StatusBadRequest
	if o.flags.json {
		_, err = o.out.Write(reply.Body)
		if err == nil && refused {
			err = exitCode(exitRefused)
		}
		return true, err
	}
	if refused {
		return true, o.refused(reply)
	}
	if err := json.Unmarshal(reply.Body, into); err != nil {
		return true, fmt.Errorf("the service's answer is not readable: %w", err)
	}
	return false, nil
}

// refused says why the service refused, and what to do now.
func (o *operating) refused(reply operate.Reply) error {
	b, err := readBody(reply.Body, reply.Status)
	if err != nil {
		return err
	}
	to := screen{o.err}
	to.line("cutonce: %s", b.Message)
	for _, field := range b.Fields {
		to.line("  %s: %s", field.Path, field.Reason)
	}
	if b.RetryAfterS > 0 {
		to.line("  %s", o.t("cli.retry_after", map[string]any{"seconds": b.RetryAfterS}))
	}
	if b.RequestID != "" {
		to.line("  request_id: %s", b.RequestID)
	}
	to.line("  %s", o.t("cli.next."+b.Next, nil))
	if b.Change != nil && b.Change.Outcome != nil && b.Change.Outcome.Statement != nil {
		o.statement(to, *b.Change.Outcome.Statement)
	}
	return exitCode(exitRefused)
}

// unheard says that nobody answered. What was asked may have been heard all the same; each command can be given again.
func (o *operating) unheard(err *operate.UnheardError) {
	to := screen{o.err}
	key := "cli.unheard"
	if o.reads {
		key = "cli.unheard.read"
	}
	to.line("cutonce: %s", o.t(key, nil))
	to.line("  %s", err.Error())
	to.line("  %s", o.t("cli.unheard.next", nil))
}

func (o *operating) list(l listFlags) error {
	var page answer.Changes
	if done, err := o.get("/v1/previews", l.query(), &page); done || err != nil {
		return err
	}
	o.printList(page, l)
	return nil
}

const previewsPath = "/v1/previews/"

// show is two questions: the change in detail, and why it stands there. As JSON it is the first one's answer.
func (o *operating) show(id string) error {
	var b answer.Body
	var y answer.Why
	at := previewsPath + url.PathEscape(id)
	if done, err := o.get(at, url.Values{"response_format": {"detailed"}}, &b); done || err != nil {
		return err
	}
	if done, err := o.get(at+"/why", nil, &y); done || err != nil {
		return err
	}
	o.printWhole(b, y)
	return nil
}

func (o *operating) why(id string) error {
	var y answer.Why
	if done, err := o.get(previewsPath+url.PathEscape(id)+"/why", nil, &y); done || err != nil {
		return err
	}
	o.printWhy(y)
	return nil
}

func (o *operating) probe(id string) error {
	return o.settle(id, "/probe", struct{}{})
}

func (o *operating) resolve(id string, r resolveFlags) error {
	return o.settle(id, "/resolve", r.body())
}

func (o *operating) settle(id, what string, body any) error {
	var b answer.Body
	if done, err := o.post(previewsPath+url.PathEscape(id)+what+"?response_format=detailed", body, &b); done || err != nil {
		return err
	}
	o.printSettled(b)
	return nil
}
