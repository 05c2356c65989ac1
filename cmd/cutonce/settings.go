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
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/config"
)

// This file turns settings into the rooms' own words.

func clocksOf(c config.Clock) connector.Clocks {
	return connector.Clocks{
		PreviewTTL: c.PreviewTTL, ApprovalFor: c.Approval, ApplyWindow: c.ApplyWindow, SendFor: c.Send, LeaseFor: c.Lease, SettleFor: c.Settle,
	}
}

func adsOf(s config.Settings) adbudget.Config {
	settle := s.Ads.Settle
	if settle == 0 {
		settle = s.Clock.Settle
	}
	return adbudget.Config{
		BaseURL: s.Ads.URL, AllowPlainHTTP: s.Ads.AllowPlainHTTP, Token: string(s.Ads.Token), System: s.Ads.System,
		HonoursKeys: s.Ads.HonoursKeys, KeyRetention: s.Ads.KeyRetention, NoLookup: s.Ads.NoLookup, SettleFor: settle, Sandbox: s.Ads.Sandbox,
		HTTP: connector.HTTPConfig{Timeout: s.Clock.Send},
	}
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
		if err != nil || d.IsDir() || ext != ".yaml" && ext != ".yml" {
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
