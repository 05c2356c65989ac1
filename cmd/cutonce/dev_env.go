package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cutonce/cutonce/examples/policies"
)

// keepEnv writes the instance's configuration into a file of the state folder that a shell can read, so that verify, audit, restore,
// doctor and changes can be tried on it. Whoever may read the folder holds all of its keys anyway.
func (d *development) keepEnv(c *cast) (string, error) {
	folder, err := filepath.Abs(d.dir.Path)
	if err != nil {
		return "", err
	}
	rules, err := d.keepRules(filepath.Join(folder, "policies"))
	if err != nil {
		return "", err
	}
	issuer := c.settings()
	var b strings.Builder
	b.WriteString("# Written by cutonce dev. Use it with: . " + d.dir.File("env") + "\n")
	for _, one := range [][2]string{
		{"DATABASE_URL", string(d.settings.DatabaseURL)}, {"SECRET", string(d.settings.Secret)}, {"POLICY_DIR", rules},
		{"PUBLIC_URL", origin(d.settings)}, {"ISSUER_URL", issuer.URL}, {"ISSUER_JWKS_URL", issuer.JWKSURL},
		{"ISSUER_AGENT_CLIENTS", strings.Join(issuer.AgentClients, ",")}, {"ISSUER_HUMAN_CLIENTS", strings.Join(issuer.HumanClients, ",")},
		{"ADS_URL", d.settings.Ads.URL}, {"ADS_TOKEN", string(d.settings.Ads.Token)}, {"ADS_SYSTEM", d.settings.Ads.System},
		{"ADS_SANDBOX", strconv.FormatBool(d.settings.Ads.Sandbox)}, {"ADS_ALLOW_PLAIN_HTTP", strconv.FormatBool(d.settings.Ads.AllowPlainHTTP)},
		{"DEPLOYS_URL", d.settings.Deploys.URL}, {"DEPLOYS_TOKEN", string(d.settings.Deploys.Token)}, {"DEPLOYS_SYSTEM", d.settings.Deploys.System},
		{"DEPLOYS_SANDBOX", strconv.FormatBool(d.settings.Deploys.Sandbox)}, {"DEPLOYS_ALLOW_PLAIN_HTTP", strconv.FormatBool(d.settings.Deploys.AllowPlainHTTP)},
		{"URL", origin(d.settings)}, {"TOKEN_FILE", filepath.Join(folder, "tokens", "oper")},
	} {
		b.WriteString("export CUTONCE_" + one[0] + "='" + strings.ReplaceAll(one[1], "'", `'\''`) + "'\n")
	}
	path := d.dir.File("env")
	return path, os.WriteFile(path, []byte(b.String()), 0o600)
}

// keepRules is the folder of the policy: the configured one, or one with the examples that are built in.
func (d *development) keepRules(folder string) (string, error) {
	if d.settings.PolicyDir != "" {
		return filepath.Abs(d.settings.PolicyDir)
	}
	if err := os.RemoveAll(folder); err != nil {
		return "", err
	}
	return folder, os.CopyFS(folder, policies.FS)
}
