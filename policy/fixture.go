package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/money"
)

// IsCases reports whether a file of this name holds cases: it lies beside the policy and is not part of it.
func IsCases(name string) bool {
	return strings.HasSuffix(name, ".test.yaml") || strings.HasSuffix(name, ".test.yml")
}

// Case is one fixture: a change as the service would compute it, and the ruling that its author expects.
type Case struct {
	File, Name string
	Facts      Facts
	expect     expectation
}

// Cases reads every *.test.yaml at the top of files, by name. They are read as strictly as policies are: an unknown key, an
// amount that is none, a second case of the same name in a file are refused with their place.
func Cases(files fs.FS) ([]Case, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, fmt.Errorf("listing the policy's cases: %w", err)
	}
	var all []Case
	for _, e := range entries {
		if e.IsDir() || !IsCases(e.Name()) {
			continue
		}
		raw, err := fs.ReadFile(files, e.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the policy's cases: %w", err)
		}
		found, err := readCases(e.Name(), raw)
		if err != nil {
			return nil, fmt.Errorf("cases %s: %w", e.Name(), plain(err))
		}
		all = append(all, found...)
	}
	return all, nil
}

func readCases(file string, raw []byte) ([]Case, error) {
	var doc struct {
		Cases []caseText `yaml:"cases"`
	}
	if err := checkWhole(raw); err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalWithOptions(raw, &doc, yaml.Strict()); err != nil {
		return nil, err
	}
	if len(doc.Cases) == 0 {
		return nil, errors.New("there are no cases; a policy under this name would not be read")
	}
	named := map[string]bool{}
	out := make([]Case, 0, len(doc.Cases))
	for i, text := range doc.Cases {
		facts, err := text.facts()
		switch {
		case text.Name == "":
			return nil, fmt.Errorf("case %d has no name", i+1)
		case named[text.Name]:
			return nil, fmt.Errorf("there is a second case %q", text.Name)
		case err != nil:
			return nil, fmt.Errorf("case %q: %w", text.Name, err)
		}
		if err := text.Expect.check(); err != nil {
			return nil, fmt.Errorf("case %q: expect: %w", text.Name, err)
		}
		named[text.Name] = true
		out = append(out, Case{File: file, Name: text.Name, Facts: facts, expect: text.Expect})
	}
	return out, nil
}

// caseText is a case as written. Its words are those that rules use.
type caseText struct {
	Name       string               `yaml:"name"`
	Action     string               `yaml:"action"`
	Input      map[string]any       `yaml:"input"`
	Target     targetText           `yaml:"target"`
	Before     map[string]valueText `yaml:"before"`
	After      map[string]valueText `yaml:"after"`
	Impact     map[string]valueText `yaml:"impact"`
	Warnings   []string             `yaml:"warnings"`
	Reversible bool                 `yaml:"reversible"`
	Requester  requesterText        `yaml:"requester"`
	Now        string               `yaml:"now"`
	Exposure   map[string]totalText `yaml:"exposure"`
	Expect     expectation          `yaml:"expect"`
}

type targetText struct {
	System string `yaml:"system"`
	Kind   string `yaml:"kind"`
	ID     string `yaml:"id"`
	Name   string `yaml:"name"`
}

type requesterText struct {
	Kind       string   `yaml:"kind"`
	Issuer     string   `yaml:"issuer"`
	Subject    string   `yaml:"subject"`
	OnBehalfOf string   `yaml:"on_behalf_of"`
	Owner      string   `yaml:"owner"`
	Client     string   `yaml:"client"`
	Tenant     string   `yaml:"tenant"`
	Groups     []string `yaml:"groups"`
	Roles      []string `yaml:"roles"`
}

func (r requesterText) actor() (actor.Actor, error) {
	kind := actor.Kind(r.Kind)
	if kind != "" && !slices.Contains([]actor.Kind{actor.Agent, actor.Human, actor.Service}, kind) {
		return actor.Actor{}, fmt.Errorf("requester: kind is agent, human or service, not %q", r.Kind)
	}
	return actor.Actor{
		Tenant: r.Tenant, Kind: kind, Issuer: r.Issuer, Subject: r.Subject, Client: r.Client, For: r.OnBehalfOf, Owner: r.Owner,
		Groups: r.Groups, Roles: r.Roles,
	}, nil
}

