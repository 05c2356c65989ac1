package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Problems is everything that is wrong with a configuration.
type Problems []string

// Error lists all of it, one a line.
func (p Problems) Error() string {
	return "the configuration is refused:\n  " + strings.Join(p, "\n  ")
}

// others are variables that belong to what surrounds the service, not to it.
var others = []string{
	"CUTONCE_POSTGRES_IMAGE", "CUTONCE_POSTGRES_PASSWORD", "CUTONCE_POSTGRES_PORT", // docker-compose.yml
	"CUTONCE_IMAGE", "CUTONCE_HTTP_PORT", "CUTONCE_METRICS_PORT", "CUTONCE_ADS_PORT", "CUTONCE_DEPLOYS_PORT", // the same
	"CUTONCE_TARGET_TOKEN",                               // the simulators
	"CUTONCE_URL", "CUTONCE_TOKEN", "CUTONCE_TOKEN_FILE", // those who ask a service: changes, freeze, mcp
	"CUTONCE_TEST_CONTAINERS", "CUTONCE_TEST_POSTGRES_IMAGE", "CUTONCE_TEST_POSTGRES_MAJOR", "CUTONCE_TEST_NPM", // the tests
}

// orchestrated are what Kubernetes sets in every pod beside a Service named cutonce.
var orchestrated = regexp.MustCompile(`^CUTONCE_(SERVICE_(HOST|PORT(_.+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// Load reads the variables of an environment (os.Environ) and the files that they name. The error is Problems.
func Load(environ []string) (Settings, error) {
	var s Settings
	var wrong Problems
	given := ours(environ)
	for _, f := range fields(&s) {
		text, set := given[f.name]
		delete(given, f.name)
		if !set || text == "" {
			text = f.fallback
		}
		if text == "" {
			continue
		}
		if err := f.set(text); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	wrong = append(wrong, unknown(given)...)
	wrong = append(wrong, s.readFiles()...)
	if len(wrong) > 0 {
		return Settings{}, wrong
	}
	return s, nil
}

func ours(environ []string) map[string]string {
	given := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, Prefix) && !slices.Contains(others, name) && !orchestrated.MatchString(name) {
			given[name] = value
		}
	}
	return given
}

func unknown(left map[string]string) []string {
	var out []string
	for name := range left {
		line := name + ": there is no such setting"
		if near := nearest(name); near != "" {
			line += "; did you mean " + near + "?"
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// nearest is the known name that shares the longest beginning and end with a misspelt one, if that is most of it.
func nearest(name string) string {
	best, score := "", len(Prefix)+max(3, (len(name)-len(Prefix))*2/3)
	for _, f := range fields(&Settings{}) {
		if n := alike(name, f.name); n > score {
			best, score = f.name, n
		}
	}
	return best
}

func alike(a, b string) int {
	short := min(len(a), len(b))
	head := 0
	for head < short && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < short-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head + tail
}

// readFiles fills the secrets that are given as files. Orchestrators mount them so, and files do not leak into the
// environment of children.
func (s *Settings) readFiles() []string {
	var wrong []string
	for _, one := range []struct {
		name string
		file string
		to   *Secret
	}{
		{"CUTONCE_DATABASE_URL", s.DatabaseURLFile, &s.DatabaseURL},
		{"CUTONCE_DATABASE_DIRECT_URL", s.DirectURLFile, &s.DirectURL},
		{"CUTONCE_SECRET", s.SecretFile, &s.Secret},
		{"CUTONCE_SIGNIN_CLIENT_SECRET", s.SignIn.ClientSecretFile, &s.SignIn.ClientSecret},
		{"CUTONCE_ADS_TOKEN", s.Ads.TokenFile, &s.Ads.Token},
		{"CUTONCE_DEPLOYS_TOKEN", s.Deploys.TokenFile, &s.Deploys.Token},
	} {
		if one.file == "" {
			continue
		}
		text, err := readSecret(one.file)
		switch {
		case *one.to != "":
			wrong = append(wrong, one.name+" and "+one.name+"_FILE are both set: which one?")
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("%s_FILE: %v", one.name, err))
		}
		*one.to = text
	}
	return wrong
}

func readSecret(path string) (Secret, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	trimmed := Secret(strings.TrimRight(string(text), "\r\n"))
	if trimmed == "" {
		return "", errors.New("the file is empty")
	}
	return trimmed, nil
}
