package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cutonce/cutonce/internal/config"
)

// printer writes for people. What it prints of keys is printed on purpose: they are the development instance's own.
type printer struct{ io.Writer }

func (p printer) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// instance says how to use what runs.
func (p printer) instance(d *development, c *cast) {
	links, err := c.links(origin(d.settings))
	token, err2 := c.agentToken()
	if err != nil || err2 != nil {
		d.log.Error("the development issuer cannot speak for its people", "error", err, "token_error", err2)
		return
	}
	tokens := filepath.Join(d.dir.Path, "tokens")
	names, err := c.keepTokens(tokens)
	if err != nil {
		d.log.Error("the tokens cannot be kept", "error", err)
	}
	env, err := d.keepEnv(c)
	if err != nil {
		d.log.Error("the environment cannot be kept", "error", err)
	}
	mcp := origin(d.settings) + mcpPath
	p.line("")
	p.line("cutonce %s runs (process %d); keys and data are in %s", version, os.Getpid(), d.dir.Path)
	p.line("")
	p.line("  Postgres    %s", d.postgres.Describe())
	p.line("  Ads         %s", d.ads)
	p.line("  Deploys     %s", d.deploys)
	p.line("  Console     %s/", origin(d.settings))
	p.line("  MCP         %s", mcp)
	p.line("  API         %s/v1 (described at %s/openapi.yaml)", origin(d.settings), origin(d.settings))
	if d.settings.MetricsListen != config.Off {
		p.line("  Metrics     http://%s/metrics", d.settings.MetricsListen)
	}
	p.line("")
	p.line("MCP client configuration:")
	p.line("%s", clientConfiguration(mcp, token))
	p.line("")
	p.line("Sign in at the console (made-up people; whoever opens a link is that person):")
	for _, l := range links {
		p.line("  %s (%s)", l.name, l.what)
		p.line("    %s", l.url)
	}
	p.line("")
	p.line("Everybody's token, the agent's too, is in a file of %s, for the API and for other agents:", tokens)
	p.line("  %s", strings.Join(names, ", "))
	p.line("  (mori-agent and ono-agent are the platform team's agents, which roll deployments back)")
	p.line("")
	p.trial(origin(d.settings), token)
	p.line("Try it as the operator, in another terminal:")
	p.line("  . %s", sourced(env))
	p.line("  %s changes list --status applying,unknown", os.Args[0])
	p.line("  (that file is this instance's whole configuration; %s verify, audit, restore and doctor use it, too)", os.Args[0])
	p.line("  (approvers needs an admin: %s approvers list --token-file %s)", os.Args[0], filepath.Join(tokens, "admin"))
	if d.settings.PolicyDir == "" {
		p.line("")
		p.line("The policy is the example, rewritten at every start. To try your own: copy %s and name the copy in CUTONCE_POLICY_DIR.",
			filepath.Join(d.dir.Path, "policies"))
	}
	p.line("")
	p.line("Ctrl-C finishes what is under way and stops everything.")
	p.line("ready in %.1f s", time.Since(d.began).Seconds())
}

// trial is one change from beginning to end, to paste line by line.
func (p printer) trial(origin, token string) {
	p.line("Try one change, line by line: the agent asks for +60 %%, a person approves, the agent applies:")
	p.line("  TOKEN='%s'", token)
	p.line(`  call() { curl -sS -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -H 'Accept-Language: en' "$@"; }`)
	p.line(`  call -d '{"query":"秋の特価"}' %s/v1/finds/campaigns_find`, origin)
	p.line(`  call -d '{"campaign_id":"2001001","new_daily_budget_jpy":32000,"expect_campaign_name":"秋の特価_検索","reason":"More demand"}' \`)
	p.line(`    %s/v1/actions/budget_change/previews`, origin)
	p.line("  ID=pv_…   # the preview_id of that answer")
	p.line(`  call -d '{"justification":"Autumn week"}' %s/v1/previews/$ID/approval-request   # then approve it by kim's link above`, origin)
	p.line(`  call -X POST %s/v1/previews/$ID/apply   # again: the same answer, and nothing is sent a second time`, origin)
	p.line("")
}

// clientConfiguration is what most MCP clients take as it is.
func clientConfiguration(url, token string) string {
	text, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{"cutonce": map[string]any{
		"type": "http", "url": url, "headers": map[string]string{"Authorization": "Bearer " + token},
	}}}, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// sourced is a path as a shell's . takes it: without a folder it would be looked for on the PATH.
func sourced(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return "./" + path
}
