package policy_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cutonce/cutonce/policy"
)

func TestAFileIsReadStrictly(t *testing.T) {
	t.Parallel()
	rule := "  - name: a\n    when: true\n    then: deny\n"
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"unknown key at the top": {with(rule) + "defualt: 1\n", []string{"test.yaml", "line 7", `"defualt"`}},
		"unknown key in a rule":  {with("  - name: a\n    wehn: true\n    then: deny\n"), []string{"line 5", `"wehn"`}},
		"unknown key in then": {
			with("  - name: a\n    when: true\n    then: {require: [{any_of: [x]}], countt: 2}\n"), []string{"line 6", `"countt"`},
		},
		"unknown key in seats": {
			with("  - name: a\n    when: true\n    then: {require: [{anyof: [x]}]}\n"), []string{"line 6", `"anyof"`},
		},
		"repeated key": {with("  - name: a\n    when: true\n    when: true\n    then: deny\n"), []string{"line 6", "when"}},
		"no default":   {"version: 1\nrules:\n" + rule, []string{"test.yaml", "default:"}},
		"empty default": {
			"version: 1\ndefault: {require: []}\nrules:\n" + rule, []string{"default", "at least one group"},
		},
		"no version":         {"default: {require: [{any_of: [x]}]}\nrules:\n" + rule, []string{"version must be 1"}},
		"another version":    {strings.Replace(with(rule), "version: 1", "version: 2", 1), []string{"version must be 1, not 2"}},
		"empty file":         {"", []string{"empty"}},
		"only comments":      {"# nothing\n", []string{"test.yaml"}},
		"two documents":      {with(rule) + "---\nversion: 1\n", []string{"one YAML document"}},
		"not YAML":           {"version: [1\n", []string{"line 1"}},
		"unknown severity":   {with("  - name: a\n    when: true\n    then: denied\n"), []string{"line 6", `"denied"`}},
		"no action":          {with("  - name: a\n    actions: []\n    when: true\n    then: allow\n"), []string{"(a)", "names no action"}},
		"an empty action":    {with("  - name: a\n    actions:\n    when: true\n    then: allow\n"), []string{"line 5", "actions has no value"}},
		"an empty then":      {with("  - name: a\n    when: true\n    then:\n"), []string{"line 6", "then has no value"}},
		"then of nothing":    {with("  - name: a\n    when: true\n    then: {}\n"), []string{"(a)", "at least one group"}},
		"an empty default":   {"version: 1\ndefault:\nrules:\n" + rule, []string{"line 2", "default has no value"}},
		"version as text":    {strings.Replace(with(rule), "version: 1", "version: '1'", 1), []string{"line 1", "whole number"}},
		"version with point": {strings.Replace(with(rule), "version: 1", "version: 1.0", 1), []string{"line 1", "whole number"}},
		"no severity":        {with("  - name: a\n    when: true\n"), []string{"(a)", "then is missing"}},
		"no expression":      {with("  - name: a\n    then: deny\n"), []string{"(a)", "when is missing"}},
		"a list as when":     {with("  - name: a\n    when: [true]\n    then: deny\n"), []string{"line 5", "CEL"}},
		"require of nobody":  {with("  - name: a\n    when: true\n    then: {require: []}\n"), []string{"(a)", "at least one group"}},
		"a group of nobody":  {with("  - name: a\n    when: true\n    then: {require: [{any_of: []}]}\n"), []string{"any_of"}},
		"count zero":         {with("  - name: a\n    when: true\n    then: {require: [{any_of: [x], count: 0}]}\n"), []string{"count"}},
		"count too large":    {with("  - name: a\n    when: true\n    then: {require: [{any_of: [x], count: 21}]}\n"), []string{"21"}},
		"count not whole":    {with("  - name: a\n    when: true\n    then: {require: [{any_of: [x], count: 1.5}]}\n"), []string{"line 6"}},
		"name twice":         {with(rule + rule), []string{"second rule a"}},
		"the default's name": {with("  - name: default\n    when: true\n    then: deny\n"), []string{"default"}},
		"a name with spaces": {with("  - name: a b\n    when: true\n    then: deny\n"), []string{"name"}},
		"half a message": {
			with("  - name: a\n    when: true\n    then: deny\n    message: {en: No.}\n"), []string{"both en and ja"},
		},
		"a third language": {
			with("  - name: a\n    when: true\n    then: deny\n    message: {en: No., ja: 不可, fr: Non.}\n"), []string{`"fr"`},
		},
		"a warning without words": {with("  - name: a\n    when: true\n    then: warn\n"), []string{"message"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, tc.text, tc.want...)
		})
	}
}