func (c caseText) facts() (Facts, error) {
	if c.Action == "" {
		return Facts{}, errors.New("action is missing")
	}
	who, err := c.Requester.actor()
	if err != nil {
		return Facts{}, err
	}
	input, err := inputOf(c.Input)
	if err != nil {
		return Facts{}, err
	}
	f := Facts{Action: c.Action, Input: input, Requester: who}
	f.Plan.Target = connector.Target(c.Target)
	f.Plan.Changes = changesOf(c.Before, c.After)
	f.Impact.Reversible = c.Reversible
	for _, code := range c.Warnings {
		f.Impact.Warnings = append(f.Impact.Warnings, connector.Warning{Code: code})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Impact)) {
		figure, err := c.Impact[name].figure(name)
		if err != nil {
			return Facts{}, err
		}
		f.Impact.Figures = append(f.Impact.Figures, figure)
	}
	if c.Now != "" {
		if f.Now, err = time.Parse(time.RFC3339, c.Now); err != nil {
			return Facts{}, fmt.Errorf("now: %q is no time such as 2026-12-28T09:30:00+09:00", c.Now)
		}
	}
	f.Exposure, err = exposureOf(c.Exposure)
	return f, err
}

// changesOf joins what was and what will be. A field that only one side names is not known on the other.
func changesOf(before, after map[string]valueText) []connector.Change {
	fields := map[string]bool{}
	for name := range before {
		fields[name] = true
	}
	for name := range after {
		fields[name] = true
	}
	var out []connector.Change
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		out = append(out, connector.Change{Field: name, Before: before[name].value(), After: after[name].value()})
	}
	return out
}

// valueText is "KRW 300000" (an amount, as a plain decimal), a whole number (a count) or any other text. {text: "KRW 1"} is a
// text whatever it looks like, and the word unknown is nothing known.
type valueText struct {
	amount *money.Amount
	text   *string
	count  *int64
}

const unknown = "unknown"

// UnmarshalYAML implements the forms above.
func (v *valueText) UnmarshalYAML(node ast.Node) error {
	line := node.GetToken().Position.Line
	switch n := node.(type) {
	case *ast.IntegerNode:
		count, err := strconv.ParseInt(fmt.Sprint(n.Value), 10, 64)
		if err != nil {
			return fmt.Errorf("line %d: %s is too large", line, node)
		}
		v.count = &count
		return nil
	case *ast.StringNode:
		if n.Value == unknown {
			return nil
		}
		amount, is, err := amountOf(n.Value)
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		if is {
			v.amount = &amount
		} else {
			v.text = &n.Value
		}
		return nil
	case *ast.MappingNode, *ast.MappingValueNode:
		var literal struct {
			Text string `yaml:"text"`
		}
		err := yaml.NodeToValue(node, &literal, yaml.Strict())
		v.text = &literal.Text
		return err
	}
	return fmt.Errorf(`line %d: %s is no value: write an amount ("USD 12.50"), a whole number, a text, or unknown`, line, node)
}

var startsAsAmount = regexp.MustCompile(`^[A-Z]{3} [-0-9]`)

// amountOf reads "USD 12.50". is says that the text looks like an amount at all.
func amountOf(text string) (a money.Amount, is bool, err error) {
	if !startsAsAmount.MatchString(text) {
		return a, false, nil
	}
	code, decimal, _ := strings.Cut(text, " ")
	a, err = money.Parse(decimal, money.Currency(code))
	if err != nil {
		return a, true, fmt.Errorf(`%q is no amount (write {text: "…"} where it is a text): %w`, text, err)
	}
	return a, true, nil
}

func (v valueText) value() connector.Value {
	if v.count != nil {
		text := strconv.FormatInt(*v.count, 10)
		return connector.Value{Text: &text}
	}
	return connector.Value{Amount: v.amount, Text: v.text}
}

func (v valueText) figure(name string) (connector.Figure, error) {
	if v.text != nil {
		return connector.Figure{}, fmt.Errorf("impact: %s is an amount, a whole number or unknown, not %q", name, *v.text)
	}
	return connector.Figure{Name: name, Amount: v.amount, Count: v.count}, nil
}

// inputOf gives the input the form that it has when it is read from a request: numbers as they were written.
func inputOf(fields map[string]any) (connector.Input, error) {
	if fields == nil {
		return nil, nil
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	var input connector.Input
	reader := json.NewDecoder(strings.NewReader(string(raw)))
	reader.UseNumber()
	if err := reader.Decode(&input); err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	return input, nil
}
