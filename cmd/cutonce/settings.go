package main

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/connector/rollback"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/policy"
)

// This file turns settings into the rooms' own words.

func clocksOf(c config.Clock) connector.Clocks {
	return connector.Clocks{
		PreviewTTL: c.PreviewTTL, ApprovalFor: c.Approval, ApplyWindow: c.ApplyWindow, SendFor: c.Send, LeaseFor: c.Lease, SettleFor: c.Settle,
	}
}

func adsOf(s config.Settings) adbudget.Config {
	t := s.Ads
	return adbudget.Config{
		BaseURL: t.URL, AllowPlainHTTP: t.AllowPlainHTTP, Token: string(t.Token), System: t.System, HonoursKeys: t.HonoursKeys,
		KeyRetention: t.KeyRetention, NoLookup: t.NoLookup, SettleFor: settleOf(t, s.Clock), Sandbox: t.Sandbox,
		ResolveBy: t.ResolveBy,
		HTTP:      connector.HTTPConfig{Timeout: s.Clock.Send},
	}
}

func deploysOf(s config.Settings) rollback.Config {
	t := s.Deploys
	return rollback.Config{
		BaseURL: t.URL, AllowPlainHTTP: t.AllowPlainHTTP, Token: string(t.Token), System: t.System, HonoursKeys: t.HonoursKeys,
		KeyRetention: t.KeyRetention, NoLookup: t.NoLookup, SettleFor: settleOf(t, s.Clock), Sandbox: t.Sandbox,
		ResolveBy: t.ResolveBy,
		HTTP:      connector.HTTPConfig{Timeout: s.Clock.Send},
	}
}

func settleOf(t config.Target, c config.Clock) time.Duration {
	if t.Settle != 0 {
		return t.Settle
	}
	return c.Settle
}

const issuerTimeout = 10 * time.Second

func verifierOf(s config.Settings, log *slog.Logger) auth.Config {
	cfg := auth.Config{Audiences: audiences(s), Now: time.Now, HTTP: &http.Client{Timeout: issuerTimeout}, Log: log}
	for _, i := range []config.Issuer{s.Issuer, s.Issuer2, s.Issuer3} {
		if i.URL == "" {
			continue
		}
		cfg.Issuers = append(cfg.Issuers, auth.Issuer{
			URL: i.URL, JWKSURL: i.JWKSURL, AgentClients: i.AgentClients, HumanClients: i.HumanClients, Tenant: i.Tenant, Tenants: i.Tenants,
			AccessTokenTypeOnly: i.OnlyATJWT,
			Claims:              auth.ClaimNames{Tenant: i.ClaimTenant, Groups: i.ClaimGroups, Roles: i.ClaimRoles, Owner: i.ClaimOwner, Client: i.ClaimClient},
		})
	}
	return cfg
}

func limitsOf(l config.Limit) auth.Limits {
	return auth.Limits{Actor: l.Actor, Tenant: l.Tenant, Action: l.Action, Now: time.Now}
}

func audiences(s config.Settings) []string {
	if len(s.Audiences) > 0 {
		return s.Audiences
	}
	return resources(s)
}

// resources are the names by which clients ask for tokens for us: the origin, and the MCP endpoint itself.
func resources(s config.Settings) []string {
	origin := origin(s)
	return []string{origin, origin + mcpPath}
}

func origin(s config.Settings) string { return strings.TrimSuffix(s.PublicURL, "/") }

// policySource is the policy's text, kept beside the version that changes were ruled by.
func policySource(files fs.FS) (string, error) {
	var all strings.Builder
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		ext := path.Ext(name)
		if err != nil || d.IsDir() || ext != ".yaml" && ext != ".yml" || policy.IsCases(name) {
			if d != nil && d.IsDir() && name != "." {
				return fs.SkipDir
			}
			return err
		}
		text, err := fs.ReadFile(files, name)
		fmt.Fprintf(&all, "# file: %s\n%s\n", name, text)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading the policy: %w", err)
	}
	return all.String(), nil
}
