package policy

import (
	"fmt"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/visible"
)

// look is one value that a rule reads: a variable, or a field of one.
type look struct{ root, field string }

func (l look) String() string {
	if l.field == "" {
		return l.root
	}
	return l.root + "." + l.field
}

// lookOf recognises before.daily_budget (in before.daily_budget.krw, say) and currency.
func lookOf(e ast.NavigableExpr) (look, bool) {
	if e.Kind() == ast.IdentKind {
		switch name := e.AsIdent(); name {
		case "action", "currency", "warnings", "reversible":
			return look{root: name}, true
		}
		return look{}, false
	}
	selection := e.AsSelect()
	if name, ok := capOf(selection.Operand()); ok {
		return look{root: exposureName, field: name + "." + selection.FieldName()}, true
	}
	if selection.Operand().Kind() != ast.IdentKind {
		return look{}, false
	}
	root := selection.Operand().AsIdent()
	if _, ours := objects[root]; !ours || root == exposureName {
		return look{}, false
	}
	return look{root: root, field: selection.FieldName()}, true
}

// capOf recognises exposure.daily_raise, and gives the cap's name.
func capOf(e ast.Expr) (string, bool) {
	if e.Kind() != ast.SelectKind || e.AsSelect().Operand().Kind() != ast.IdentKind || e.AsSelect().Operand().AsIdent() != exposureName {
		return "", false
	}
	return e.AsSelect().FieldName(), true
}

// notThere is shown where a rule looked for a value that the change does not have.
const notThere = "missing"

// saw writes down what a rule looked at. Texts from outside are shown with hidden characters made visible.
func (s *scope) saw(looks []look) map[string]string {
	if len(looks) == 0 {
		return nil
	}
	out := make(map[string]string, len(looks))
	for _, l := range looks {
		out[l.String()] = s.text(l)
	}
	return out
}

func (s *scope) text(l look) string {
	if s.hides(l) {
		return connector.Mask
	}
	switch l.root {
	case "before":
		return s.before(l.field).String()
	case "after":
		return s.after(l.field).String()
	case "impact":
		return s.figure(l.field).String()
	case exposureName:
		name, which, _ := strings.Cut(l.field, ".")
		return s.total(name, which).String()
	case "change":
		if value, err := s.change(l.field); err == nil {
			return value.String()
		}
		return notThere
	case "warnings":
		return bounded(strings.Join(codes(s.facts.Impact.Warnings), ", "))
	}
	value, _ := s.ResolveName(l.root)
	if l.field != "" {
		field := objects[l.root](l.field)
		if !field.IsSet(s) {
			return notThere
		}
		value, _ = field.GetFrom(s)
	}
	if err, ok := value.(*types.Err); ok && err != nil {
		return notThere
	}
	return bounded(fmt.Sprint(value))
}

// hides reports whether a rule looked at what people may not read: a sensitive field, or, where there is one, whatever was asked for
// but its reason. The rule itself compares the real values.
func (s *scope) hides(l look) bool {
	switch l.root {
	case "before", "after", "change":
		return s.field(l.field).Sensitive
	case "input":
		return s.facts.Plan.Sensitive() && l.field != "reason"
	}
	return false
}

func (c cell) String() string {
	switch {
	case c.amount != nil:
		return c.amount.String()
	case c.text != nil:
		return bounded(*c.text)
	case c.count != nil:
		return strconv.FormatInt(*c.count, 10)
	}
	return notThere
}

func bounded(text string) string {
	const most = 200
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return visible.Text(text)
}
