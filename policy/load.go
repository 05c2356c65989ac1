package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/cutonce/cutonce/internal/canon"
)

// defaultRule is the name that a ruling carries when no rule decided.
const defaultRule = "default"

// Policy is a set of compiled rules. It never changes and may be used by any number of goroutines.
type Policy struct {
	rules []rule
	// fallback is what happens when nothing matched, and when a rule that denies cannot be told.
	fallback rule
	when     when
	caps     []capText
	version  string
}

// Parse compiles one policy file; name is for error messages. Whatever is wrong is refused with the rule or key and its
// place: an unknown key, a missing default, an expression that does not compile or compares two currencies.
func Parse(name string, text []byte) (*Policy, error) {
	doc, err := read(name, text)
	if err != nil {
		return nil, err
	}
	return assemble([]source{{name, doc}})
}

// Load compiles the named files as one policy, in the order given; without names, every *.yaml and *.yml at the top of
// files, by name, except for cases (*.test.yaml). Exactly one of the files declares the default, and a rule's name is used once among all.
func Load(files fs.FS, names ...string) (*Policy, error) {
	if len(names) == 0 {
		found, err := policyFiles(files)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, errors.New("there is no policy file (*.yaml) in the folder")
		}
		names = found
	}
	sources := make([]source, 0, len(names))
	for _, name := range names {
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading the policy: %w", err)
		}
		doc, err := read(name, raw)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source{name, doc})
	}
	return assemble(sources)
}

func policyFiles(files fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, fmt.Errorf("listing the policy files: %w", err)
	}
	var names []string
	for _, e := range entries {
		switch ext := path.Ext(e.Name()); {
		case e.IsDir() || ext != ".yaml" && ext != ".yml":
		case IsCases(e.Name()):
			if err := holdsCases(files, e.Name()); err != nil {
				return nil, err
			}
		default:
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// holdsCases refuses a policy that is named like a file of cases: its rules would be passed over in silence.
func holdsCases(files fs.FS, name string) error {
	raw, err := fs.ReadFile(files, name)
	if err != nil {
		return fmt.Errorf("reading the policy: %w", err)
	}
	var doc map[string]any
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return fmt.Errorf("policy %s: %w", name, plain(err))
	}
	if _, ok := doc["cases"]; !ok {
		return fmt.Errorf("policy %s: a file of this name holds cases: [...]; rules in it would not be read", name)
	}
	return nil
}

type source struct {
	name string
	document
}

func assemble(sources []source) (*Policy, error) {
	chosen, err := defaultOf(sources)
	if err != nil {
		return nil, err
	}
	w, err := whenOf(sources)
	if err != nil {
		return nil, err
	}
	caps, err := capsOf(sources, w)
	if err != nil {
		return nil, err
	}
	p := &Policy{when: w, caps: caps, fallback: rule{
		name: defaultRule, severity: requires, needs: requirement(chosen.Require), abstain: chosen.Reject == abstains, texts: chosen.Message,
	}}
	from := map[string]string{}
	var all []ruleText
	for _, s := range sources {
		for _, text := range s.Rules {
			if other, taken := from[text.Name]; taken {
				return nil, fmt.Errorf("policy %s: there is a second rule %s (the other is in %s)", s.name, text.Name, other)
			}
			from[text.Name] = s.name
			compiled, err := compile(text, declared{w, caps})
			if err != nil {
				return nil, fmt.Errorf("policy %s: %w", s.name, err)
			}
			p.rules, all = append(p.rules, compiled), append(all, text)
		}
	}
	p.version, err = p.versionOf(all)
	return p, err
}

func defaultOf(sources []source) (*outcome, error) {
	var chosen *outcome
	in := ""
	for _, s := range sources {
		switch {
		case s.Default == nil:
		case chosen != nil:
			return nil, fmt.Errorf("policy %s: the default is already declared in %s", s.name, in)
		default:
			chosen, in = s.Default, s.name
		}
	}
	if chosen == nil {
		named := make([]string, len(sources))
		for i, s := range sources {
			named[i] = s.name
		}
		return nil, fmt.Errorf("policy %s: declare who must approve when no rule matches: default: {require: [{any_of: [GROUP], count: 1}]}",
			strings.Join(named, ", "))
	}
	return chosen, nil
}

// versionOf names what the rules say, in their order. Comments, indentation and file names are not part of it.
func (p *Policy) versionOf(written []ruleText) (string, error) {
	said := []any{describe(p.fallback, "")}
	for i, r := range p.rules {
		said = append(said, describe(r, written[i].When.Text))
	}
	calendars := map[string]any{}
	for name, days := range p.when.calendars {
		spans := make([]any, len(days))
		for i, s := range days {
			spans[i] = s.From + "/" + s.To
		}
		calendars[name] = spans
	}
	content := map[string]any{"format": "2", "rules": said, "zone": p.when.zoneName, "calendars": calendars}
	if len(p.caps) > 0 {
		caps := make([]any, len(p.caps))
		for i, c := range p.caps {
			caps[i] = c.describe()
		}
		content["caps"] = caps
	}
	digest, err := canon.SumOf(content)
	if err != nil {
		return "", fmt.Errorf("naming the policy's version: %w", err)
	}
	return digest.String(), nil
}

func describe(r rule, when string) map[string]any {
	needs := make([]any, len(r.needs))
	for i, s := range r.needs {
		needs[i] = map[string]any{"any_of": list(s.AnyOf), "count": fmt.Sprint(s.Count)}
	}
	message := map[string]any{}
	for lang, text := range r.texts {
		message[lang] = text
	}
	return map[string]any{
		"name": r.name, "actions": list(slices.Sorted(slices.Values(r.actions))), "when": when,
		"then": string(r.severity), "needs": needs, "abstain": r.abstain, "risk": r.risk, "message": message,
	}
}

func list(items []string) []any {
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = item
	}
	return out
}

// Version is the sha256 of the policy's canonical content. Every ruling carries it.
func (p *Policy) Version() string { return p.version }

// UsesTime reports whether any rule depends on the moment, so that Facts.Now is needed.
func (p *Policy) UsesTime() bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool { return r.timed })
}

// CheckActions refuses a rule about an action that does not exist: a misspelt name would switch a ceiling off in silence.
// Wiring calls it with the registry's actions.
func (p *Policy) CheckActions(known []string) error {
	about := func(what, name string, actions []string) error {
		for _, action := range actions {
			if !slices.Contains(known, action) {
				return fmt.Errorf("policy: %s %s is about the action %q, which does not exist (there are: %s)",
					what, name, action, strings.Join(known, ", "))
			}
		}
		return nil
	}
	for _, r := range p.rules {
		if err := about("rule", r.name, r.actions); err != nil {
			return err
		}
	}
	for _, c := range p.caps {
		if err := about("cap", c.Name, c.Actions); err != nil {
			return err
		}
	}
	return nil
}