func TestTheVersionNamesTheContentAlone(t *testing.T) {
	t.Parallel()
	base := with("  - name: a\n    actions: [x, y]\n    when: true\n    then: {require: [{any_of: [p, q], count: 1}]}\n")
	version := parse(t, base).Version()
	for name, same := range map[string]string{
		"again":         base,
		"a comment":     "# words\n" + base,
		"other layout":  strings.Replace(base, "when: true", "when:    'true'   # always", 1),
		"order of sets": strings.NewReplacer("[x, y]", "[y, x]", "[p, q]", "[q, p]").Replace(base),
		"count said":    strings.Replace(base, ", count: 1}]}\nrules", "}]}\nrules", 1),
	} {
		if got := parse(t, same).Version(); got != version {
			t.Errorf("%s: got another version", name)
		}
	}
	for name, other := range map[string]string{
		"expression": strings.Replace(base, "when: true", "when: 1 == 1", 1),
		"severity":   strings.Replace(base, "{require: [{any_of: [p, q], count: 1}]}", "deny", 1),
		"count":      strings.Replace(base, "[p, q], count: 1", "[p, q], count: 2", 1),
		"groups":     strings.Replace(base, "[p, q]", "[p]", 1),
		"default":    strings.Replace(base, "default-people", "others", 1),
		"actions":    strings.Replace(base, "[x, y]", "[x]", 1),
		"name":       strings.Replace(base, "name: a", "name: b", 1),
		"message":    base + "    message: {en: No., ja: 不可}\n",
	} {
		if got := parse(t, other).Version(); got == version {
			t.Errorf("%s: got the same version, want another", name)
		}
	}
	if len(version) != 64 {
		t.Errorf("version: got %q, want a sha256 in hexadecimal", version)
	}
}

func TestSeveralFilesAreOnePolicy(t *testing.T) {
	t.Parallel()
	first := with("  - name: a\n    when: true\n    then: allow\n")
	second := "version: 1\nrules:\n  - name: b\n    when: true\n    then: deny\n"
	files := fstest.MapFS{
		"1.yaml": {Data: []byte(first)}, "2.yml": {Data: []byte(second)}, "notes.txt": {Data: []byte("not a policy")},
	}
	p, err := policy.Load(files)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	if got := p.Evaluate(budget("KRW", 1, 2)); got.Rule != "b" || got.Verdict != policy.Deny {
		t.Errorf("got %s by %s, want deny by b", got.Verdict, got.Rule)
	}
	for name, tc := range map[string]struct {
		names []string
		want  string
	}{
		"without the file with the default": {[]string{"2.yml"}, "default:"},
		"a file twice":                      {[]string{"1.yaml", "1.yaml"}, "already declared"},
		"a file that is not there":          {[]string{"3.yaml"}, "3.yaml"},
	} {
		if _, err := policy.Load(files, tc.names...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want it to contain %q", name, err, tc.want)
		}
	}
	if _, err := policy.Load(fstest.MapFS{}); err == nil {
		t.Error("an empty folder: got no error, want one")
	}
}

func TestARuleAboutNoActionIsRefused(t *testing.T) {
	t.Parallel()
	p := parse(t, with("  - name: a\n    actions: [budget_chnage]\n    when: true\n    then: deny\n"))
	err := p.CheckActions([]string{"budget_change"})
	if err == nil || !strings.Contains(err.Error(), "rule a") || !strings.Contains(err.Error(), "budget_chnage") {
		t.Errorf("got error %v, want one that names the rule and the action", err)
	}
	if err := p.CheckActions([]string{"budget_change", "budget_chnage"}); err != nil {
		t.Errorf("got error %v, want none", err)
	}
}
