package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// document is one policy file as written. Its zero values mean "not said".
type document struct {
	Version whole      `yaml:"version"`
	Default *outcome   `yaml:"default"`
	Rules   []ruleText `yaml:"rules"`
	// Zone is where the rules' days and hours are, such as Asia/Tokyo.
	Zone      string              `yaml:"zone"`
	Calendars map[string]calendar `yaml:"calendars"`
	Caps      []capText           `yaml:"caps"`
}

// outcome is a requirement with the words that go with it.
type outcome struct {
	Require []seatsText `yaml:"require"`
	Reject  reject      `yaml:"reject"`
	Message texts       `yaml:"message"`
}

// reject says what one person's rejection does: by default it is a veto.
type reject string

const (
	vetoes   reject = "veto"
	abstains reject = "abstain"
)

func (r reject) check() error {
	if r != "" && r != vetoes && r != abstains {
		return fmt.Errorf("reject is %s or %s, not %q", vetoes, abstains, string(r))
	}
	return nil
}

type ruleText struct {
	Name    string     `yaml:"name"`
	Actions []string   `yaml:"actions"`
	When    expression `yaml:"when"`
	Then    then       `yaml:"then"`
	Risk    string     `yaml:"risk"`
	Message texts      `yaml:"message"`
}

type seatsText struct {
	AnyOf []string `yaml:"any_of"`
	Count *whole   `yaml:"count"`
}

type texts map[string]string

// expression is a CEL text with the line of the file where it starts.
type expression struct {
	Text string
	Line int
}

// UnmarshalYAML keeps the line, so that a compile error can name it.
func (e *expression) UnmarshalYAML(node ast.Node) error {
	switch n := node.(type) {
	case *ast.StringNode:
		e.Text = n.Value
	case *ast.LiteralNode:
		e.Text = n.Value.Value
	case *ast.BoolNode:
		e.Text = fmt.Sprint(n.Value)
	default:
		return fmt.Errorf("line %d: when is one CEL expression, not %s", node.GetToken().Position.Line, node.Type())
	}
	e.Text, e.Line = strings.TrimSpace(e.Text), node.GetToken().Position.Line
	return nil
}

// whole is an integer that was written as one: 1.5 and "1" are refused, not converted.
type whole int

// UnmarshalYAML reads an integer of any reasonable size.
func (w *whole) UnmarshalYAML(node ast.Node) error {
	number, ok := node.(*ast.IntegerNode)
	if !ok {
		return fmt.Errorf("line %d: %s is not a whole number", node.GetToken().Position.Line, node)
	}
	value, err := strconv.Atoi(fmt.Sprint(number.Value))
	if err != nil {
		return fmt.Errorf("line %d: %s is too large", node.GetToken().Position.Line, node)
	}
	*w = whole(value)
	return nil
}

// severity is what a rule does when it is met.
type severity string

const (
	allows   severity = "allow"
	confirms severity = "confirm"
	warns    severity = "warn"
	requires severity = "require"
	denies   severity = "deny"
)

// then is "deny", "warn", "allow", "confirm" or {require: [seats …]}.
type then struct {
	Severity severity
	Require  []seatsText
	Reject   reject
}

// UnmarshalYAML reads either form and nothing else.
func (t *then) UnmarshalYAML(node ast.Node) error {
	if word, ok := node.(*ast.StringNode); ok {
		t.Severity = severity(word.Value)
		if !slices.Contains([]severity{allows, confirms, warns, denies}, t.Severity) {
			return fmt.Errorf("line %d: then is allow, confirm, warn, deny or {require: […]}, not %q", node.GetToken().Position.Line, word.Value)
		}
		return nil
	}
	var demand struct {
		Require []seatsText `yaml:"require"`
		Reject  reject      `yaml:"reject"`
	}
	if err := yaml.NodeToValue(node, &demand, yaml.Strict()); err != nil {
		return err
	}
	t.Severity, t.Require, t.Reject = requires, demand.Require, demand.Reject
	return nil
}

// read parses one file strictly: an unknown or repeated key, or a key without a value, is refused with its name and place.
func read(name string, raw []byte) (document, error) {
	var doc document
	err := checkWhole(raw)
	if err == nil {
		err = yaml.UnmarshalWithOptions(raw, &doc, yaml.Strict())
	}
	if err == nil {
		err = doc.check()
	}
	if err != nil {
		return doc, fmt.Errorf("policy %s: %w", name, plain(err))
	}
	return doc, nil
}

// checkWhole refuses what decoding passes over: an empty file, a second document, and a key that was left without a value
// (a blank actions would make a rule about one action a rule about all).
func checkWhole(raw []byte) error {
	file, err := parser.ParseBytes(raw, 0)
	if err != nil {
		return err
	}
	switch {
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		return errors.New("the file is empty")
	case len(file.Docs) > 1:
		return errors.New("one file is one YAML document")
	}
	var blanks blanks
	ast.Walk(&blanks, file.Docs[0].Body)
	return errors.Join(blanks...)
}

// blanks collects the keys without a value.
type blanks []error

// Visit implements ast.Visitor.
func (b *blanks) Visit(node ast.Node) ast.Visitor {
	if pair, ok := node.(*ast.MappingValueNode); ok && pair.Value.Type() == ast.NullType {
		*b = append(*b, fmt.Errorf("line %d: %s has no value", pair.Key.GetToken().Position.Line, pair.Key))
	}
	return b
}

// plain turns the YAML library's picture of an error into one line with its place.
func plain(err error) error {
	var placed yaml.Error
	if !errors.As(err, &placed) || placed.GetToken() == nil {
		return err
	}
	at := placed.GetToken().Position
	return fmt.Errorf("line %d, column %d: %s", at.Line, at.Column, placed.GetMessage())
}

func (d document) check() error {
	if d.Version != 1 {
		return fmt.Errorf("version must be 1, not %d", d.Version)
	}
	if d.Default != nil {
		if err := d.Default.check(); err != nil {
			return fmt.Errorf("default: %w", err)
		}
	}
	for i, r := range d.Rules {
		if err := r.check(); err != nil {
			return fmt.Errorf("rule %d (%s): %w", i+1, r.Name, err)
		}
	}
	for i, c := range d.Caps {
		if err := c.check(); err != nil {
			return fmt.Errorf("cap %d (%s): %w", i+1, c.Name, err)
		}
	}
	return nil
}

func (o outcome) check() error {
	if len(o.Require) == 0 {
		return errors.New("require must name at least one group of people")
	}
	return errors.Join(checkSeats(o.Require), o.Reject.check(), o.Message.check())
}

// names are what the audit, the approver and the metrics show. "default" is the name of what happens when nothing matched.
var names = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

func (r ruleText) check() error {
	switch {
	case !names.MatchString(r.Name) || r.Name == defaultRule:
		return fmt.Errorf("a name is lower-case letters, digits and hyphens, and not %q", defaultRule)
	case r.When.Text == "":
		return errors.New("when is missing; write when: true for a rule that always holds")
	case r.Then.Severity == "":
		return errors.New("then is missing")
	case r.Then.Severity == requires && len(r.Then.Require) == 0:
		return errors.New("require must name at least one group of people")
	case r.Then.Severity == warns && len(r.Message) == 0:
		return errors.New("a rule that warns needs a message")
	case r.Risk != "" && r.Risk != RiskHigh:
		return fmt.Errorf("risk is %s or left out, not %q", RiskHigh, r.Risk)
	case r.Actions != nil && len(r.Actions) == 0 || slices.Contains(r.Actions, ""):
		return errors.New("actions names no action; leave it out for a rule about all of them")
	}
	return errors.Join(checkSeats(r.Then.Require), r.Then.Reject.check(), r.Message.check())
}

// mostSeats bounds a requirement: it is evaluated by matching people to seats.
const mostSeats = 20

func checkSeats(seats []seatsText) error {
	people := 0
	for _, s := range seats {
		switch {
		case len(s.AnyOf) == 0 || slices.Contains(s.AnyOf, ""):
			return errors.New("any_of must name groups")
		case s.Count != nil && *s.Count < 1:
			return fmt.Errorf("count must be at least 1, not %d", *s.Count)
		}
		people += s.count()
	}
	if people > mostSeats {
		return fmt.Errorf("a requirement of %d people is more than %d", people, mostSeats)
	}
	return nil
}

func (s seatsText) count() int {
	if s.Count == nil {
		return 1
	}
	return int(*s.Count)
}

// check wants a message in both languages or in none: half a translation would reach a reader in the wrong language.
func (t texts) check() error {
	if len(t) == 0 {
		return nil
	}
	for lang, text := range t {
		if lang != "en" && lang != "ja" {
			return fmt.Errorf("message: language %q is not en or ja", lang)
		}
		if strings.TrimSpace(text) == "" {
			return fmt.Errorf("message: %s is empty", lang)
		}
	}
	if len(t) != 2 {
		return errors.New("message needs both en and ja")
	}
	return nil
}

func requirement(seats []seatsText) Requirement {
	out := make(Requirement, len(seats))
	for i, s := range seats {
		groups := slices.Clone(s.AnyOf)
		slices.Sort(groups)
		out[i] = Seats{AnyOf: slices.Compact(groups), Count: s.count()}
	}
	return out
}
